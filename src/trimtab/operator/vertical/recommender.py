"""The recommender's loop: follow the cluster, take in usage, recommend, write what changed, save history.

Observing and writing wait; everything in between is `trimtab.decide.vertical` on one model that this loop owns.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.fence import Fence
from trimtab.decide.vertical.checkpoints import load_checkpoint, save_checkpoints
from trimtab.decide.vertical.control import CONFLICT_REASON, Conflict, new_conflicts
from trimtab.decide.vertical.expiry import Collector
from trimtab.decide.vertical.intake import Intake, record_oom
from trimtab.decide.vertical.recommend import RecommenderSettings
from trimtab.decide.vertical.recommender import PostProcessing, VPARecommendation, recommend_vpas
from trimtab.decide.vertical.state import ClusterState, PodId
from trimtab.decide.vertical.vpastate import VPAState
from trimtab.model import times
from trimtab.operator.vertical.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.cluster_view import ClusterView, Standings
from trimtab.operator.vertical.follow import Followed, Follower
from trimtab.operator.vertical.ooms import OOMWatch
from trimtab.operator.vertical.references import vpa_reference
from trimtab.operator.vertical.settings import VerticalSettings
from trimtab.operator.vertical.statuses import StatusChange, StatusWriter, change_of, inert_change
from trimtab.operator.vertical.telemetry import RecommenderMetrics
from trimtab.operator.vertical.usage import Bounds, UsageFeed, take_usage

log = logging.getLogger(__name__)
_GC_NS = 3600 * times.SECOND_NS
COLLISION_REASON = "CheckpointCollision"
STAND_BY_SECONDS = 1.0
"""How often a copy that does not lead looks whether it does."""


class HistorySource(Protocol):
    """Where the past comes from when the recommender starts, besides checkpoints (Prometheus, for example)."""

    async def load(self, state: ClusterState, vpas: tuple[str, ...], now: datetime) -> None:
        """Add the history of some VPAs, by `namespace/name`, to the model."""
        ...


@dataclass(frozen=True)
class Tools:
    """What the recommender works with."""

    clock: Clock
    client: Client
    fence: Fence
    view: ClusterView
    usage: UsageFeed
    events: EventRecorder
    metrics: RecommenderMetrics


@dataclass(frozen=True)
class LoopReport:
    """What one loop did."""

    vpas: int = 0
    samples: int = 0
    statuses_written: int = 0
    checkpoints_written: int = 0


class Recommender:
    """The component; `step` is one loop."""

    name = "recommender"

    def __init__(
        self,
        tools: Tools,
        settings: VerticalSettings,
        *,
        recommending: RecommenderSettings | None = None,
        post: PostProcessing | None = None,
        history: HistorySource | None = None,
    ) -> None:
        self._clock = tools.clock
        self._fence = tools.fence
        self._view = tools.view
        self._usage = tools.usage
        self._events = tools.events
        self._metrics = tools.metrics
        self._settings = settings
        self._recommending = recommending or RecommenderSettings()
        self._post = post or PostProcessing()
        self._history = history
        self._ooms = OOMWatch(tools.client, tools.view.pods)
        workers = settings.update_worker_count
        self._statuses = StatusWriter(tools.client, tools.view.vpas, workers)
        self._checkpoints = CheckpointStore(tools.clock, tools.client, workers)
        self._follower = self._new_follower()
        self._collector = Collector(_GC_NS)
        self._told: frozenset[tuple[str, str, str]] = frozenset()
        self._without_past: set[str] = set()
        self._orphans_at: float | None = None
        self._recommendations: dict[str, VPARecommendation] = {}
        self._problems: dict[str, str] = {"recommender": "no loop is complete yet"}

    @property
    def state(self) -> ClusterState:
        """Return the model, for explanations and tests."""
        return self._follower.state

    def recommendation(self, vpa: str) -> VPARecommendation | None:
        """Return the last recommendation for a VPA with its derivation, by `namespace/name`."""
        return self._recommendations.get(vpa)

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name."""
        return {**self._view.problems(), **self._problems}

    async def run(self) -> None:
        """Recommend until cancelled."""
        watching = asyncio.ensure_future(self._ooms.run())
        try:
            await self._view.wait_synced()
            while True:
                if not self._fence.may_write():
                    await self._stand_by()
                began = self._clock.monotonic()
                await self._step_safely()
                spent = self._clock.monotonic() - began
                await self._clock.sleep(max(self._settings.recommender_interval.total_seconds() - spent, 0.0))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _stand_by(self) -> None:
        """Wait for the lease; whoever led meanwhile knows more than we did, so start from what it saved."""
        self._problems = {}
        while not self._fence.may_write():
            await self._clock.sleep(STAND_BY_SECONDS)
        self._follower = self._new_follower()
        self._without_past = set()

    def _new_follower(self) -> Follower:
        view = self._view
        model = ClusterState(compat=view.compat, per_vpa_config=view.gates.per_vpa_config)
        return Follower(model, self._settings.recommender_name)

    async def _step_safely(self) -> None:
        try:
            await self.step()
        except errors.ClusterError as error:
            self._problems["recommender"] = str(error)
            log.warning("recommender loop: %s", error)
        except (
            Exception
        ) as error:  # whatever is wrong with one loop, the next one starts from what is true then
            self._problems["recommender"] = f"the last loop failed: {error}"
            log.exception("recommender loop")

    async def step(self) -> LoopReport:
        """Run one loop."""
        now = self._clock.now()
        now_ns = times.to_ns(now)
        with self._timed("LoadVPAs"):
            standings = await self._view.standings()
        with self._timed("LoadPods"):
            followed = self._follower.follow(self._view, standings, now_ns)
            await self._load_history(followed, now)
        with self._timed("LoadMetrics"):
            samples = await self._take_usage(standings, now)
            self._take_ooms(now_ns)
        with self._timed("UpdateVPAs"):
            written = await self._statuses.write(self._recommend(standings, followed, now_ns))
            self._tell_conflicts(followed.conflicts)
        with self._timed("MaintainCheckpoints"):
            saved = await self._maintain_checkpoints(followed)
        with self._timed("GarbageCollect"):
            self._collect(standings, now_ns)
        self._count(standings, followed)
        self._problems = {
            **{f"usage of {namespace}": why for namespace, why in self._usage.failures.items()},
            **{f"status of {vpa}": why for vpa, why in self._statuses.failures.items()},
        }
        return LoopReport(len(followed.usable), samples, written, saved)

    async def _load_history(self, followed: Followed, now: datetime) -> None:
        """Load the past of VPAs seen for the first time; raises, and is tried again, if it cannot be read.

        A loop without their past must not go on: it would save half a history over the whole one.
        """
        self._without_past.update(followed.new)
        if not self._without_past:
            return
        stored = await self._checkpoints.read()
        now_ns = times.to_ns(now)
        new = tuple(sorted(self._without_past & self.state.vpas.keys()))
        for vpa in new:
            for checkpoint in stored.get(vpa, ()):
                refusal = load_checkpoint(self.state, checkpoint, now_ns)
                if refusal:
                    log.warning("%s", refusal)
        if self._history is not None:
            await self._history.load(self.state, new, now)
        self._without_past.clear()

    async def _take_usage(self, standings: Standings, now: datetime) -> int:
        answers = await self._usage.read(one.vpa.metadata.namespace for one in standings.vpas)
        bounds = Bounds(self._view.capacities(), self._node_of)
        taken = take_usage(self.state, answers, bounds, now)
        for resource, intake in taken.items():
            self._count_refused(resource, intake)
        return sum(intake.accepted for intake in taken.values())

    def _node_of(self, namespace: str, pod: str) -> str:
        found = self._view.pods.get(pod, namespace)
        return found.spec.node_name if found else ""

    def _count_refused(self, resource: str, intake: Intake) -> None:
        self._metrics.refused.labels(resource, "above capacity").inc(intake.above_capacity)
        self._metrics.refused.labels(resource, "from the future").inc(intake.from_the_future)

    def _take_ooms(self, now_ns: int) -> None:
        capacities = self._view.capacities()
        for oom in self._ooms.take():
            if PodId(oom.namespace, oom.pod) not in self.state.pods:
                continue
            capacity = capacities.get(self._node_of(oom.namespace, oom.pod))
            refusal = record_oom(self.state, oom, now_ns, capacity)
            if refusal:
                log.info("out-of-memory kill is not counted: %s", refusal)

    def _recommend(self, standings: Standings, followed: Followed, now_ns: int) -> list[StatusChange]:
        state = self.state
        usable = [state.vpas[key] for key in followed.usable]
        found = recommend_vpas(state, usable, self._recommending, self._post, now_ns)
        self._recommendations = {one.vpa: one for one in found}
        changes = [change for one in found if (change := self._change(state.vpas[one.vpa], now_ns))]
        for one in standings.vpas:
            why = followed.unusable.get(one.vpa.key)
            if why is not None and (change := inert_change(one.vpa, why, now_ns)):
                changes.append(change)
        return changes

    def _change(self, state: VPAState, now_ns: int) -> StatusChange | None:
        change = change_of(state)
        created = state.vpa.metadata.creation_timestamp
        is_first = state.vpa.status.recommendation is None and state.has_recommendation
        if change is not None and is_first and created is not None:
            self._metrics.latency.observe(max((now_ns - times.to_ns(created)) / times.SECOND_NS, 0.0))
        return change

    def _tell_conflicts(self, conflicts: tuple[Conflict, ...]) -> None:
        fresh, self._told = new_conflicts(conflicts, self._told)
        for conflict in fresh:
            for key in (conflict.winner, conflict.loser):
                self._warn(key, CONFLICT_REASON, conflict.message)

    def _warn(self, key: str, reason: str, message: str) -> None:
        namespace, _, name = key.partition("/")
        vpa = self._view.vpas.get(name, namespace)
        if vpa is not None:
            self._events.event(vpa_reference(vpa), "Warning", reason, message)

    async def _maintain_checkpoints(self, followed: Followed) -> int:
        usable = [self.state.vpas[vpa] for vpa in followed.usable]
        saved = save_checkpoints(self.state, usable, times.to_ns(self._clock.now()))
        report = await self._checkpoints.write(saved, self._settings.checkpoints_timeout.total_seconds())
        for vpa, message in report.collisions.items():
            self._warn(vpa, COLLISION_REASON, message)
        await self._collect_orphans()
        return report.written

    async def _collect_orphans(self) -> None:
        now = self._clock.monotonic()
        interval = self._settings.checkpoints_gc_interval.total_seconds()
        is_due = self._orphans_at is None or now - self._orphans_at >= interval
        vpas = self._view.vpas
        if is_due and vpas.has_synced and vpas.last_error() is None:
            self._orphans_at = now
            await _tried(self._checkpoints.collect_orphans(frozenset(vpa.key for vpa in vpas)))

    def _collect(self, standings: Standings, now_ns: int) -> None:
        known = {one.vpa.key for one in standings.vpas if one.selector is not None}
        self._collector.collect(self.state, now_ns, lambda vpa: vpa.key in known)

    def _count(self, standings: Standings, followed: Followed) -> None:
        self._metrics.count_objects(self.state.vpas.values(), frozenset(followed.unusable))
        self._metrics.count_levels(standings.claims.values())
        self._metrics.aggregates.set(len(self.state.aggregates))

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = self._clock.monotonic()
        yield
        self._metrics.steps.labels(step).observe(self._clock.monotonic() - began)


async def _tried(work: Awaitable[object]) -> None:
    try:
        await work
    except errors.ClusterError as error:
        log.warning("orphaned checkpoints are not collected: %s", error)
