"""Advice: what would have to change for the replicas to change, as values.

Advice comes cheapest first, and names every change that is needed together. Tests apply it to the observation and decide again.
"""

from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite

import msgspec

from trimtab.decide.horizontal.behavior.scale_to_zero import (
    can_scale_from_zero,
    effective_min_replicas,
    is_paused,
    is_scaled_to_zero,
)
from trimtab.decide.horizontal.decide import decide
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.explain.holds import Hold, holds_on
from trimtab.decide.horizontal.explain.reason import GROWING, SHRINKING, DecisionReason
from trimtab.decide.horizontal.explain.units import edges_of
from trimtab.decide.horizontal.metrics.combine import LossFallback
from trimtab.decide.horizontal.metrics.kinds import Failure, Proposal
from trimtab.decide.horizontal.observation.observation import Observation, policies_of
from trimtab.decide.horizontal.status.ignored_fields import SCALE_TO_ZERO, SELECTION
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.json.wire import Wire


class Direction(StrEnum):
    """The direction of the replicas once the changes are made."""

    UP = "up"
    DOWN = "down"
    EITHER = "either"
    """The reason goes away; what the metrics ask for then is unknown."""


class Act(StrEnum):
    """The kind of a change."""

    SET = "Set"
    """Write `value` into `field` of the HPA."""
    OPEN_GATE = "OpenGate"
    """Start the operator with the feature gate `value`."""
    METRIC_ABOVE = "MetricAbove"
    METRIC_BELOW = "MetricBelow"
    METRIC_AT_MOST = "MetricAtMost"
    POLICY_ABOVE = "PolicyAbove"
    """The replica policy `value` asks for more than `amount` replicas."""
    POLICY_BELOW = "PolicyBelow"
    """The replica policy `value` asks for fewer than `amount` replicas."""
    KEEP = "Keep"
    """Metrics and replica policies ask for the same for `seconds`."""
    WAIT = "Wait"
    """Metrics and replica policies ask for the same until `until`, when the window or the policies in `field` allow it."""
    READ_METRIC = "ReadMetric"
    READ_OWNERS = "ReadOwners"
    REFRESH_CACHES = "RefreshCaches"
    READ_SCALE = "ReadScale"
    REPORT_SELECTOR = "ReportSelector"
    """The target's scale reports a selector that can be read."""
    REMOVE_CONFLICTING_HPA = "RemoveConflictingHpa"
    REPAIR_PLUGIN = "RepairPlugin"
    """The plug-in works again, which failed for the reason `value`."""
    COUNT_PODS = "CountPods"
    """The selection strategy counts at least one pod."""
    END_ROLLOUT = "EndRollout"
    """The rollout ends, so that the target has as many pods as replicas."""
    RESUME = "Resume"
    """Set the replicas of the target to 1 or more."""
    READY_POD = "ReadyPod"
    SAMPLES = "Samples"
    """The pods without usable samples are measured."""
    FIRST_SAMPLES = "FirstSamples"
    """Pods that just started are measured."""


WINDOW = "stabilizationWindowSeconds"
POLICIES = "policies"


class AdvisedChange(Wire):
    """One change."""

    act: Act
    field: str = ""
    value: str = ""
    metric: int | None = None
    """Index of the metric in the spec."""
    amount: float = 0.0
    """A value of the metric, in the unit of its proposal, or replicas that a policy asks for."""
    seconds: float = 0.0
    until: float | None = None

    @property
    def is_condition(self) -> bool:
        """Return whether a metric or a replica policy makes the change, and no user."""
        return self.metric is not None or self.act in {Act.POLICY_ABOVE, Act.POLICY_BELOW}


class Advice(Wire):
    """Changes that work together, and their outcome."""

    direction: Direction
    changes: tuple[AdvisedChange, ...]
    outcome: int | None = None
    """What the metrics ask for afterwards, where that was computed."""


_READS = {
    DecisionReason.SCALE_UNREADABLE: Act.READ_SCALE,
    DecisionReason.SELECTOR_MISSING: Act.REPORT_SELECTOR,
    DecisionReason.SELECTOR_INVALID: Act.REPORT_SELECTOR,
    DecisionReason.AMBIGUOUS: Act.REMOVE_CONFLICTING_HPA,
    DecisionReason.OWNERS_UNREAD: Act.READ_OWNERS,
    DecisionReason.ALL_LEFT_OUT: Act.COUNT_PODS,
    DecisionReason.CACHES_STALE: Act.REFRESH_CACHES,
    DecisionReason.SURGE: Act.END_ROLLOUT,
}
_UNREAD = {DecisionReason.METRICS_FAILED, DecisionReason.METRICS_INCOMPLETE, DecisionReason.LOSS_POLICY}
_GAPS = {
    DecisionReason.WARMING_UP: Act.FIRST_SAMPLES,
    DecisionReason.NO_READY_PODS: Act.READY_POD,
    DecisionReason.WITHIN_AFTER_FILLING: Act.SAMPLES,
    DecisionReason.DIRECTION_UNSURE: Act.SAMPLES,
}
_MOVING = {
    DecisionReason.SCALES_UP,
    DecisionReason.SCALES_DOWN,
    DecisionReason.EARLIER_RECOMMENDATION,
    DecisionReason.ABOVE_MAXIMUM,
    DecisionReason.BELOW_MINIMUM,
    DecisionReason.SCALE_NOT_WRITTEN,
}


def advise(observation: Observation, decision: Decision, reason: DecisionReason) -> tuple[Advice, ...]:
    """Return the ways to change the replicas, cheapest first.

    Where they change already, return what may have caused it.
    """
    if reason in _MOVING:
        # Growth that other pods may have caused goes away once only the target's own pods count.
        return (
            _own_pods(observation, decision)
            if reason == DecisionReason.SCALES_UP and decision.current
            else ()
        )
    if reason == DecisionReason.PAUSED:
        return (_either(AdvisedChange(act=Act.RESUME)), *_wake(observation))
    if reason == DecisionReason.PLUGIN_FAILED:
        return (_either(AdvisedChange(act=Act.REPAIR_PLUGIN, value=_failure_of(observation))),)
    if reason in _READS:
        return (_either(AdvisedChange(act=_READS[reason])),)
    if reason in _UNREAD:
        return _unread(decision)
    if reason == DecisionReason.WARMING_UP:
        return _gaps(reason)
    by_owner = _own_pods(observation, decision)
    if reason == DecisionReason.AT_MAXIMUM and _is_enough(by_owner, decision.current):
        return by_owner  # a larger maximum would serve the load of other pods
    if reason in GROWING | SHRINKING:
        found = _held(observation, decision, is_up=reason in GROWING)
    else:
        found = (*_gaps(reason), *more(observation, decision), *fewer(observation, decision))
    return (*by_owner, *found)


def more(observation: Observation, decision: Decision) -> tuple[Advice, ...]:
    """Return the ways to more replicas, one per metric and one per replica policy, those of the winner first."""
    trace, current = decision.trace, decision.current
    beside = _beside(observation, decision, is_up=True)
    if beside is None:
        return ()
    metrics = []
    for index, result in enumerate(trace.proposals):
        edge = edges_of(result, trace.tolerance, current).up if isinstance(result, Proposal) else None
        if edge is not None and isfinite(edge):
            metrics.append(AdvisedChange(act=Act.METRIC_ABOVE, metric=index, amount=edge))
    policies = [
        AdvisedChange(act=Act.POLICY_ABOVE, value=answer.plugin, amount=current)
        for answer in observation.policy_answers
        if not answer.failure
    ]
    return tuple(
        Advice(direction=Direction.UP, changes=(rises, *beside))
        for rises in _winner_first(decision, metrics, policies)
    )


def fewer(observation: Observation, decision: Decision) -> tuple[Advice, ...]:
    """Return the way to fewer replicas, which every metric and every replica policy has to ask for."""
    beside = _beside(observation, decision, is_up=False) if decision.current else None
    if beside is None or _keeps_replicas(decision):
        return ()
    changes: list[AdvisedChange] = []
    for index, result in enumerate(decision.trace.proposals):
        if isinstance(result, Proposal):
            falls = _falls(result, index, decision)
            if falls is None:
                return ()
            changes.append(falls)
        elif isinstance(result, Failure) or _fallback_keeps_replicas(result, decision.current):
            return ()
    policies = [
        AdvisedChange(act=Act.POLICY_BELOW, value=answer.plugin, amount=decision.current)
        for answer in observation.policy_answers
        if answer.replicas is not None and answer.replicas >= decision.current
    ]
    asked = _winner_first(decision, changes, policies)
    return (Advice(direction=Direction.DOWN, changes=(*asked, *beside)),) if asked else ()


def _winner_first(
    decision: Decision, metrics: list[AdvisedChange], policies: list[AdvisedChange]
) -> list[AdvisedChange]:
    return metrics + policies if decision.trace.winning_policy is None else policies + metrics


def _keeps_replicas(decision: Decision) -> bool:
    """Return whether the replicas are not lowered, whatever metrics and policies ask for."""
    trace = decision.trace
    is_held = bool(trace.selection_fallback or trace.stale_hold or trace.policy_hold)
    # Without a metric that asks for replicas, a replica policy may only ask for more.
    return is_held or all(
        isinstance(result, Failure) or result.replicas is None for result in trace.proposals
    )


def _fallback_keeps_replicas(fallback: LossFallback, current: int) -> bool:
    """Return whether a metric that was lost keeps the replicas."""
    # Only metrics that were read may bring a workload to zero.
    return fallback.holds or current == 1 or (fallback.replicas is not None and fallback.replicas >= current)


def _falls(proposal: Proposal, index: int, decision: Decision) -> AdvisedChange | None:
    """Return how far a metric must fall to ask for fewer replicas, or None if no value does."""
    edges = edges_of(proposal, decision.trace.tolerance, decision.current)
    if edges.down < 0 or (edges.down == 0 and not edges.includes_down):
        return None
    act = Act.METRIC_AT_MOST if edges.includes_down else Act.METRIC_BELOW
    return AdvisedChange(act=act, metric=index, amount=edges.down)


def _held(observation: Observation, decision: Decision, *, is_up: bool) -> tuple[Advice, ...]:
    changes = _beside(observation, decision, is_up=is_up)
    direction = Direction.UP if is_up else Direction.DOWN
    return (Advice(direction=direction, changes=changes),) if changes else ()


def _beside(observation: Observation, decision: Decision, *, is_up: bool) -> tuple[AdvisedChange, ...] | None:
    """Return the changes that release the replicas in a direction, or None if none can."""
    changes: list[AdvisedChange] = []
    for hold in holds_on(observation, decision, is_up=is_up):
        found = _release(observation, decision, hold)
        if found is None:
            return None
        changes += found
    return tuple(changes)


def _release(observation: Observation, decision: Decision, hold: Hold) -> list[AdvisedChange] | None:
    current = decision.current
    if hold.reason == DecisionReason.AT_MAXIMUM:
        return [AdvisedChange(act=Act.SET, field="spec.maxReplicas", value=str(current + 1))]
    if hold.reason == DecisionReason.AT_MINIMUM:
        return _lower_minimum(observation, current - 1)
    if hold.reason in {DecisionReason.UP_DISABLED, DecisionReason.DOWN_DISABLED}:
        side = "scaleUp" if hold.reason == DecisionReason.UP_DISABLED else "scaleDown"
        return [AdvisedChange(act=Act.SET, field=f"spec.behavior.{side}.selectPolicy", value="Max")]
    if hold.until is None:
        return [AdvisedChange(act=Act.KEEP, seconds=hold.seconds)]
    is_window = hold.reason in {DecisionReason.UP_WINDOW, DecisionReason.DOWN_WINDOW}
    field = WINDOW if is_window else POLICIES
    return [AdvisedChange(act=Act.WAIT, field=field, until=hold.until)] if isfinite(hold.until) else None


def _lower_minimum(observation: Observation, lowest: int) -> list[AdvisedChange] | None:
    """Return the changes that lower the minimum, or None if the API server would reject them."""
    if lowest > 0:
        return [AdvisedChange(act=Act.SET, field="spec.minReplicas", value=str(lowest))]
    if lowest < 0 or not can_scale_from_zero(observation.hpa.spec):
        return None
    changes = []
    if not observation.gates.hpa_scale_to_zero:
        changes.append(AdvisedChange(act=Act.OPEN_GATE, value=SCALE_TO_ZERO))
    if observation.hpa.spec.min_replicas != 0:
        changes.append(AdvisedChange(act=Act.SET, field="spec.minReplicas", value="0"))
    return changes


def _unread(decision: Decision) -> tuple[Advice, ...]:
    """Return which metrics must become readable, those without a fallback first."""
    results = list(enumerate(decision.trace.proposals))
    failed = [index for index, result in results if isinstance(result, Failure)]
    failed += [index for index, result in results if isinstance(result, LossFallback)]
    changes = tuple(AdvisedChange(act=Act.READ_METRIC, metric=index) for index in failed)
    return (Advice(direction=Direction.EITHER, changes=changes),) if changes else ()


def _failure_of(observation: Observation) -> str:
    """Return the reason of the first plug-in that failed, as its condition has it."""
    answers = [observation.filter_answer, *policies_of(observation)]
    return next((answer.reason for answer in answers if answer is not None and answer.failure), "")


def _gaps(reason: DecisionReason) -> tuple[Advice, ...]:
    return (_either(AdvisedChange(act=_GAPS[reason])),) if reason in _GAPS else ()


def _either(change: AdvisedChange) -> Advice:
    return Advice(direction=Direction.EITHER, changes=(change,))


def _own_pods(observation: Observation, decision: Decision) -> tuple[Advice, ...]:
    """Return the advice to count only the target's own pods, if that changes the result."""
    if not decision.trace.extra_pods:
        return ()
    changes = [
        AdvisedChange(act=Act.SET, field="spec.selectionStrategy", value=SelectionStrategy.OWNER_REFERENCE)
    ]
    if not observation.gates.hpa_selection_strategy:
        changes.insert(0, AdvisedChange(act=Act.OPEN_GATE, value=SELECTION))
    asked = asked_by_owner(observation, decision.now)
    if asked is not None and asked == decision.trace.recommended:
        return ()
    return (Advice(direction=Direction.EITHER, changes=tuple(changes), outcome=asked),)


def _wake(observation: Observation) -> tuple[Advice, ...]:
    """Return the feature gate that lets the HPA wake its workload, if only that is missing."""
    if observation.gates.hpa_scale_to_zero or not is_scaled_to_zero(observation.hpa.status.conditions):
        return ()
    gates = replace(observation.gates, hpa_scale_to_zero=True)
    if is_paused(
        observation.hpa.spec,
        effective_min_replicas(observation.hpa.spec, gates, observation.rules),
        is_ours=True,
    ):
        return ()
    return (_either(AdvisedChange(act=Act.OPEN_GATE, value=SCALE_TO_ZERO)),)


def _is_enough(by_owner: tuple[Advice, ...], current: int) -> bool:
    """Return whether the replicas are enough for the target's own pods."""
    return any(advice.outcome is not None and advice.outcome <= current for advice in by_owner)


def asked_by_owner(observation: Observation, now: float) -> int | None:
    """Return the replicas recommended for the target's own pods, or None if owners are unknown."""
    if not observation.owners:
        return None
    spec = msgspec.structs.replace(observation.hpa.spec, selection_strategy=SelectionStrategy.OWNER_REFERENCE)
    hpa = msgspec.structs.replace(observation.hpa, spec=spec)
    by_owner = msgspec.structs.replace(
        observation, hpa=hpa, gates=replace(observation.gates, hpa_selection_strategy=True)
    )
    trace = decide(by_owner, datetime.fromtimestamp(now, UTC)).trace
    return None if trace.selection_fallback else trace.recommended
