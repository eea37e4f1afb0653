"""The recommender's loop: follow the cluster, take in usage, recommend, write what changed, save history.

Observing and writing wait; everything in between is `trimtab.decide.vertical` on one model that this loop owns.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.fence import Fence
from trimtab.decide.vertical.checkpoints import save_checkpoints
from trimtab.decide.vertical.compat import DEFAULT
from trimtab.decide.vertical.control import CONFLICT_REASON, Conflict, new_conflicts
from trimtab.decide.vertical.expiry import Collector
from trimtab.decide.vertical.intake import Intake, record_oom
from trimtab.decide.vertical.oom import OOM
from trimtab.decide.vertical.quality import Expectations, expectations_of
from trimtab.decide.vertical.recommend import RecommenderSettings
from trimtab.decide.vertical.recommender import PostProcessing, VPARecommendation, recommend_vpas
from trimtab.decide.vertical.samples import Usage
from trimtab.decide.vertical.state import ClusterState, ContainerId, PodId, TrackedContainer
from trimtab.decide.vertical.vpastate import VPAState
from trimtab.model import times
from trimtab.model.resources import MEMORY
from trimtab.operator.vertical.checkpoint_store import CheckpointStore, Schedule
from trimtab.operator.vertical.cluster_view import ClusterView, Standings
from trimtab.operator.vertical.follow import Followed, Follower
from trimtab.operator.vertical.history import HistoryLoader
from trimtab.operator.vertical.ooms import OOMWatch
from trimtab.operator.vertical.past import UNAVAILABLE_REASON, Loaded, Past
from trimtab.operator.vertical.references import vpa_reference
from trimtab.operator.vertical.settings import VerticalSettings
from trimtab.operator.vertical.statuses import (
    StatusChange,
    StatusWriter,
    change_of,
    inert_change,
    waiting_change,
)
from trimtab.operator.vertical.telemetry import RecommenderMetrics
from trimtab.operator.vertical.usage import Bounds, UsageFeed, take_usage

log = logging.getLogger(__name__)
_GC_NS = 3600 * times.SECOND_NS
COLLISION_REASON = "CheckpointCollision"
LAST_SAVE_SECONDS = 10.0
"""How long the end may take: less than a pod has to end."""
STAND_BY_SECONDS = 1.0
"""How often a copy that does not lead looks whether it does."""


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
        history: HistoryLoader | None = None,
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
        self._ooms = OOMWatch(tools.client, tools.view.pods)
        workers = settings.update_worker_count
        self._statuses = StatusWriter(tools.client, tools.view.vpas, workers)
        self._checkpoints = CheckpointStore(tools.clock, tools.client, workers)
        every = settings.checkpoints_interval.total_seconds() if tools.view.compat == DEFAULT else 0.0
        self._schedule = Schedule(tools.clock, every)
        self._usable: tuple[str, ...] = ()
        self._past = Past(tools.view, self._checkpoints, tools.metrics, history)
        self._follower = self._new_follower()
        self._collector = Collector(_GC_NS)
        self._told: frozenset[tuple[str, str, str]] = frozenset()
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
                await self._pause(max(self._settings.recommender_interval.total_seconds() - spent, 0.0))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await self._past.close()
            await self._save_at_the_end()

    async def _pause(self, seconds: float) -> None:
        """Wait for the next loop; history that arrives meanwhile brings it forward."""
        waits = [
            asyncio.ensure_future(self._clock.sleep(seconds)),
            asyncio.ensure_future(self._past.arrived()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _stand_by(self) -> None:
        """Wait for the lease; whoever led meanwhile knows more than we did, so start from what it saved."""
        self._problems = {}
        while not self._fence.may_write():
            await self._clock.sleep(STAND_BY_SECONDS)
        self._follower = self._new_follower()
        self._schedule.keep(())
        self._usable = ()
        self._past.start_over()

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
            bounds = Bounds(self._view.capacities(), self._follower.node_of)
            loaded = await self._past.load(self.state, standings, followed.new, bounds, now)
            followed = followed.without(loaded.waiting)
            self._tell_failures(loaded, followed)
        with self._timed("LoadMetrics"):
            expected = expectations_of(self.state)
            taken = await self._take_usage(standings, loaded.waiting, bounds, now)
            self._judge(expected, taken)
            self._take_ooms(loaded.waiting, expected, now_ns)
        with self._timed("UpdateVPAs"):
            changes = self._recommend(standings, followed, now_ns)
            self._metrics.quality.compare(expected, expectations_of(self.state))
            written = await self._statuses.write(changes)
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
        samples = sum(intake.accepted for intake in taken.values())
        return LoopReport(len(followed.usable), samples, written, saved)

    def _tell_failures(self, loaded: Loaded, followed: Followed) -> None:
        for vpa in followed.usable:
            why = loaded.failed.get(vpa.partition("/")[0])
            if why is not None:
                message = f"History cannot be read from Prometheus, checkpoints are used instead: {why}"
                self._warn(vpa, UNAVAILABLE_REASON, message)

    async def _take_usage(
        self, standings: Standings, waiting: frozenset[str], bounds: Bounds, now: datetime
    ) -> dict[str, Intake]:
        namespaces = {one.vpa.metadata.namespace for one in standings.vpas} - waiting
        answers = await self._usage.read(namespaces)
        taken = take_usage(self.state, answers, bounds, now, waiting=waiting)
        for resource, intake in taken.items():
            self._count_refused(resource, intake)
        return taken

    def _judge(self, expected: Expectations, taken: dict[str, Intake]) -> None:
        for resource, intake in taken.items():
            if intake.taken is not None:
                self._metrics.quality.judge(self.state, expected, resource, intake.taken)

    def _count_refused(self, resource: str, intake: Intake) -> None:
        self._metrics.refused.labels(resource, "above capacity").inc(intake.above_capacity)
        self._metrics.refused.labels(resource, "from the future").inc(intake.from_the_future)

    def _take_ooms(self, waiting: frozenset[str], expected: Expectations, now_ns: int) -> None:
        capacities = self._view.capacities()
        taken = self._ooms.take()
        self._ooms.put_back(tuple(oom for oom in taken if oom.namespace in waiting))
        for oom in taken:
            if oom.namespace in waiting:
                continue  # what was before it comes first
            if PodId(oom.namespace, oom.pod) not in self.state.pods:
                continue
            capacity = capacities.get(self._follower.node_of(PodId(oom.namespace, oom.pod)))
            refusal = record_oom(self.state, oom, now_ns, capacity)
            if refusal:
                log.info("out-of-memory kill is not counted: %s", refusal)
            else:
                self._judge_oom(expected, oom)

    def _judge_oom(self, expected: Expectations, oom: OOM) -> None:
        container = ContainerId(PodId(oom.namespace, oom.pod), oom.container)
        tracked = self.state.find_container(container)
        if isinstance(tracked, TrackedContainer):
            needed = Usage(
                np.array([tracked.history.row]), np.array([tracked.history.oom_peak]), np.array([0])
            )
            self._metrics.quality.judge(self.state, expected, MEMORY, needed, is_oom=True)

    def _recommend(self, standings: Standings, followed: Followed, now_ns: int) -> list[StatusChange]:
        state = self.state
        usable = [state.vpas[key] for key in followed.usable]
        found = recommend_vpas(state, usable, self._recommending, self._post, now_ns)
        self._recommendations = {one.vpa: one for one in found}
        changes = [change for one in found if (change := self._change(state.vpas[one.vpa], now_ns))]
        for one in standings.vpas:
            why = followed.unusable.get(one.vpa.key)
            if (why is not None and (change := inert_change(one.vpa, why, now_ns))) or (
                one.vpa.key in followed.waiting and (change := waiting_change(one.vpa, now_ns))
            ):
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
        self._schedule.keep(self.state.vpas)
        self._usable = followed.usable
        written = await self._save(self._schedule.due(followed.usable))
        await self._collect_orphans()
        return written

    async def _save(self, vpas: list[str]) -> int:
        states = [self.state.vpas[vpa] for vpa in vpas]
        saved = save_checkpoints(self.state, states, times.to_ns(self._clock.now()))
        report = await self._checkpoints.write(saved, self._settings.checkpoints_timeout.total_seconds())
        # What could not be written is due again in the next loop; what has no history yet is, too.
        self._schedule.saved(report.done - report.undone)
        for vpa, message in report.collisions.items():
            self._warn(vpa, COLLISION_REASON, message)
        return report.written

    async def _save_at_the_end(self) -> None:
        """Save what was learnt since the last time, if we still may."""
        if not self._fence.may_write():
            return
        try:
            async with asyncio.timeout(LAST_SAVE_SECONDS):
                await self._save([vpa for vpa in self._usable if vpa in self.state.vpas])
        except (TimeoutError, errors.ClusterError) as error:
            log.warning("history of the last minutes is not saved: %s", str(error) or "it took too long")

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
