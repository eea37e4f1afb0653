"""The updater's loop: observe, let `trimtab.decide.vertical.update` choose, carry out, tell.

Besides every interval it runs as soon as a pod's labels move it into or out of a scope: a new leader should not wait
a minute for its leader's size.

Of several copies that share their work one updates at a time, the holder of one shard: the brakes count the evictions
of a minute in the whole cluster, and a brake in pieces is either too loose or never lets go (decision 0036).
"""

import asyncio
import logging
from collections import Counter as Tally
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.cluster.client import Client
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.leases.fence import Fence
from trimtab.decide.vertical.control.control import CONFLICT_REASON
from trimtab.decide.vertical.control.controllers import ControllerKey, creator_of
from trimtab.decide.vertical.records import RecordedResult, UpdateRecord, recorded_loop
from trimtab.decide.vertical.update.actions import (
    Action,
    ActionResult,
    Evict,
    PodUpdateResult,
    UpdateEvent,
)
from trimtab.decide.vertical.update.disruption_ledger import is_available
from trimtab.decide.vertical.update.eviction_limits import (
    EvictionLimits,
    EvictionLimitSettings,
)
from trimtab.decide.vertical.update.in_place.progress import PROGRESS_REASONS
from trimtab.decide.vertical.update.loop_state import BACKING_OFF, UpdaterSettings, UpdaterState
from trimtab.decide.vertical.update.lost_responses import due_checks, mark_lost, next_check, resolve_lost
from trimtab.decide.vertical.update.refused_replacements import changed_annotations
from trimtab.decide.vertical.update.resize.status import ResizeStatus, reported_status
from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.settings.eviction_limits import BrakeFlags
from trimtab.operator.settings.vertical import VerticalSettings
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.kinds import pod_reference, vpa_reference
from trimtab.operator.vertical.metrics import StepTimer, UpdaterMetrics
from trimtab.operator.vertical.updater.actuator import (
    ActionRateLimiter,
    UpdateActuator,
    WebhookCheck,
    read_live,
)
from trimtab.operator.vertical.updater.refusal_notes import write_refusal_notes
from trimtab.operator.vertical.updater.replacement import Obstacle, ReplacementCheck
from trimtab.operator.vertical.updater.update_counts import count_loop

log = logging.getLogger(__name__)
SETTLE_SECONDS = 1.0
"""A role moves with two label changes; both should be seen before anything is done."""
STAND_BY_SECONDS = 1.0
"""How often a copy that does not lead looks whether it does."""
UPDATING_SHARD = 0
"""The shard whose holder updates."""
SHORTEST_PAUSE = 5.0
"""Between two loops, however often roles move."""


def updater_settings(settings: VerticalSettings) -> UpdaterSettings:
    """Return what the pure update loop needs of the settings."""
    return UpdaterSettings(
        min_replicas=settings.min_replicas,
        eviction_tolerance=settings.eviction_tolerance,
        min_change=settings.pod_update_threshold,
        lifetime_seconds=settings.in_bounds_lifetime.total_seconds(),
        evict_after_oom_seconds=settings.evict_after_oom_threshold.total_seconds(),
        skips_budget_in_place=settings.in_place_skip_disruption_budget,
        ignored_namespaces=tuple(sorted(settings.excluded_namespaces)),
        eviction_limits=brakes_of(settings),
    )


def brakes_of(settings: BrakeFlags) -> EvictionLimitSettings:
    """Return how hard the brakes are set; 0 releases one."""
    return EvictionLimitSettings(
        max_evictions_per_minute=settings.max_evictions_per_minute or None,
        max_share_per_minute=settings.max_evicted_share_per_minute or None,
        max_missing_per_controller=settings.max_missing_pods or None,
        max_ineffective=settings.fruitless_evictions or None,
        ineffective_pause_seconds=round(settings.fruitless_eviction_pause.total_seconds()),
        backoff_seconds=round(settings.refused_eviction_backoff.total_seconds()),
        max_backoff_seconds=round(settings.refused_eviction_backoff_limit.total_seconds()),
    )


@dataclass(frozen=True)
class UpdaterDeps:
    """What the updater works with."""

    clock: Clock
    client: Client
    fence: Fence
    view: ClusterView
    proof: WebhookCheck
    events: EventRecorder
    metrics: UpdaterMetrics
    replacement: Callable[[], ReplacementCheck | None] = lambda: None
    """Makes the check that one loop asks before it evicts; none believes that every pod comes back."""


class Updater:
    """The component; `step` is one loop."""

    name = "updater"

    def __init__(self, tools: UpdaterDeps, settings: VerticalSettings) -> None:
        self._clock = tools.clock
        self._client = tools.client
        self._fence = tools.fence
        self._view = tools.view
        self._proof = tools.proof
        self._events = tools.events
        self._metrics = tools.metrics
        self._replacement = tools.replacement
        self._settings = settings
        self._updating = updater_settings(settings)
        self._evictions, self._resizes = (
            ActionRateLimiter(tools.clock, settings.eviction_rate_limit, settings.eviction_rate_burst)
            for _ in range(2)
        )
        self._state = UpdaterState(
            eviction_limits=cautious(tools.clock.now(), self._updating.eviction_limits)
        )
        self._verdicts: Mapping[str, PodUpdateResult] = {}
        self._kept: dict[str, PodUpdateResult] = {}
        """Pods that would not come back, and why."""
        self._problems: dict[str, str] = {"updater": "no loop is complete yet"}
        self._wake = asyncio.Event()
        self._is_updating = False
        self._record: UpdateRecord | None = None
        self._short_of_budget: frozenset[ControllerKey] = frozenset()
        self._again_at: datetime | None = None
        tools.view.pods.subscribe(self._on_pod)
        tools.view.vpas.subscribe(self._on_vpa)

    @property
    def record(self) -> UpdateRecord | None:
        """Return the last loop with everything it depended on, for replay."""
        return self._record

    def verdict(self, pod: str) -> PodUpdateResult | None:
        """Return what the last loop did with a pod and why, by `namespace/name`."""
        return self._verdicts.get(pod)

    def health(self) -> dict[str, str]:
        """Return what is wrong, by name."""
        return {**self._view.problems(), **self._problems}

    async def run(self) -> None:
        """Update pods until cancelled."""
        await self._view.wait_synced()
        while True:
            if not self._fence.may_write():
                await self._stand_by()
            self._wake.clear()
            await self._step_safely()
            await self._clock.sleep(SHORTEST_PAUSE)
            await self._wait(self._pause() - SHORTEST_PAUSE)

    def shard_gained(self, shard: int) -> None:
        """Do nothing: `run` looks whether it may."""

    def shard_lost(self, shard: int) -> None:
        """Do nothing: the next action of a loop under way finds the fence closed, and ends the loop."""

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether an action may be under way."""
        return shard == UPDATING_SHARD and self._is_updating

    async def _stand_by(self) -> None:
        """Wait for the lease, and then be as careful as any fresh process."""
        self._problems = {}
        while not self._fence.may_write():
            await self._clock.sleep(STAND_BY_SECONDS)
        self._state = UpdaterState(
            eviction_limits=cautious(self._clock.now(), self._updating.eviction_limits)
        )

    def _pause(self) -> float:
        """Return the seconds until the next loop, which something that is due brings forward."""
        interval = self._settings.updater_interval.total_seconds()
        due = [moment for moment in (self._again_at, next_check(self._state)) if moment is not None]
        if not due:
            return interval
        return min(interval, (min(due) - self._clock.now()).total_seconds() + SHORTEST_PAUSE)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._wake.wait()
        except TimeoutError:
            return
        await self._clock.sleep(SETTLE_SECONDS)

    async def _step_safely(self) -> None:
        self._is_updating = True
        try:
            await self.step()
        except errors.ClusterError as error:
            self._problems["updater"] = str(error)
            log.warning("updater loop: %s", error)
        except (
            Exception
        ) as error:  # whatever is wrong with one loop, the next one starts from what is true then
            self._problems["updater"] = f"the last loop failed: {error}"
            log.exception("updater loop")
        finally:
            self._is_updating = False

    async def step(self) -> UpdateRecord | None:
        """Run one loop; None if the caches are not complete, for a pod that is not seen may be the only other one."""
        if not self._view.has_synced:
            self._problems["updater"] = "waiting for the caches"
            return None
        timer = StepTimer(self._clock, self._metrics.steps)
        serves_resize = await self._view.serves_resize()
        timer.step("ListVPAs")
        await self._read_lost()
        observation = await self._view.observation(serves_resize=serves_resize)
        timer.step("ListPods")
        until = self._clock.monotonic() + self._settings.updater_interval.total_seconds()
        performer = UpdateActuator(
            self._client, self._evictions, self._resizes, self._proof, until, self._replacement()
        )
        loop = recorded_loop(
            observation, self._state, self._clock.now(), self._updating, self._view.gates, self._view.compat
        )
        found = await _carry_out(loop, performer, timer)
        self._take(found, performer)
        if self._view.compat.sizes_are_admissible and not self._client.is_dry_run:
            await self._note_refusals(found, performer)
        timer.step("EvictPods")
        timer.total()
        return found.record

    async def _read_lost(self) -> None:
        """Read the pods of lost answers from the server: the cache may be behind what was carried out."""
        now = self._clock.now()
        uids = due_checks(self._state, now)
        if not uids:
            return
        read = {}
        for pod in [pod for pod in self._view.pods if pod.metadata.uid in uids]:
            try:
                read[pod.metadata.uid] = await read_live(self._client, pod)
            except errors.ClusterError as error:
                log.warning("pod %s, whose answer was lost, cannot be read: %s", pod.metadata.key, error)
        self._state = resolve_lost(self._state, read, now)

    def _take(self, found: RecordedResult, performer: UpdateActuator) -> None:
        if not self._client.is_dry_run:  # what was not done must not be remembered as done
            self._state = mark_lost(found.result.state, performer.lost)
        self._record = found.record
        self._short_of_budget = found.result.short_of_budget
        self._again_at = found.result.requeue_at
        self._verdicts = {verdict.pod: verdict for verdict in found.result.pod_results}
        self._problems = {"admission": performer.unproved} if performer.unproved else {}
        if performer.unproved:
            self._metrics.admission_invalid.labels(self._settings.admission_check).inc()
        for event in found.result.events:
            self._tell(event)
        # Until the next try the reason of the last one holds.
        self._kept = {
            pod: verdict
            for pod, verdict in self._kept.items()
            if pod in self._verdicts and self._verdicts[pod].reason == BACKING_OFF
        }
        for action, obstacle in performer.obstacles:
            self._keep(action, obstacle)
        self._verdicts = {**self._verdicts, **self._kept}
        sizes = Tally(verdict.vpa for verdict in self._verdicts.values() if verdict.vpa)
        count_loop(self._metrics, sizes, performer.done, self._mode)

    async def _note_refusals(self, found: RecordedResult, performer: UpdateActuator) -> None:
        """Leave on pods why they stay, for the recommender, which writes the conditions of VPAs."""
        check = performer.replacement
        to_evict = found.result.to_evict if check is not None and check.creates else frozenset()
        asked = {**found.result.inadmissible, **performer.replacements}
        notes = changed_annotations(found.record.observation.pods, asked, to_evict)
        await write_refusal_notes(self._client, notes)

    def _keep(self, action: Evict, obstacle: Obstacle) -> None:
        """Say on the VPA, and in the pod's verdict, why a pod is not evicted."""
        verdict = PodUpdateResult(
            pod=action.pod.metadata.key, vpa=action.vpa.key, action="none", reason=obstacle.message
        )
        self._kept[verdict.pod] = verdict
        self._events.event(vpa_reference(action.vpa), "Warning", obstacle.reason, obstacle.message)

    def _tell(self, event: UpdateEvent) -> None:
        if event.reason == CONFLICT_REASON:
            return  # the recommender tells of conflicts; twice would be noise
        namespace, _, name = event.object.partition("/")
        if event.kind == "Pod":
            pod = self._view.pods.get(name, namespace)
            about = pod_reference(pod) if pod else None
        else:
            vpa = self._view.vpas.get(name, namespace)
            about = vpa_reference(vpa) if vpa else None
        if about is not None:
            self._events.event(about, event.type, event.reason, event.message)
        if event.reason in PROGRESS_REASONS:
            facts = {"pod": event.object, "reason": event.reason, "message": event.message}
            log.info("resize", extra={"facts": facts})

    def _on_pod(self, delta: Delta[Pod]) -> None:
        if delta.change is not CacheEvent.UPDATED or delta.old is None or delta.new is None:
            return
        if self._frees_budget(delta.old, delta.new):
            self._wake.set()
            return
        old, new = delta.old.metadata, delta.new.metadata
        if old.labels == new.labels:
            return
        for scope in self._view.scopes():
            if scope.metadata.namespace == new.namespace and _tells_apart(
                scope.spec.pod_selector, old.labels, new.labels
            ):
                self._wake.set()
                return

    def _frees_budget(self, old: Pod, new: Pod) -> bool:
        """Return whether a pod is up again that a pod with a role waits for, or a resize was refused just now."""
        now = self._clock.now()
        if reported_status(new) is ResizeStatus.ERROR:
            return reported_status(old) is not ResizeStatus.ERROR
        if not self._short_of_budget or creator_of(new) not in self._short_of_budget:
            return False
        return is_available(new, None, now) and not is_available(old, None, now)

    def _on_vpa(self, delta: Delta[VerticalPodAutoscaler]) -> None:
        """Look at once when a role has its first recommendation, or its first one under an edited scope."""
        old, new = delta.old, delta.new
        if old is None or new is None or new.spec.vpa_scope is None or new.status.recommendation is None:
            return
        before, after = old.status, new.status
        is_first = before.recommendation is None or not before.recommendation.container_recommendations
        if is_first or before.observed_selector_hash != after.observed_selector_hash:
            self._wake.set()

    def _mode(self, key: str) -> str:
        namespace, _, name = key.partition("/")
        vpa = self._view.vpas.get(name, namespace)
        policy = vpa.spec.update_policy if vpa else None
        return (policy.update_mode if policy else None) or "Recreate"


async def _carry_out(
    loop: Generator[Action, ActionResult, RecordedResult], performer: UpdateActuator, timer: StepTimer
) -> RecordedResult:
    """Perform what a loop asks for, one action after the other, and return what came of it."""
    outcome: ActionResult | None = None
    try:
        while True:
            action = next(loop) if outcome is None else loop.send(outcome)
            if outcome is None:
                timer.step("FilterPods")
                timer.step("AdmissionInit")
            outcome = await performer.perform(action)
    except StopIteration as end:
        if outcome is None:  # nothing to do
            timer.step("FilterPods")
            timer.step("AdmissionInit")
        found: RecordedResult = end.value
        return found
    finally:
        loop.close()


def cautious(now: datetime, limits: EvictionLimitSettings) -> EvictionLimits:
    """Return what a fresh process assumes: that its predecessor used up this minute's evictions.

    It cannot know, and a process that crashes after every eviction would otherwise have no limit at all.
    """
    return EvictionLimits(evictions=(now,) * (limits.max_evictions_per_minute or 0))


def _tells_apart(selector: LabelSelector | None, old: dict[str, str], new: dict[str, str]) -> bool:
    if selector is None:
        return False
    try:
        compiled = Selector.from_label_selector(selector)
    except SelectorError:
        return False
    return compiled.matches(old) != compiled.matches(new)
