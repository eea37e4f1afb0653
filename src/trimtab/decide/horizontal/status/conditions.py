"""What a decision leaves in the status and tells in events.

`Report` collects the conditions and events of one decision, in upstream's order. `report_on` walks a decision for it: the spec, the
caches, the scale, the pods, the metrics, and what each limit made of the number. Texts that need no fact are cells of `reasons.ROWS`.
"""

from datetime import datetime

import msgspec

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.decision import Decision, EventToRecord, Proposed
from trimtab.decide.horizontal.memory import Memory
from trimtab.decide.horizontal.metrics.combine import LossFallback, describe_fallback
from trimtab.decide.horizontal.metrics.kinds import counts_pods
from trimtab.decide.horizontal.observation.observation import NO_RIVALS, NOT_READ, Observation, ScaleFailure
from trimtab.decide.horizontal.observation.plugin_answers import PolicyAnswer
from trimtab.decide.horizontal.reasons import READY, ROWS, WITHIN_RANGE, Code, Count, Reason, Set, describe
from trimtab.decide.horizontal.selection.selection import expected_pods, select_pods
from trimtab.decide.horizontal.selection.selector_check import AMBIGUOUS
from trimtab.decide.horizontal.status.generations import condition_generation, must_write
from trimtab.decide.horizontal.status.ignored_fields import (
    annotation_problem,
    ignored_annotation_events,
    ignored_fields_condition,
)
from trimtab.model.hpa.types import (
    ConditionType,
    HorizontalPodAutoscalerStatus,
    HpaCondition,
    LossPolicy,
    SelectionStrategy,
)
from trimtab.model.readable import counted

ABLE_TO_SCALE = ConditionType.ABLE_TO_SCALE.value
SCALING_ACTIVE = ConditionType.SCALING_ACTIVE.value
SCALED_TO_ZERO = ConditionType.SCALED_TO_ZERO.value
METRIC_LOST = ConditionType.METRIC_LOST.value
SELECTION_FALLBACK = ConditionType.SELECTION_FALLBACK.value
EXTRA_PODS = ConditionType.EXTRA_PODS.value
FIELDS_IGNORED = ConditionType.FIELDS_IGNORED.value
CACHES_STALE = ConditionType.CACHES_STALE.value
PLUGIN_FAILED = ConditionType.PLUGIN_FAILED.value
BESIDE_NATIVE = ConditionType.BESIDE_NATIVE.value
NATIVE_UNSEEN = ConditionType.NATIVE_UNSEEN.value

FAILED_GET_SCALE = "FailedGetScale"
UNKNOWN_ANNOTATION = "UnknownAnnotation"
COUNTED_FROM = "the HPA was able to successfully calculate a replica count from "
"""What precedes the metric or the replica policy that decides, in the condition ScalingActive."""

SET_SCALED_TO_ZERO = Set(
    SCALED_TO_ZERO, "True", "ScaledToZero", "the HPA controller scaled the workload to zero"
)
UNSET_SCALED_TO_ZERO = Set(
    SCALED_TO_ZERO, "False", "NotScaledToZero", "the HPA controller did not scale the workload to zero"
)
_SCALE_READ = Set(
    ABLE_TO_SCALE,
    "True",
    "SucceededGetScale",
    "the HPA controller was able to get the target's current scale",
)
UNABLE_TO_GET = "the HPA controller was unable to get the target's current scale: "
_ALL_READ = "every metric that has a loss policy can be read"


class Conditions:
    """The conditions of one status while it is being decided."""

    __slots__ = ("_generation", "_items", "_now", "_types")

    def __init__(
        self, conditions: tuple[HpaCondition, ...], now: datetime, generation: int | None = None
    ) -> None:
        """Start with the conditions that the status had.

        Each condition that is set describes `generation`; with None it keeps the generation that it has.
        """
        self._items = list(conditions)
        self._types = [condition.type for condition in conditions]
        self._now = now
        self._generation = generation

    def set(self, kind: str, status: str, reason: str, message: str) -> None:
        """Set a condition in its place, or add it at the end.

        Its time moves only when its status does.
        """
        moved: datetime | None = self._now
        generation = self._generation
        index = self._types.index(kind) if kind in self._types else None
        if index is not None:
            old = self._items[index]
            if generation is None:
                generation = old.observed_generation
            if old.status == status:
                if old.reason == reason and old.message == message and old.observed_generation == generation:
                    return
                moved = old.last_transition_time
        new = HpaCondition(
            type=kind,
            status=status,
            last_transition_time=moved,
            reason=reason,
            message=message,
            observed_generation=generation,
        )
        if index is None:
            self._types.append(kind)
            self._items.append(new)
        else:
            self._items[index] = new

    def remove(self, kind: str) -> None:
        """Remove a condition."""
        self._items = [condition for condition in self._items if condition.type != kind]
        self._types = [condition.type for condition in self._items]

    def done(self) -> tuple[HpaCondition, ...]:
        """Return the conditions in their order."""
        return tuple(self._items)


def with_scaled_to_zero(
    status: HorizontalPodAutoscalerStatus, now: datetime, generation: int | None = None
) -> HorizontalPodAutoscalerStatus:
    """Return the status with `ScaledToZero` set to True."""
    conditions = Conditions(status.conditions, now, generation)
    conditions.set(*SET_SCALED_TO_ZERO)
    return msgspec.structs.replace(status, conditions=conditions.done())


class Report(Conditions):
    """The conditions and events of one decision, and the memory of the events."""

    __slots__ = ("_seen", "events", "late_events", "memory", "now")

    def __init__(self, seen: Observation, memory: Memory, now: float) -> None:
        """Start from the observed status."""
        before = seen.hpa.status.conditions
        super().__init__(before, wire_time(now), condition_generation(seen))
        self._seen, self.memory, self.now = seen, memory, now
        self.events: tuple[EventToRecord, ...] = ()
        self.late_events = 0
        """How many of the last events are emitted after the status is written."""

    def was(self, kind: str) -> bool:
        """Return whether a condition of the observed status is True."""
        found = self._seen.hpa.status.condition(kind) if kind in self._types else None
        return found is not None and found.status == "True"

    def has(self, kind: str) -> bool:
        """Return whether there is a condition."""
        return kind in self._types

    def turn(self, kind: str, reason: str, message: str, warning: str = "") -> None:
        """Set a condition while there is a message, with an event of the reason `warning`, and remove it afterwards."""
        if message:
            self.set(kind, "True", reason, message)
            if warning:
                self.warn(warning, message, is_limited=True)
        elif kind in self._types and self.was(kind):
            self.remove(kind)

    def tell(self, reason: str, message: str, *, is_limited: bool = False) -> None:
        """Emit a normal event. One that would repeat in every sync `is_limited` to once per interval."""
        self._emit(EventToRecord(type="Normal", reason=reason, message=message), is_limited=is_limited)

    def warn(self, reason: str, message: str, *, is_limited: bool = False, is_late: bool = False) -> None:
        """Emit a warning, which `is_late` if it follows the write of the status."""
        self._emit(EventToRecord(type="Warning", reason=reason, message=message), is_limited=is_limited)
        self.late_events += is_late

    def _emit(self, event: EventToRecord, *, is_limited: bool) -> None:
        if is_limited and self._seen.rules.ours:
            times = self.memory.last_event_times
            last = times.get(event.reason)
            if last is not None and 0 <= self.now - last < self._seen.settings.event_interval:
                return
            times = times | {event.reason: self.now}
            self.memory = msgspec.structs.replace(self.memory, last_event_times=times)
        self.events = (*self.events, event)


def report_on(
    proposed: Proposed,
    answers: tuple[PolicyAnswer, ...],
    result: Reason | tuple[Count, ...],
    memory: Memory,
) -> Report:
    """Report a decision that ends with a reason, or with the counts of its steps."""
    seen, metrics = proposed.seen, proposed.metrics
    report = Report(seen, memory, proposed.now)
    _report_spec(report, proposed)
    message = ""
    if seen.stale_inputs and seen.rules.ours:
        stale = "; ".join(cache.message for cache in seen.stale_inputs)
        message = f"replicas are not lowered, because recent changes may be unknown: {stale}"
    report.turn(CACHES_STALE, "CacheTooOld", message, CACHES_STALE)
    if seen.scale is None:
        message = advised(seen, seen.scale_failure or NOT_READ)
        report.warn(FAILED_GET_SCALE, message)
        report.set(ABLE_TO_SCALE, "False", FAILED_GET_SCALE, f"{UNABLE_TO_GET}{message}")
        return report
    able, limited = _SCALE_READ, None
    if not isinstance(result, Reason) and not proposed.is_bound:
        able, limited = _limits_of(result)
    report.set(*able)
    _report_scale(report, proposed)
    if seen.rivals != NO_RIVALS or report.has(BESIDE_NATIVE) or report.has(NATIVE_UNSEEN):
        _report_rivals(report, seen, is_held=isinstance(result, Reason) and result.code is Code.BESIDE_NATIVE)
    if isinstance(result, Reason) and result.code is Code.PAUSED:
        _report_pause(report, seen)
    if proposed.selection is None:
        return report  # the bounds decide, or the target is paused
    _report_pods(report, proposed)
    if proposed.problem is not None:
        problem = proposed.problem
        report.warn(problem.event, problem.error, is_limited=problem.reason == AMBIGUOUS)
        report.set(SCALING_ACTIVE, "False", problem.reason, problem.message)
    else:
        for reason, message in ignored_annotation_events(seen):
            report.warn(reason, message, is_limited=True)
        if answers or report.was(PLUGIN_FAILED):
            _report_policies(report, answers)
        _report_metrics(report, proposed)
    if limited is not None:
        report.set(*limited)
    elif not isinstance(result, Reason):  # a raised minimum wakes a workload that cannot be measured
        report.warn("FailedComputeMetricsReplicas", metrics.error)
    elif not metrics.is_warming_up:
        is_limited = result.code is Code.AMBIGUOUS
        report.warn("FailedComputeMetricsReplicas", metrics.error, is_limited=is_limited, is_late=True)
    return report


def _limits_of(counts: tuple[Count, ...]) -> tuple[Set, Set]:
    """Return the conditions AbleToScale and ScalingLimited. The last step that has one says what it is."""
    able, limited, before = READY, WITHIN_RANGE, counts[0]
    for count in counts:
        if count is not before:
            for change in ROWS[count.why.code].conditions:
                if change.type == ABLE_TO_SCALE and isinstance(change, Set):
                    able = change
                elif isinstance(change, Set):
                    limited = change
            before = count
    return able, limited


def _report_spec(report: Report, proposed: Proposed) -> None:
    """Report the selection strategy, and fields and annotations without effect."""
    seen, strategy, before = proposed.seen, proposed.strategy, proposed.memory.strategy
    is_changed = bool(before) and before != strategy
    if seen.gates.hpa_selection_strategy:
        if is_changed:
            message = f"Pod selection strategy changed from '{before}' to '{strategy}'"
            report.tell("StrategyChanged", message)
        # A strategy that cannot be applied now is not active. Its event comes with the end of the fallback.
        is_new = strategy != SelectionStrategy.LABEL_SELECTOR and (is_changed or _is_new_spec(proposed))
        if is_new and not (proposed.selection or select_pods(seen, strategy)).fallback:
            _tell_active(report, strategy)
    if seen.rules.ours:
        report.turn(FIELDS_IGNORED, *ignored_fields_condition(seen))


def _is_new_spec(proposed: Proposed) -> bool:
    """Return whether no status describes this generation of the spec yet.

    Native HPAs have a generation since Kubernetes 1.37. Without one, or where no status names it, only a strategy that was not
    in force before is new. An annotation that names a strategy changes no generation.
    """
    hpa = proposed.seen.hpa
    if not hpa.metadata.generation or proposed.seen.rules.minor < 37:
        return proposed.memory.strategy != proposed.strategy
    return hpa.metadata.generation != hpa.status.observed_generation


def _tell_active(report: Report, strategy: str) -> None:
    report.tell("SelectionStrategyActive", f"Pod selection strategy '{strategy}' is active")


def _report_pause(report: Report, seen: Observation) -> None:
    for change in ROWS[Code.PAUSED].conditions:
        if isinstance(change, Set):
            report.set(*change)
        else:
            report.remove(change.type)
    if not seen.gates.hpa_scale_to_zero and not seen.rules.ours:
        report.remove(SCALED_TO_ZERO)


def _report_rivals(report: Report, seen: Observation, *, is_held: bool) -> None:
    """Report native HPAs on the same target, or why they cannot be seen."""
    rivals, message, reason = seen.rivals, "", ""
    if rivals.hpas:
        reason = "ScaledObject" if any(rival.scaled_object for rival in rivals.hpas) else "NativeHPA"
        message = describe(Reason(code=Code.BESIDE_NATIVE, facts=rivals)) if is_held else str(rivals)
    report.turn(BESIDE_NATIVE, reason, message, BESIDE_NATIVE)
    if is_held:
        report.set(SCALING_ACTIVE, "False", BESIDE_NATIVE, message)
    unseen = rivals.unseen and f"whether a native HPA scales the same target cannot be seen: {rivals.unseen}"
    report.turn(NATIVE_UNSEEN, "NotListed", unseen, NATIVE_UNSEEN)


def _report_policies(report: Report, answers: tuple[PolicyAnswer, ...]) -> None:
    failed = [answer for answer in answers if answer.failure]
    failures = "; ".join(answer.failure for answer in failed)
    message = failures and f"replicas are not lowered: {failures}"
    report.turn(PLUGIN_FAILED, failed[0].reason if failed else "", message, PLUGIN_FAILED)


def advised(seen: Observation, failure: ScaleFailure) -> str:
    """Return why a scale could not be read, with the advice that is ours."""
    is_advised = failure.advice and seen.rules.ours
    return f"{failure.message}; {failure.advice}" if is_advised else failure.message


def _report_scale(report: Report, proposed: Proposed) -> None:
    seen, before, current = proposed.seen, proposed.memory.replicas, proposed.seen.current
    if before is not None and before != current and seen.rules.ours:
        message = f"replicas changed from {before} to {current} outside this autoscaler"
        report.tell("ReplicasChangedElsewhere", message, is_limited=True)
    if report.was(SCALED_TO_ZERO) and seen.rules.ours and (current or seen.has_other_target):
        report.set(*UNSET_SCALED_TO_ZERO)


def _report_pods(report: Report, proposed: Proposed) -> None:
    """Report pods that the target does not own, and a filter that cannot decide."""
    seen, selection, extra = proposed.seen, proposed.selection, proposed.extra_pods
    assert seen.scale is not None
    assert selection is not None
    message = (
        ""
        if not extra
        else (
            f"the selector of the target matches {counted(expected_pods(seen.scale) + extra, 'active pod')}, {extra} more than the "
            "target has; the usage of all of them is averaged: give the others labels of their own, or set selectionStrategy "
            "to OwnerReference"
        )
    )
    if seen.rules.ours:
        report.turn(EXTRA_PODS, "SelectorOverlap", message)
    if selection.fallback:
        is_held = seen.rules.ours and counts_pods(seen.hpa.spec.metrics)
        lowered = ", and replicas are not lowered" if is_held else ""
        message = f"all pods that match the selector are counted{lowered}: {selection.fallback}"
        reason = seen.filter_answer.reason if seen.filter_answer else "OwnersUnreadable"
        report.turn(SELECTION_FALLBACK, reason, message, "PodSelectionFallback")
    elif report.was(SELECTION_FALLBACK):
        report.remove(SELECTION_FALLBACK)
        if proposed.strategy != SelectionStrategy.LABEL_SELECTOR:
            _tell_active(report, proposed.strategy)


def _report_metrics(report: Report, proposed: Proposed) -> None:
    """Emit an event per failed metric, and set the conditions MetricLost and ScalingActive."""
    metrics, blocker = proposed.metrics, proposed.metrics.blocked_by
    for failure in metrics.failures:
        if not failure.is_warming_up:
            report.warn(failure.reason, failure.message)
    if metrics.fallbacks or report.has(METRIC_LOST):
        _report_loss(report, proposed)
    if blocker is None:
        report.set(SCALING_ACTIVE, "True", "ValidMetricFound", f"{COUNTED_FROM}{metrics.name}")
    elif blocker.is_warming_up:
        message = f"the HPA waits for the first samples of its pods: {blocker.message}"
        report.set(SCALING_ACTIVE, "False", Code.WARMING_UP.value, message)
    else:
        message = f"the HPA was unable to compute the replica count: {blocker.message}"
        report.set(SCALING_ACTIVE, "False", blocker.reason, message)


def _report_loss(report: Report, proposed: Proposed) -> None:
    fallbacks = proposed.metrics.fallbacks
    if fallbacks:
        message = "; ".join(
            f"{fallback.type} metric {fallback.label} cannot be read: {describe_fallback(fallback)}"
            for fallback in fallbacks
        )
        report.turn(METRIC_LOST, _loss_reason(fallbacks[0]), message, "MetricLost")
    elif not any(metric.on_loss for metric in proposed.seen.hpa.spec.metrics):
        report.remove(METRIC_LOST)
    elif report.was(METRIC_LOST):
        report.set(METRIC_LOST, "False", "EveryMetricRead", _ALL_READ)
        report.tell("MetricFound", _ALL_READ)


def _loss_reason(fallback: LossFallback) -> str:
    if fallback.policy == LossPolicy.LAST_GOOD:
        return "LastGoodValueTooOld" if fallback.replicas is None else "LastGoodValue"
    return "MetricIgnored" if fallback.policy == LossPolicy.IGNORE else "FallBackReplicas"


def as_dry_run(seen: Observation, decision: Decision) -> Decision:
    """Return the decision with its scale write turned into a sentence of the status."""
    problem = annotation_problem(seen.hpa, seen.gates)
    if decision.scale_to is None and not problem:
        return decision
    message = f"dry run: would scale from {decision.current} to {decision.scale_to}: {decision.because}"
    if decision.scale_to is None:
        message = "nothing would be scaled now"
    held = Set(ABLE_TO_SCALE, "True", "DryRun", message)
    if problem:
        message = f"{problem}; nothing is scaled until then. {message}"
        held = Set(ABLE_TO_SCALE, "False", UNKNOWN_ANNOTATION, message)
    conditions = Conditions(decision.status.conditions, wire_time(decision.now), condition_generation(seen))
    conditions.set(*held)
    status = msgspec.structs.replace(
        decision.status, conditions=conditions.done(), desired_replicas=decision.desired
    )
    return msgspec.structs.replace(
        decision,
        scale_to=None,
        intent=None,
        status=status,
        status_changed=must_write(status, seen.hpa.status),
        observed_desired=decision.desired,
    )
