"""One decision: from one observation and the time to the replicas, the status, the events and the memory."""

from datetime import datetime

import msgspec

from trimtab.decide.horizontal.behavior import normalize as normal
from trimtab.decide.horizontal.behavior.scale_to_zero import (
    DISABLED,
    can_scale_from_zero,
    ceiling_of,
    floor_of,
    is_paused,
    set_scaled_to_zero,
)
from trimtab.decide.horizontal.behavior.stabilization import MESSAGES as HELD
from trimtab.decide.horizontal.behavior.stabilization import Stabilized, earlier_recommendation
from trimtab.decide.horizontal.decision import Decision, DecisionTrace, EventToRecord
from trimtab.decide.horizontal.memory import seeded
from trimtab.decide.horizontal.metrics.calculator import MetricsResult, compute_replicas
from trimtab.decide.horizontal.metrics.proposal import LossFallback
from trimtab.decide.horizontal.observation.observation import Observation, ScaleFailure
from trimtab.decide.horizontal.selection.selection import effective_strategy
from trimtab.decide.horizontal.status.builder import DecisionBuilder
from trimtab.decide.horizontal.status.conditions import (
    ABLE_TO_SCALE,
    EXTRA_PODS,
    SCALED_TO_ZERO,
    SCALING_ACTIVE,
    SCALING_LIMITED,
    SELECTION_FALLBACK,
    Conditions,
)
from trimtab.decide.horizontal.status.ignored_fields import set_fields_ignored
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus, SelectionStrategy

ABOVE_MAX = "Current number of replicas above Spec.MaxReplicas"
BELOW_MIN = "Current number of replicas below Spec.MinReplicas"

_FAILED_STEPS = {
    "parse": "invalid API version in scale target reference: {error}",
    "map": "unable to determine resource for scale target reference: {error}",
    "query": "failed to query scale subresource for {reference}: {error}",
}


def decide(seen: Observation, now: datetime) -> Decision:
    """Decide about one autoscaler.

    If the decision has `scale_to`, write `intent` (if any) and then the scale, and let `after_scale` complete it.
    """
    draft = DecisionBuilder(seen, now)
    _tell_strategy(draft)
    set_fields_ignored(draft.conditions, seen)
    if seen.scale is None:
        return _without_scale(draft, seen.scale_failure or ScaleFailure(message="the scale was not read"))
    scale, hpa = seen.scale, seen.hpa
    draft.conditions.set(
        ABLE_TO_SCALE,
        "True",
        "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
    )
    draft.current = current = scale.spec.replicas
    _tell_external_change(draft)
    draft.memory = seeded(draft.memory, current, draft.now)
    lowest, highest = floor_of(hpa.spec, seen.gates, seen.compat), ceiling_of(hpa.spec)
    is_ours = seen.gates.hpa_scale_to_zero and draft.conditions.is_true(SCALED_TO_ZERO)
    if current == 0:
        if is_paused(hpa.spec, lowest, is_ours=is_ours):
            return _paused(draft, lowest)
        return _from_zero(draft, scale, lowest)
    if seen.compat.clear_condition_above_zero and draft.conditions.is_true(SCALED_TO_ZERO):
        set_scaled_to_zero(draft.conditions, scaled_to_zero=False)
    if current > highest:
        draft.trail = _unlooked(seen, "AboveMax", lowest, highest)
        return _rescale(draft, highest, ABOVE_MAX, lowest)
    if current < lowest:
        draft.trail = _unlooked(seen, "BelowMin", lowest, highest)
        return _rescale(draft, lowest, BELOW_MIN, lowest)
    return _by_metrics(draft, scale, lowest)


def _unlooked(seen: Observation, stop: str, lowest: int = 0, highest: int = 0) -> DecisionTrace:
    """Return the trail of a decision that ends before any pod is looked at."""
    strategy = effective_strategy(seen.hpa.spec.selection_strategy, seen.gates)
    return DecisionTrace(lowest=lowest, highest=highest, strategy=strategy, counted=None, stop=stop)


def _without_scale(draft: DecisionBuilder, failure: ScaleFailure) -> Decision:
    draft.warn("FailedGetScale", failure.message)
    message = f"the HPA controller was unable to get the target's current scale: {failure.message}"
    draft.conditions.set(ABLE_TO_SCALE, "False", "FailedGetScale", message)
    draft.trail = _unlooked(draft.seen, "FailedGetScale")
    error = _FAILED_STEPS[failure.step].format(reference=draft.seen.reference, error=failure.message)
    return draft.failed(
        error, draft.status_with_conditions(), "spec" if failure.step == "parse" else "internal"
    )


def _paused(draft: DecisionBuilder, lowest: int) -> Decision:
    draft.conditions.set(SCALING_ACTIVE, "False", "ScalingDisabled", DISABLED)
    for averaged in (EXTRA_PODS, SELECTION_FALLBACK):  # nothing is averaged now
        draft.conditions.remove(averaged)
    seen = draft.seen
    if not seen.gates.hpa_scale_to_zero and not seen.compat.keep_condition_while_gate_off:
        draft.conditions.remove(SCALED_TO_ZERO)
    draft.trail = _unlooked(seen, "Paused", lowest, ceiling_of(seen.hpa.spec))
    return draft.settled(0)


def _from_zero(draft: DecisionBuilder, scale: Scale, lowest: int) -> Decision:
    """Wake a workload that we brought to zero, if a metric asks or if minReplicas no longer allows zero."""
    measured = compute_replicas(draft, scale, lowest)
    if measured.replicas is None:
        if not lowest or not draft.seen.compat.raise_to_min_without_metrics:
            return _unmeasured(draft, measured)
        draft.error = measured.error
        draft.warn("FailedComputeMetricsReplicas", measured.error)
        _keep_trail(draft, measured)
        return _rescale(draft, lowest, BELOW_MIN, lowest)
    desired, reason = _normalized(draft, measured, lowest)
    if not reason and (desired < lowest or draft.seen.compat.clear_messages):
        reason = BELOW_MIN  # upstream forgets it when the bounds have already raised the number
    desired = max(desired, lowest)
    return _rescale(draft, desired, reason, lowest) if desired else draft.settled(0)


def _by_metrics(draft: DecisionBuilder, scale: Scale, lowest: int) -> Decision:
    measured = compute_replicas(draft, scale, lowest)
    if measured.replicas is None:
        return _unmeasured(draft, measured)
    desired, reason = _normalized(draft, measured, lowest)
    if desired == draft.current:
        return draft.settled(desired)
    return _rescale(draft, desired, reason, lowest)


def _unmeasured(draft: DecisionBuilder, measured: MetricsResult) -> Decision:
    _keep_trail(draft, measured)
    if measured.stop != "AmbiguousSelector" or draft.may_repeat("FailedComputeMetricsReplicas"):
        draft.warn_last("FailedComputeMetricsReplicas", measured.error)
    error = (
        f"failed to compute desired number of replicas based on listed metrics for {draft.seen.reference}: "
    )
    return draft.failed(error + measured.error, draft.status(draft.seen.hpa.status.desired_replicas))


def _normalized(draft: DecisionBuilder, measured: MetricsResult, lowest: int) -> tuple[int, str]:
    """Return the replicas that windows, bounds and rates leave of what was asked, and why they would change."""
    seen, current = draft.seen, draft.current
    draft.error = measured.error
    asked = max(measured.replicas or 0, 0)
    if draft.trail.fallback and seen.compat.fallback_never_shrinks:
        # Foreign idle pods in the average would shrink a busy workload while nobody can tell them apart.
        asked = max(asked, current)
    wanted = normal.NormalizeInput(
        current=current,
        desired=asked,
        lowest=lowest,
        highest=ceiling_of(seen.hpa.spec),
        behavior=seen.hpa.spec.behavior,
    )
    result = normal.normalize(wanted, draft.memory, draft.now, seen.settings, seen.compat)
    draft.memory = msgspec.structs.replace(draft.memory, recommendations=result.stabilized.recommendations)
    _tell_normalized(draft.conditions, result)
    _keep_trail(draft, measured, asked, result)
    return result.replicas, _why(draft, measured, asked, result.stabilized)


def _why(draft: DecisionBuilder, measured: MetricsResult, asked: int, stabilized: Stabilized) -> str:
    """Return why the replicas change, if they do, as the event tells it."""
    if asked <= draft.current < stabilized.replicas and draft.seen.compat.clear_messages:
        return earlier_recommendation(stabilized)
    if asked == draft.current:
        return ""
    if measured.is_stand_in:
        return f"{measured.name} asks for {measured.replicas}"
    if asked > draft.current:
        return f"{measured.name} above target"
    is_lost = any(isinstance(one, LossFallback) for one in draft.proposals)
    return "All metrics that count below target" if is_lost else "All metrics below target"


def _tell_normalized(conditions: Conditions, result: normal.Normalized) -> None:
    held = result.stabilized.reason
    if held:
        conditions.set(ABLE_TO_SCALE, "True", held, HELD[held])
    else:
        conditions.set(ABLE_TO_SCALE, "True", "ReadyForNewScale", "recommended size matches current size")
    limited = result.limited.reason
    conditions.set(
        SCALING_LIMITED, "True" if result.is_limited else "False", limited, normal.MESSAGES[limited]
    )


def _keep_trail(
    draft: DecisionBuilder,
    measured: MetricsResult,
    asked: int | None = None,
    normalized: normal.Normalized | None = None,
) -> None:
    draft.trail = msgspec.structs.replace(
        draft.trail,
        proposals=tuple(draft.proposals),
        winner=measured.winner,
        asked=asked,
        normalized=normalized,
        stop=measured.stop,
    )


def _rescale(draft: DecisionBuilder, desired: int, reason: str, lowest: int) -> Decision:
    intent = None
    if draft.seen.compat.intent_before_scale and goes_to_zero(draft.seen, draft.current, desired, lowest):
        intent = _intent(draft)
    return draft.rescale(desired, reason, intent)


def goes_to_zero(seen: Observation, current: int, desired: int, lowest: int) -> bool:
    """Return whether a rescale brings the workload to a zero that we can wake it from."""
    return (
        seen.gates.hpa_scale_to_zero
        and current > 0
        and desired == 0
        and lowest == 0
        and can_scale_from_zero(seen.hpa.spec)
    )


def _intent(draft: DecisionBuilder) -> HorizontalPodAutoscalerStatus:
    """Return the old status with `ScaledToZero` already True."""
    old = draft.seen.hpa.status
    conditions = Conditions(old.conditions, draft.moment)
    set_scaled_to_zero(conditions, scaled_to_zero=True)
    return msgspec.structs.replace(old, conditions=conditions.done())


def _tell_strategy(draft: DecisionBuilder) -> None:
    """Tell when a strategy other than the labels is active for a new spec, and when the strategy changed."""
    seen = draft.seen
    strategy = effective_strategy(seen.hpa.spec.selection_strategy, seen.gates)
    before = draft.memory.strategy
    if before and before != strategy:
        message = f"Pod selection strategy changed from '{before}' to '{strategy}'"
        draft.events.append(EventToRecord(type="Normal", reason="StrategyChanged", message=message))
    if before != strategy and seen.gates.hpa_selection_strategy:
        draft.memory = msgspec.structs.replace(draft.memory, strategy=strategy)
    generation = seen.hpa.metadata.generation
    # Native HPAs have no generation; for them only a strategy that was not in force before is news.
    is_news = generation != (seen.hpa.status.observed_generation or 0) if generation else before != strategy
    if strategy != SelectionStrategy.LABEL_SELECTOR and is_news:
        message = f"Pod selection strategy '{strategy}' is active"
        draft.events.append(EventToRecord(type="Normal", reason="SelectionStrategyActive", message=message))


def _tell_external_change(draft: DecisionBuilder) -> None:
    """Tell that someone else changed the replicas, and note what they are now."""
    if not draft.seen.compat.tell_external_changes:
        return
    before, current = draft.memory.replicas, draft.current
    if before is not None and before != current and draft.may_repeat("ReplicasChangedElsewhere"):
        message = f"replicas went from {before} to {current} by another hand than this autoscaler's"
        draft.events.append(EventToRecord(type="Normal", reason="ReplicasChangedElsewhere", message=message))
    if before != current:
        draft.memory = msgspec.structs.replace(draft.memory, replicas=current)
