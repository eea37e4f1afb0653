"""The recommender: loads the cluster, adds samples, recommends, writes statuses and saves checkpoints.

Loading and writing await; everything in between is `trimtab.decide.vertical` on cluster states that this loop owns.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trimtab.clock import Clock, keep_running, start_task
from trimtab.cluster.client import Client
from trimtab.cluster.events import EventRecorder
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.garbage import AggregateCollector
from trimtab.decide.vertical.control.control import CONFLICT_REASON, ScopeConflict, unreported_conflicts
from trimtab.decide.vertical.estimate_records import dumps
from trimtab.decide.vertical.recommend.quality import expectations_of
from trimtab.decide.vertical.recommend.recommender import VPARecommendation
from trimtab.model import times
from trimtab.model.author import Author
from trimtab.model.core.meta import NamespacedName
from trimtab.operator.control_loop import NOT_STARTED, ControlLoop, ControlLoopMetrics
from trimtab.operator.health import HeldByAnotherReplica
from trimtab.operator.ownership import Ownership
from trimtab.operator.settings.settings import NamespaceRules
from trimtab.operator.settings.vertical import RecommenderLoopSettings
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot
from trimtab.operator.vertical.estimation import Estimation
from trimtab.operator.vertical.kinds import vpa_reference
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.bootstrap import (
    UNAVAILABLE_REASON,
    HistoryBootstrap,
    HistoryProgress,
)
from trimtab.operator.vertical.recommender.checkpoint_collector import CheckpointCollector
from trimtab.operator.vertical.recommender.checkpoint_objects import CheckpointOptions
from trimtab.operator.vertical.recommender.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.recommender.checkpoint_writer import CheckpointWriter
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.feeder import ClusterStateFeeder, LoadResult
from trimtab.operator.vertical.recommender.history_loader import HistoryLoader
from trimtab.operator.vertical.recommender.oom_watcher import OomObserver
from trimtab.operator.vertical.recommender.samples import SampleFeeder
from trimtab.operator.vertical.recommender.status_builder import StatusBuilder
from trimtab.operator.vertical.recommender.status_writer import StatusWriter
from trimtab.operator.vertical.recommender.usage import PodCapacities, UsageFeed

log = logging.getLogger(__name__)
_GC_NS = 3600 * times.SECOND_NS
COLLISION_REASON = "CheckpointCollision"


@dataclass(frozen=True)
class RecommenderDeps:
    """The collaborators of the recommender."""

    clock: Clock
    client: Client
    ownership: Ownership
    view: ClusterView
    usage: UsageFeed
    events: EventRecorder
    metrics: RecommenderMetrics
    loop_metrics: ControlLoopMetrics
    author_for: Callable[[str], Author] = lambda _key: Author()
    """Returns this replica and its Lease for a VPA."""


class Recommender(ControlLoop):
    """Recommends resources for the VPAs of our shards."""

    name = "recommender"

    def __init__(
        self,
        deps: RecommenderDeps,
        settings: RecommenderLoopSettings,
        namespaces: NamespaceRules,
        estimation: Estimation,
        history: HistoryLoader | None = None,
    ) -> None:
        super().__init__(
            deps.clock,
            deps.ownership,
            settings.recommender_interval.total_seconds(),
            deps.loop_metrics,
        )
        self._deps = deps
        self._settings = settings
        view, metrics, is_dry_run = deps.view, deps.metrics, deps.client.is_dry_run
        ignored, workers = namespaces.ignored, settings.update_worker_count
        self._view = view
        self._metrics = metrics
        self._states = ShardedClusterStates(
            lambda: estimation.new_state(view), deps.ownership, view.has_shard
        )
        self._feeder = ClusterStateFeeder(
            self._states,
            frozenset({settings.recommender_name, *estimation.estimators}),
            ignored,
            matched_only=settings.memory_saver,
        )
        options = CheckpointOptions(view.share, workers, view.rules, ignored)
        store = CheckpointStore(deps.client, self._states, options)
        self._history = HistoryBootstrap(view, self._states, store, metrics, history)
        self._ooms = OomObserver(deps.client, view.pods, view.share, view.rules)
        self._samples = SampleFeeder(
            self._states,
            self._feeder,
            self._history,
            deps.usage,
            self._ooms,
            metrics,
            estimation.estimators,
        )
        self._builder = StatusBuilder(
            view, self._states, namespaces, estimation, metrics, is_dry_run=is_dry_run
        )
        self._statuses = StatusWriter(
            self._states, view.vpas, workers, is_dry_run=is_dry_run, author_for=deps.author_for
        )
        self._checkpoints = CheckpointWriter(
            deps.clock,
            self._states,
            store,
            interval=settings.checkpoints_interval.total_seconds(),
            timeout=settings.checkpoints_timeout.total_seconds(),
            warn=lambda vpa, message: self._warn(vpa, COLLISION_REASON, message),
        )
        self._orphans = {
            kind: CheckpointCollector(
                deps.client, self._states, store, self._checkpoints.has_history, options, kind
            )
            for kind in view.kinds
        }
        self._collectors: dict[ClusterState, AggregateCollector] = {}
        self._conflicts: frozenset[tuple[str, str, str]] = frozenset()
        self._problems = {self.name: NOT_STARTED}
        self._watching: asyncio.Task[None] | None = None
        self._is_started = asyncio.Event()
        self._beginning: dict[int, asyncio.Task[None]] = {}

    def model_of(self, vpa: str) -> ClusterState | None:
        """Return the cluster state that has a VPA, by `namespace/name`, or None if another replica has it."""
        state = self._states.get(NamespacedName.parse(vpa))
        return state if state is not None and vpa in state.vpas else None

    def recommendation(self, vpa: str) -> VPARecommendation | None:
        """Return the last recommendation for a VPA with its derivation, by `namespace/name`."""
        return self._builder.recommendations.get(vpa)

    def pages(self) -> Mapping[str, Callable[[str], bytes | None]]:
        """Return the page with the last calls of estimators for the VPA `?name=namespace/name`."""
        return {"/estimates": self._estimates_page}

    def _estimates_page(self, vpa: str) -> bytes | None:
        owner = self._deps.ownership.describe_owner(vpa)
        if owner:
            raise HeldByAnotherReplica(owner)
        state = self.model_of(vpa) if "/" in vpa else None
        estimator = state.vpas[vpa].estimator if state is not None else None
        if estimator is None:
            return None
        return b"".join(dumps(record) + b"\n" for _, record in sorted(estimator.records.items()))

    def health(self) -> dict[str, str]:
        """Return the problems of caches and the last step, by name."""
        return {**self._view.problems(), **self._ooms.problems(), **self._problems}

    def warnings(self) -> dict[str, str]:
        """Return the namespaces without recommendations, by name."""
        return self._view.warnings()

    def shard_gained(self, shard: int) -> None:
        """Step as soon as the shard is listed."""
        self._beginning[shard] = start_task(f"the start of shard {shard}", self._begin_shard(shard))

    async def _begin_shard(self, shard: int) -> None:
        await self._is_started.wait()
        await self._view.wait_shard(shard)
        self.wake()

    def shard_lost(self, shard: int) -> None:
        """Stop recommending for a shard, and save its histories while its Lease is still ours."""
        self._states.drop_shard(shard)
        self._checkpoints.flush_shard(shard)

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether a status or checkpoint of the shard is being written."""
        return self._checkpoints.is_flushing(shard) or self._states.is_busy(shard)

    async def start(self) -> None:
        """Watch evictions and wait for the caches."""
        self._watching = keep_running("the watch of evictions", self._ooms.run)
        await self._view.wait_synced()
        self._is_started.set()

    async def close(self) -> None:
        """Stop watching, and save the samples since the last checkpoints."""
        ended = [*self._beginning.values(), *([self._watching] if self._watching is not None else [])]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        await self._history.close()
        # A process may hand over its last shard while it ends. Its Lease is still ours, and no shard may be written.
        await self._checkpoints.wait_flushed()
        if self._deps.ownership.may_write():
            await self._checkpoints.close()

    def lease_acquired(self) -> None:
        """Start from checkpoints: the previous leader has newer samples."""
        self._states.drop_all()
        self._checkpoints.discard()

    def wakers(self) -> list[Coroutine[Any, Any, object]]:
        """Return what may end a pause early, loaded history included."""
        return [*super().wakers(), self._history.wait_loaded()]

    async def step(self) -> None:
        """Recommend once for all VPAs of our shards."""
        now = self._clock.now()
        now_ns = times.to_ns(now)
        began = self._clock.monotonic()
        with self._timed("LoadVPAs"):
            self._states.sync_shards()
            control = await self._view.control_snapshot()
        with self._timed("LoadPods"):
            loaded = self._feeder.load(self._view, control, now_ns, self._ooms.victims())
            self._ooms.add_missed(loaded.gained, now_ns)
            capacities = PodCapacities(self._view.capacities(), self._feeder.node_of)
            history = await self._history.load(control, loaded.new, capacities, now)
            loaded = loaded.without(history.waiting, history.refused)
            self._warn_of_missing_history(history, loaded)
        with self._timed("LoadMetrics"):
            expected = {state: expectations_of(state) for state in self._states}
            await self._samples.add_usage(loaded.namespaces, history.waiting, expected, capacities, now)
            self._samples.add_ooms(
                history.waiting, expected, capacities, now_ns, int(self._period * times.SECOND_NS)
            )
        with self._timed("DeleteRemovedPods"):
            self._feeder.forget_gone()
        with self._timed("UpdateVPAs"):
            changes = self._builder.build(control, loaded, now_ns)
            for state, before in expected.items():
                self._metrics.quality.compare(before, expectations_of(state))
            await self._statuses.write(changes)
            self._warn_of_conflicts(loaded.conflicts)
        with self._timed("MaintainCheckpoints"):
            await self._checkpoints.save_due(loaded.usable)
            interval = self._settings.checkpoints_gc_interval.total_seconds()
            for kind, cache in self._view.vpas.by_kind.items():
                await self._orphans[kind].collect_due(cache, interval)
        with self._timed("GarbageCollect"):
            self._collect_garbage(control, now_ns)
        self._count(control, loaded)
        self._metrics.steps.labels("total").observe(self._clock.monotonic() - began)
        self._problems = {
            **{f"usage of {namespace}": reason for namespace, reason in self._deps.usage.failures.items()},
            **{f"checkpoints of {namespace}": reason for namespace, reason in history.refused.items()},
            **{f"status of {vpa}": reason for vpa, reason in self._statuses.failures.items()},
        }

    def _warn_of_missing_history(self, history: HistoryProgress, loaded: LoadResult) -> None:
        for vpa in loaded.usable:
            reason = history.failed.get(vpa.namespace)
            if reason is not None:
                message = f"History cannot be read from Prometheus, checkpoints are used instead: {reason}"
                self._warn(vpa, UNAVAILABLE_REASON, message)

    def _warn_of_conflicts(self, conflicts: tuple[ScopeConflict, ...]) -> None:
        fresh, self._conflicts = unreported_conflicts(conflicts, self._conflicts)
        for conflict in fresh:
            for vpa in map(NamespacedName.parse, (conflict.winner, conflict.loser)):
                if self._states.holds(vpa):
                    self._warn(vpa, CONFLICT_REASON, conflict.message)

    def _warn(self, name: NamespacedName, reason: str, message: str) -> None:
        vpa = self._view.vpas.get(name.name, name.namespace)
        if vpa is not None:
            self._deps.events.event(vpa_reference(vpa), "Warning", reason, message)

    def _collect_garbage(self, control: ControlSnapshot, now_ns: int) -> None:
        existing = {targeted.vpa.key for targeted in control.vpas if targeted.selector is not None}
        self._collectors = {
            state: self._collectors.get(state) or AggregateCollector(_GC_NS) for state in self._states
        }
        for state, collector in self._collectors.items():
            collector.collect(state, now_ns, lambda vpa: vpa.key in existing)

    def _count(self, control: ControlSnapshot, loaded: LoadResult) -> None:
        self._metrics.count_objects(self._states.vpas(), frozenset(map(str, loaded.unusable)))
        self._metrics.count_levels(control.claims.values())
        self._metrics.resources_read.labels("Pod.Spec.Containers").inc(
            sum(len(state.rows) for state in self._states)
        )
        self._metrics.aggregates.set(sum(len(state.aggregates) for state in self._states))

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = self._clock.monotonic()
        yield
        self._metrics.steps.labels(step).observe(self._clock.monotonic() - began)
