"""The recommender's loop: follow the cluster, take in usage, recommend, write what changed, save history.

Observing and writing wait; everything in between is `trimtab.decide.vertical` on models that this loop owns: one for
each share of the VPAs that this process holds.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from trimtab import tasks
from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.events import EventRecorder
from trimtab.decide.vertical.cluster_state.aggregates import AggregationConfig
from trimtab.decide.vertical.cluster_state.cluster import (
    ClusterState,
    ContainerId,
    PodId,
    TrackedContainer,
)
from trimtab.decide.vertical.cluster_state.containers import UsageRows
from trimtab.decide.vertical.cluster_state.garbage import AggregateCollector
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.control.control import (
    CONFLICT_REASON,
    ScopeConflict,
    new_conflicts,
)
from trimtab.decide.vertical.input.oom import OOM
from trimtab.decide.vertical.input.usage import IntakeReport, record_oom
from trimtab.decide.vertical.recommend.quality import Expectations, expectations_of
from trimtab.decide.vertical.recommend.recommendation import RecommenderSettings
from trimtab.decide.vertical.recommend.recommender import (
    PostProcessing,
    VPARecommendation,
    recommend_vpas,
)
from trimtab.decide.vertical.update.node_fit import rooms_of
from trimtab.decide.vertical.update.replacement_refusals import refusals_by_vpa
from trimtab.model import times
from trimtab.model.core.pod import MEMORY
from trimtab.model.vpa.types import UpdateMode
from trimtab.operator.control_loop import NOT_STARTED, ControlLoop, ControlLoopMetrics
from trimtab.operator.ownership import Ownership
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot
from trimtab.operator.vertical.kinds import vpa_reference
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.bootstrap import (
    UNAVAILABLE_REASON,
    HistoryBootstrap,
    Loaded,
)
from trimtab.operator.vertical.recommender.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.recommender.checkpoint_writer import CheckpointWriter
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.feeder import (
    ClusterStateFeeder,
    LoadResult,
    UnsupportedConfig,
)
from trimtab.operator.vertical.recommender.history_loader import HistoryLoader
from trimtab.operator.vertical.recommender.oom_watcher import OomObserver
from trimtab.operator.vertical.recommender.status_writer import (
    StatusChange,
    StatusWriter,
    change_of,
    excluded_namespace,
    inert_change,
    waiting_change,
)
from trimtab.operator.vertical.recommender.usage import Bounds, UsageFeed, take_usage

log = logging.getLogger(__name__)
_GC_NS = 3600 * times.SECOND_NS
_HAND_OVER_NS = 120 * times.SECOND_NS
"""How long kills of pods that are not ours are kept: a dead copy's share is taken up well within that."""
COLLISION_REASON = "CheckpointCollision"


@dataclass(frozen=True)
class RecommenderDeps:
    """What the recommender works with."""

    clock: Clock
    client: Client
    ownership: Ownership
    view: ClusterView
    usage: UsageFeed
    events: EventRecorder
    metrics: RecommenderMetrics
    loop_metrics: ControlLoopMetrics


@dataclass(frozen=True)
class LoopReport:
    """What one loop did."""

    vpas: int = 0
    samples: int = 0
    statuses_written: int = 0
    checkpoints_written: int = 0


class Recommender(ControlLoop):
    """The component; `step` is one loop."""

    name = "recommender"

    def __init__(
        self,
        tools: RecommenderDeps,
        settings: Settings,
        *,
        recommending: RecommenderSettings | None = None,
        aggregation: AggregationConfig | None = None,
        post: PostProcessing | None = None,
        history: HistoryLoader | None = None,
    ) -> None:
        super().__init__(
            tools.clock,
            tools.ownership,
            settings.recommender.recommender_interval.total_seconds(),
            tools.loop_metrics,
        )
        self._ownership = tools.ownership
        self._view = tools.view
        self._usage = tools.usage
        self._events = tools.events
        self._metrics = tools.metrics
        self._settings = settings
        self._unchanged = settings.unchanged_namespaces
        self._recommending = recommending or RecommenderSettings()
        self._aggregation = aggregation
        self._post = post or PostProcessing()
        self._ooms = OomObserver(tools.client, tools.view.pods, tools.view.namespaces, tools.view.compat)
        self._models = ShardedClusterStates(self._new_model, tools.ownership)
        ignored = frozenset(settings.ignored_namespaces)
        self._follower = ClusterStateFeeder(
            self._models,
            settings.recommender.recommender_name,
            ignored,
            matched_only=settings.recommender.memory_saver,
        )
        workers = settings.recommender.update_worker_count
        self._statuses = StatusWriter(
            tools.ownership,
            tools.view.vpas,
            workers,
            is_ours=self._models.holds,
            is_dry_run=tools.client.is_dry_run,
        )
        self._is_dry_run = tools.client.is_dry_run
        store = CheckpointStore(
            tools.clock,
            tools.client,
            tools.ownership,
            tools.view.namespaces,
            workers,
            compat=tools.view.compat,
            ignored=ignored,
        )
        self._past = HistoryBootstrap(tools.view, store, tools.metrics, history)
        self._saver = CheckpointWriter(
            tools.clock,
            self._models,
            store,
            every=settings.recommender.checkpoints_interval.total_seconds(),
            timeout=settings.recommender.checkpoints_timeout.total_seconds(),
            warn=lambda vpa, message: self._warn(vpa, COLLISION_REASON, message),
        )
        self._collectors: dict[int, AggregateCollector] = {}
        self._told: frozenset[tuple[str, str, str]] = frozenset()
        self._recommendations: dict[str, VPARecommendation] = {}
        self._problems = {self.name: NOT_STARTED}
        self._watching: asyncio.Task[None] | None = None

    def model_of(self, vpa: str) -> ClusterState | None:
        """Return the model that a VPA is in, by `namespace/name`; None if another copy has it."""
        model = self._models.of(vpa)
        return model if model is not None and vpa in model.vpas else None

    def recommendation(self, vpa: str) -> VPARecommendation | None:
        """Return the last recommendation for a VPA with its derivation, by `namespace/name`."""
        return self._recommendations.get(vpa)

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name."""
        why = self._ownership.problem()
        found = {**self._view.problems(), **self._ooms.problems(), **self._problems}
        return {**found, **({"shards": why} if why else {})}

    def shard_lost(self, shard: int) -> None:
        """Recommend no more for a share, and save what was learnt of it while its Lease is still ours."""
        self._models.lose(shard)
        self._saver.part_with(shard)

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether a status or a history of the share is still on its way."""
        return self._saver.is_parting(shard) or self._ownership.is_busy(shard)

    async def start(self) -> None:
        """Watch evictions and wait for the caches."""
        self._watching = tasks.keep_running("the watch of evictions", self._ooms.run)
        await self._view.wait_synced()

    async def close(self) -> None:
        """Stop watching and reading, and save what was learnt since the last checkpoints."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await self._past.close()
        if self._ownership.may_write():
            await self._saver.save_at_the_end()

    def lease_acquired(self) -> None:
        """Start from saved checkpoints: the previous leader has newer samples."""
        self._models.lose_all()
        self._saver.forget()

    def wakers(self) -> list[Coroutine[Any, Any, object]]:
        """Return what may end a pause early, the arrival of history included."""
        return [*super().wakers(), self._past.arrived()]

    def _new_model(self) -> ClusterState:
        view = self._view
        return ClusterState(self._aggregation, compat=view.compat, per_vpa_config=view.gates.per_vpa_config)

    async def step(self) -> LoopReport:
        """Run one loop."""
        now = self._clock.now()
        now_ns = times.to_ns(now)
        began = self._clock.monotonic()
        with self._timed("LoadVPAs"):
            self._models.take_up()
            standings = await self._view.standings()
        with self._timed("LoadPods"):
            followed = self._follower.follow(self._view, standings, now_ns, self._ooms.victims())
            bounds = Bounds(self._view.capacities(), self._follower.node_of)
            loaded = await self._past.load(self._models, standings, followed.new, bounds, now)
            followed = followed.without(loaded.waiting)
            self._tell_failures(loaded, followed)
        with self._timed("LoadMetrics"):
            expected = {share: expectations_of(self._models[share]) for share in self._models}
            samples = await self._take_usage(followed, loaded.waiting, expected, bounds, now)
            self._take_ooms(loaded.waiting, expected, now_ns)
        with self._timed("DeleteRemovedPods"):
            self._follower.forget_gone()
        with self._timed("UpdateVPAs"):
            changes = self._recommend(standings, followed, now_ns)
            for share in self._models:
                self._metrics.quality.compare(expected[share], expectations_of(self._models[share]))
            written = await self._statuses.write(changes)
            self._tell_conflicts(followed.conflicts)
        with self._timed("MaintainCheckpoints"):
            saved = await self._saver.save_due(followed.usable)
            interval = self._settings.recommender.checkpoints_gc_interval.total_seconds()
            await self._saver.collect_orphans(self._view.vpas, interval)
        with self._timed("GarbageCollect"):
            self._collect(standings, now_ns)
        self._count(standings, followed)
        self._metrics.steps.labels("total").observe(self._clock.monotonic() - began)
        self._problems = {
            **{f"usage of {namespace}": why for namespace, why in self._usage.failures.items()},
            **{f"status of {vpa}": why for vpa, why in self._statuses.failures.items()},
        }
        return LoopReport(len(followed.usable), samples, written, saved)

    def _tell_failures(self, loaded: Loaded, followed: LoadResult) -> None:
        for vpa in followed.usable:
            why = loaded.failed.get(vpa.partition("/")[0])
            if why is not None:
                message = f"History cannot be read from Prometheus, checkpoints are used instead: {why}"
                self._warn(vpa, UNAVAILABLE_REASON, message)

    async def _take_usage(
        self,
        followed: LoadResult,
        waiting: frozenset[str],
        expected: Mapping[int, Expectations],
        bounds: Bounds,
        now: datetime,
    ) -> int:
        """Read the usage of our namespaces and learn from it; return how many samples were taken."""
        answers = await self._usage.read(followed.namespaces - waiting)
        samples = 0
        for share in self._models:
            model = self._models[share]
            for resource, intake in take_usage(model, answers, bounds, now, waiting=waiting).items():
                self._count_refused(resource, intake)
                if intake.usage is not None:
                    self._metrics.quality.judge(model, expected[share], resource, intake.usage)
                samples += intake.accepted
        return samples

    def _count_refused(self, resource: str, intake: IntakeReport) -> None:
        self._metrics.refused.labels(resource, "above capacity").inc(intake.above_capacity)
        self._metrics.refused.labels(resource, "from the future").inc(intake.from_the_future)

    def _take_ooms(self, waiting: frozenset[str], expected: Mapping[int, Expectations], now_ns: int) -> None:
        capacities = self._view.capacities()
        taken = self._ooms.take()
        # What was before it comes first.
        later = {
            kill.oom
            for kill in taken
            if kill.oom.namespace in waiting or self._may_become_ours(kill.oom, now_ns)
        }
        self._ooms.put_back(tuple(kill for kill in taken if kill.oom in later))
        for oom in (kill.oom for kill in taken):
            if oom in later or self._is_saved(oom):
                continue
            pod = PodId(oom.namespace, oom.pod)
            capacity = capacities.get(self._follower.node_of(pod))
            for share in self._follower.shares_of(pod):
                refusal = record_oom(self._models[share], oom, now_ns, capacity)
                if refusal:
                    log.info("out-of-memory kill is not counted: %s", refusal)
                else:
                    self._judge_oom(self._models[share], expected[share], oom)

    def _is_saved(self, oom: OOM) -> bool:
        """Return whether a kill is in the history that was loaded, because whoever led then counted it.

        Kills of the last loop before that history was saved are counted again: in a window that runs, one peak counts
        as often as it is told.
        """
        receivers = self._follower.receivers_of(PodId(oom.namespace, oom.pod))
        loop_ns = int(self._settings.recommender.recommender_interval.total_seconds() * times.SECOND_NS)
        return bool(receivers) and all(
            oom.time_ns < self._past.saved_until(vpa) - loop_ns for vpa in receivers
        )

    def _may_become_ours(self, oom: OOM, now_ns: int) -> bool:
        """Return whether a kill is of a pod that another copy learns from, or nobody while its share changes hands.

        If that copy counted it, it does not count twice: the peak is in the window that goes along.
        """
        is_elsewhere = not self._follower.shares_of(PodId(oom.namespace, oom.pod))
        return not self._models.is_whole and is_elsewhere and now_ns - oom.time_ns < _HAND_OVER_NS

    def _judge_oom(self, model: ClusterState, expected: Expectations, oom: OOM) -> None:
        container = ContainerId(PodId(oom.namespace, oom.pod), oom.container)
        tracked = model.find_container(container)
        if isinstance(tracked, TrackedContainer):
            needed = UsageRows(
                np.array([tracked.history.row]), np.array([tracked.history.oom_peak]), np.array([0])
            )
            self._metrics.quality.judge(model, expected, MEMORY, needed, is_oom=True)

    def _recommend(self, standings: ControlSnapshot, followed: LoadResult, now_ns: int) -> list[StatusChange]:
        found: dict[str, VPARecommendation] = {}
        changes: list[StatusChange] = []
        rooms = tuple(rooms_of(self._view.nodes)) if self._view.compat.sizes_are_admissible else ()
        post = replace(self._post, rooms=rooms)
        refused = self._refused_replacements(standings)
        for model in self._models.all():
            usable = [model.vpas[key] for key in followed.usable if key in model.vpas]
            for one in recommend_vpas(model, usable, self._recommending, post, now_ns):
                found[one.vpa] = one
                if change := self._change(model.vpas[one.vpa], refused.get(one.vpa, ""), now_ns):
                    changes.append(change)
        self._recommendations = found
        for vpa in (targeted.vpa for targeted in standings.vpas):
            why = followed.unusable.get(vpa.key)
            if (why is not None and (change := inert_change(vpa, why, now_ns))) or (
                vpa.key in followed.waiting and (change := waiting_change(vpa, now_ns))
            ):
                changes.append(change)
        return changes

    def _refused_replacements(self, standings: ControlSnapshot) -> dict[str, str]:
        """Return why pods of VPAs stay, by VPA, as the updater noted on the pods; upstream has no such condition."""
        if not self._view.compat.sizes_are_admissible:
            return {}
        return refusals_by_vpa(self._view.pods, standings.index, standings.owners, standings.nodes)

    def _change(self, state: VPAState, refused: str, now_ns: int) -> StatusChange | None:
        change = change_of(state, self._view.compat, self._unchanging(state), now_ns, refused=refused)
        created = state.vpa.metadata.creation_timestamp
        is_first = state.vpa.status.recommendation is None and state.has_recommendation
        if change is not None and is_first and created is not None and not self._is_dry_run:
            self._metrics.latency.observe(max((now_ns - times.to_ns(created)) / times.SECOND_NS, 0.0))
        return change

    def _unchanging(self, state: VPAState) -> UnsupportedConfig | None:
        """Return why a VPA that wants to change pods only recommends."""
        namespace = state.vpa.metadata.namespace
        if state.update_mode == UpdateMode.OFF or namespace not in self._unchanged:
            return None
        return excluded_namespace(state.vpa, self._settings.namespace)

    def _tell_conflicts(self, conflicts: tuple[ScopeConflict, ...]) -> None:
        fresh, self._told = new_conflicts(conflicts, self._told)
        for conflict in fresh:
            for key in filter(self._models.holds, (conflict.winner, conflict.loser)):
                self._warn(key, CONFLICT_REASON, conflict.message)

    def _warn(self, key: str, reason: str, message: str) -> None:
        namespace, _, name = key.partition("/")
        vpa = self._view.vpas.get(name, namespace)
        if vpa is not None:
            self._events.event(vpa_reference(vpa), "Warning", reason, message)

    def _collect(self, standings: ControlSnapshot, now_ns: int) -> None:
        known = {one.vpa.key for one in standings.vpas if one.selector is not None}
        self._collectors = {
            share: self._collectors.get(share) or AggregateCollector(_GC_NS) for share in self._models
        }
        for share, collector in self._collectors.items():
            collector.collect(self._models[share], now_ns, lambda vpa: vpa.key in known)

    def _count(self, standings: ControlSnapshot, followed: LoadResult) -> None:
        self._metrics.count_objects(self._models.vpas(), frozenset(followed.unusable))
        self._metrics.count_levels(standings.claims.values())
        self._metrics.resources_read.labels("Pod.Spec.Containers").inc(
            sum(len(model.rows) for model in self._models.all())
        )
        self._metrics.aggregates.set(sum(len(model.aggregates) for model in self._models.all()))

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = self._clock.monotonic()
        yield
        self._metrics.steps.labels(step).observe(self._clock.monotonic() - began)
