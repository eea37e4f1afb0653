"""The updater: observes the cluster, lets `trimtab.decide.vertical.update` decide, and carries the actions out.

A step runs per interval, and early when a pod enters or leaves a scope, so that a new leader gets its size at once.
Only one replica updates at a time, because the eviction limits count evictions per minute in the whole cluster
(docs/decisions/shard-work-by-lease-and-fence-every-write.md).
"""

import logging
from collections import Counter as Tally
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.client import Client
from trimtab.cluster.events import EventRecorder
from trimtab.cluster.leases.fence import Fence
from trimtab.decide.vertical.control.control import CONFLICT_REASON
from trimtab.decide.vertical.control.controllers import ControllerKey, creator_of
from trimtab.decide.vertical.records import RecordedResult, UpdateRecord, recorded_loop
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict, PodUpdateResult, UpdateEvent
from trimtab.decide.vertical.update.disruption_ledger import is_available
from trimtab.decide.vertical.update.eviction_limits import EvictionLimits, EvictionLimitSettings
from trimtab.decide.vertical.update.in_place.resize_request import PROGRESS_REASONS
from trimtab.decide.vertical.update.loop_state import BACKING_OFF, UpdaterSettings, UpdaterState
from trimtab.decide.vertical.update.lost_responses import due_checks, mark_lost, next_check, resolve_lost
from trimtab.decide.vertical.update.refused_replacements import changed_annotations
from trimtab.decide.vertical.update.resize.status import ResizeStatus, reported_status
from trimtab.model.author import Author
from trimtab.model.core.meta import NamespacedName
from trimtab.model.core.pod import Pod
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler, VPAConditionType
from trimtab.operator.control_loop import NOT_STARTED, ControlLoop, ControlLoopMetrics
from trimtab.operator.settings.settings import NamespaceRules
from trimtab.operator.settings.vertical import UpdaterLoopSettings
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.kinds import pod_reference, vpa_reference
from trimtab.operator.vertical.metrics import StepTimer, UpdaterMetrics
from trimtab.operator.vertical.updater.actuator import (
    ActionRateLimiter,
    UpdateActuator,
    WebhookCheck,
    read_live,
    write_refusal_notes,
)
from trimtab.operator.vertical.updater.replacement import Obstacle, ReplacementCheck
from trimtab.operator.vertical.updater.update_counts import count_loop

log = logging.getLogger(__name__)


def updater_settings(settings: UpdaterLoopSettings, namespaces: NamespaceRules) -> UpdaterSettings:
    """Return the settings of the pure update loop."""
    return UpdaterSettings(
        min_replicas=settings.min_replicas,
        eviction_tolerance=settings.eviction_tolerance,
        min_change=settings.pod_update_threshold,
        lifetime_seconds=settings.in_bounds_lifetime.total_seconds(),
        evict_after_oom_seconds=settings.evict_after_oom_threshold.total_seconds(),
        skips_budget_in_place=settings.in_place_skip_disruption_budget,
        ignored_namespaces=tuple(sorted(namespaces.excluded)),
        eviction_limits=brakes_of(settings),
    )


def brakes_of(settings: UpdaterLoopSettings) -> EvictionLimitSettings:
    """Return the eviction limits of the flags. 0 switches a limit off."""
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
    """The collaborators of the updater."""

    clock: Clock
    client: Client
    fence: Fence
    view: ClusterView
    webhook_check: WebhookCheck
    events: EventRecorder
    metrics: UpdaterMetrics
    loop_metrics: ControlLoopMetrics
    replacement_check: Callable[[], ReplacementCheck | None] = lambda: None
    """Makes the check of one step. Without a check every evicted pod is expected to come back."""
    author: Callable[[], Author] = Author
    """Returns this replica and its Lease."""


class Updater(ControlLoop):
    """Evicts and resizes pods whose requests differ from their VPA's recommendation."""

    name = "updater"
    min_pause = 5.0
    settle_pause = 1.0
    """A role moves with two label changes."""

    def __init__(self, deps: UpdaterDeps, settings: UpdaterLoopSettings, namespaces: NamespaceRules) -> None:
        super().__init__(deps.clock, deps.fence, settings.updater_interval.total_seconds(), deps.loop_metrics)
        self._deps = deps
        self._client = deps.client
        self._view = deps.view
        self._settings = settings
        self._updating = updater_settings(settings, namespaces)
        self._evictions, self._resizes = (
            ActionRateLimiter(deps.clock, settings.eviction_rate_limit, settings.eviction_rate_burst)
            for _ in range(2)
        )
        self._state = self._initial_state()
        self._verdicts: Mapping[str, PodUpdateResult] = {}
        self._unreplaceable: dict[str, PodUpdateResult] = {}
        """Results of pods whose replacement would fail, by pod."""
        self._problems = {self.name: NOT_STARTED}
        self._record: UpdateRecord | None = None
        self._short_of_budget: frozenset[ControllerKey] = frozenset()
        self._again_at: datetime | None = None
        deps.view.pods.subscribe(self._on_pod)
        deps.view.vpas.subscribe(self._on_vpa)

    @property
    def record(self) -> UpdateRecord | None:
        """Return the last step with all its inputs, for replay."""
        return self._record

    def verdict(self, pod: str) -> PodUpdateResult | None:
        """Return the last result for a pod, by `namespace/name`."""
        return self._verdicts.get(pod)

    def health(self) -> dict[str, str]:
        """Return the problems of the caches and of the last step, by name."""
        return {**self._view.problems(), **self._problems}

    def warnings(self) -> dict[str, str]:
        """Return the namespaces whose pods stay as they are, by name."""
        return self._view.warnings()

    async def start(self) -> None:
        """Wait for the caches."""
        await self._view.wait_synced()

    def lease_acquired(self) -> None:
        """Start over: evictions of the previous leader are not known."""
        self._state = self._initial_state()

    def seconds_to_next(self, began: float) -> float:
        """Return the rest of the interval, or less if a retry is due earlier."""
        now = self._clock.now()
        due = [moment for moment in (self._again_at, next_check(self._state)) if moment is not None]
        return min([self._period - self.min_pause, *((moment - now).total_seconds() for moment in due)])

    def _initial_state(self) -> UpdaterState:
        return UpdaterState(eviction_limits=cautious(self._clock.now(), self._updating.eviction_limits))

    async def step(self) -> UpdateRecord | None:
        """Update pods once, or return None while the caches are incomplete or stale.

        An incomplete cache may hide the only other replica of a workload. Namespaces with a stale cache are left out.
        """
        stale = self._view.stale_namespaces()
        if not self._view.has_synced or "" in stale:
            reason = f" ({stale['']})" if "" in stale else ""
            self._problems[self.name] = f"waiting for the caches{reason}"
            return None
        timer = StepTimer(self._clock, self._deps.metrics.steps)
        serves_resize = await self._view.serves_resize()
        timer.step("ListVPAs")
        await self._read_lost()
        observation = await self._view.observation(serves_resize=serves_resize, without=stale)
        timer.step("ListPods")
        actuator = UpdateActuator(
            self._client,
            self._evictions,
            self._resizes,
            self._deps.webhook_check,
            until=self._clock.monotonic() + self._period,
            replacement=self._deps.replacement_check(),
            author=self._deps.author(),
        )
        loop = recorded_loop(
            observation, self._state, self._clock.now(), self._updating, self._view.gates, self._view.rules
        )
        recorded = await _carry_out(loop, actuator, timer)
        self._apply_result(recorded, actuator)
        if self._view.rules.ours and not self._client.is_dry_run:
            await self._write_refusal_notes(recorded, actuator)
        timer.step("EvictPods")
        timer.total()
        return self._record

    async def _read_lost(self) -> None:
        """Read pods whose last write got no response. The cache may not show that write yet."""
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

    def _apply_result(self, recorded: RecordedResult, actuator: UpdateActuator) -> None:
        result = recorded.result
        if not self._client.is_dry_run:  # a dry run must not remember actions as done
            self._state = mark_lost(result.state, actuator.lost)
        author = actuator.author if actuator.done and not self._client.is_dry_run else None
        self._record = msgspec.structs.replace(recorded.record, author=author)
        self._short_of_budget = result.short_of_budget
        self._again_at = result.requeue_at
        self._problems = {}
        if actuator.webhook_problem:
            self._problems["admission"] = actuator.webhook_problem
            self._deps.metrics.admission_invalid.labels(self._settings.admission_check).inc()
        for event in result.events:
            self._emit(event)
        self._verdicts = self._pod_results(result.pod_results, actuator.obstacles)
        sizes = Tally(verdict.vpa for verdict in self._verdicts.values() if verdict.vpa)
        count_loop(self._deps.metrics, sizes, actuator.done, self._update_mode)

    def _pod_results(
        self, verdicts: Iterable[PodUpdateResult], obstacles: Iterable[tuple[Evict, Obstacle]]
    ) -> dict[str, PodUpdateResult]:
        """Return the result of each pod, with its last obstacle while the updater backs off."""
        results = {verdict.pod: verdict for verdict in verdicts}
        self._unreplaceable = {
            pod: verdict
            for pod, verdict in self._unreplaceable.items()
            if pod in results and results[pod].reason == BACKING_OFF
        }
        for action, obstacle in obstacles:
            pod = action.pod.metadata.key
            self._unreplaceable[pod] = PodUpdateResult(
                pod=pod, vpa=action.vpa.key, action="none", reason=obstacle.message
            )
            self._deps.events.event(vpa_reference(action.vpa), "Warning", obstacle.reason, obstacle.message)
        return results | self._unreplaceable

    async def _write_refusal_notes(self, recorded: RecordedResult, actuator: UpdateActuator) -> None:
        """Annotate pods with the reason why they stay, which the recommender copies into conditions."""
        check, result = actuator.replacement, recorded.result
        to_evict = result.to_evict if check is not None and check.creates else frozenset()
        answers = {**result.inadmissible, **actuator.replacements}
        notes = changed_annotations(recorded.record.observation.pods, answers, to_evict)
        await write_refusal_notes(self._client, notes)

    def _emit(self, event: UpdateEvent) -> None:
        if event.reason == CONFLICT_REASON:
            return  # the recommender emits it
        about = NamespacedName.parse(event.object)
        if event.kind == "Pod":
            pod = self._view.pods.get(about.name, about.namespace)
            reference = pod_reference(pod) if pod else None
        else:
            vpa = self._view.vpas.get(about.name, about.namespace)
            reference = vpa_reference(vpa) if vpa else None
        if reference is not None:
            self._deps.events.event(reference, event.type, event.reason, event.message)
        if event.reason in PROGRESS_REASONS:
            facts = {"pod": event.object, "reason": event.reason, "message": event.message}
            log.info("resize", extra={"facts": facts})

    def _on_pod(self, delta: Delta[Pod]) -> None:
        if delta.change is not CacheEvent.UPDATED or delta.old is None or delta.new is None:
            return
        if self._frees_budget(delta.old, delta.new) or self._changes_scope(delta.old, delta.new):
            self.wake()

    def _frees_budget(self, old: Pod, new: Pod) -> bool:
        """Return whether a pod became available that others wait for, or its resize failed just now."""
        now = self._clock.now()
        if reported_status(new) is ResizeStatus.ERROR:
            return reported_status(old) is not ResizeStatus.ERROR
        if not self._short_of_budget or creator_of(new) not in self._short_of_budget:
            return False
        return is_available(new, None, now) and not is_available(old, None, now)

    def _changes_scope(self, old: Pod, new: Pod) -> bool:
        before, after = old.metadata.labels, new.metadata.labels
        return before != after and any(
            scope.metadata.namespace == new.metadata.namespace
            and _matches_only_one(scope.spec.pod_selector, before, after)
            for scope in self._view.scopes()
        )

    def _on_vpa(self, delta: Delta[VerticalPodAutoscaler]) -> None:
        """Wake on the first recommendation of a role, or the first after an edit of its scope."""
        old, new = delta.old, delta.new
        if old is None or new is None or not new.scope_names or new.status.recommendation is None:
            return
        before, after = old.status, new.status
        is_first = before.recommendation is None or not before.recommendation.container_recommendations
        computed = (status.condition(VPAConditionType.COMPUTED_FOR) for status in (before, after))
        reasons = {condition and condition.reason for condition in computed}
        if is_first or len(reasons) > 1:
            self.wake()

    def _update_mode(self, vpa: NamespacedName) -> str | None:
        """Return the update mode of a VPA, or None if it does not exist."""
        found = self._view.vpas.get(vpa.name, vpa.namespace)
        if found is None:
            return None
        policy = found.spec.update_policy
        return (policy.update_mode if policy else None) or UpdateMode.RECREATE.value


async def _carry_out(
    loop: Generator[Action, ActionResult, RecordedResult], actuator: UpdateActuator, timer: StepTimer
) -> RecordedResult:
    """Perform the actions of a loop in order and return the loop's result."""
    outcome: ActionResult | None = None
    try:
        while True:
            action = next(loop) if outcome is None else loop.send(outcome)
            if outcome is None:
                timer.step("FilterPods")
                timer.step("AdmissionInit")
            outcome = await actuator.perform(action)
    except StopIteration as end:
        if outcome is None:  # no actions
            timer.step("FilterPods")
            timer.step("AdmissionInit")
        recorded: RecordedResult = end.value
        return recorded
    finally:
        loop.close()


def cautious(now: datetime, limits: EvictionLimitSettings) -> EvictionLimits:
    """Return the limits of a fresh process, as if this minute's evictions were used up.

    Otherwise a process that crashes after every eviction would have no limit at all.
    """
    return EvictionLimits(evictions=(now,) * (limits.max_evictions_per_minute or 0))


def _matches_only_one(selector: LabelSelector | None, before: dict[str, str], after: dict[str, str]) -> bool:
    if selector is None:
        return False
    try:
        compiled = Selector.from_label_selector(selector)
    except SelectorError:
        return False
    return compiled.matches(before) != compiled.matches(after)
