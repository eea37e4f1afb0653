"""One decision: from an observation and the time to replicas, status, events and memory."""

from datetime import datetime

import msgspec

from trimtab.decide.horizontal.behavior.normalize import Normalized, NormalizeInput, normalize
from trimtab.decide.horizontal.behavior.scale_to_zero import (
    effective_max_replicas,
    effective_min_replicas,
    goes_to_zero,
    is_paused,
)
from trimtab.decide.horizontal.behavior.stabilization import earlier_recommendation
from trimtab.decide.horizontal.decision import Decision, DecisionTrace
from trimtab.decide.horizontal.memory import seed_recommendations
from trimtab.decide.horizontal.metrics.combine import (
    LossFallback,
    MetricsResult,
    add_policies,
    compute_replicas,
    policy_memory,
    proposal_context,
)
from trimtab.decide.horizontal.observation.observation import (
    Observation,
    ScaleFailure,
    StaleInput,
    policies_of,
)
from trimtab.decide.horizontal.observation.plugin_answers import PolicyAnswer
from trimtab.decide.horizontal.selection.selection import (
    Selection,
    count_extra_pods,
    effective_strategy,
    expected_pods,
    select_pods,
)
from trimtab.decide.horizontal.selection.selector_check import AMBIGUOUS, check_selector
from trimtab.decide.horizontal.status.builder import DecisionBuilder
from trimtab.decide.horizontal.status.clock import clock_changes
from trimtab.decide.horizontal.status.conditions import (
    CACHES_STALE,
    CLOCK_WRONG,
    PLUGIN_FAILED,
    SCALED_TO_ZERO,
    SELECTION_FALLBACK,
    UNSET_SCALED_TO_ZERO,
    EmitEvent,
)
from trimtab.decide.horizontal.status.ignored_fields import (
    ignored_annotations_changes,
    ignored_fields_changes,
)
from trimtab.decide.horizontal.status.metrics_status import metrics_changes
from trimtab.decide.horizontal.status.plugin_status import plugin_changes
from trimtab.decide.horizontal.status.scale_status import (
    limit_changes,
    pause_changes,
    scale_failure_changes,
    scale_read_changes,
    strategy_changes,
)
from trimtab.decide.horizontal.status.selection_status import (
    extra_pods_changes,
    fallback_changes,
    selector_changes,
)
from trimtab.decide.horizontal.status.stale_status import describe_stale, stale_changes
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.types import SelectionStrategy

ABOVE_MAX = "Current number of replicas above Spec.MaxReplicas"
BELOW_MIN = "Current number of replicas below Spec.MinReplicas"

_NOT_READ = ScaleFailure(message="the scale was not read")
_FAILED_STEPS = {
    "parse": "invalid API version in scale target reference: {error}",
    "map": "unable to determine resource for scale target reference: {error}",
    "query": "failed to query scale subresource for {reference}: {error}",
}


def decide(observation: Observation, now: datetime) -> Decision:
    """Decide how many replicas the target of one HPA gets.

    If the decision has `scale_to`, write `intent` (if any), then the scale, and complete the decision with `after_scale`.
    """
    builder = DecisionBuilder(observation, now)
    _check_spec(builder)
    scale, stale = observation.scale, observation.stale_inputs
    if stale or CACHES_STALE in builder.conditions_before:
        stale = _check_caches(builder)
    if scale is None:
        return _without_scale(builder, observation.scale_failure or _NOT_READ)
    _take_scale(builder, scale)
    current, lowest, highest = builder.current, builder.trace.min_replicas, builder.trace.max_replicas
    if current == 0 and _is_paused(builder):
        return _paused(builder)
    if current > highest:
        return _above_max(builder, highest, stale)
    if 0 < current < lowest:
        return _outside_bounds(builder, lowest, "BelowMin", BELOW_MIN)
    _compute_replicas(builder, scale)
    if builder.metrics.replicas is None:
        return _without_replicas(builder)
    desired, reason = _normalize(builder, builder.metrics.replicas, stale)
    return _rescale(builder, desired, reason) if desired != current else builder.settled(desired)


def _check_spec(builder: DecisionBuilder) -> None:
    observation, before = builder.observation, builder.memory.strategy
    strategy = effective_strategy(observation.hpa.spec.selection_strategy, observation.gates)
    builder.trace = DecisionTrace(strategy=strategy, counted_pods=None)
    builder.apply(strategy_changes(observation, before, strategy))
    if before != strategy and observation.gates.hpa_selection_strategy:
        builder.memory = msgspec.structs.replace(builder.memory, strategy=strategy)
    builder.apply(ignored_fields_changes(observation, builder.conditions_before))


def _check_caches(builder: DecisionBuilder) -> tuple[StaleInput, ...]:
    """Report stale caches, and return those that keep the replicas from being lowered."""
    observation = builder.observation
    stale = observation.stale_inputs if observation.rules.ours else ()
    builder.apply(stale_changes(stale, builder.conditions_before))
    return stale


def _without_scale(builder: DecisionBuilder, failure: ScaleFailure) -> Decision:
    observation = builder.observation
    has_advice = failure.advice and observation.rules.ours
    message = f"{failure.message}; {failure.advice}" if has_advice else failure.message
    builder.apply(scale_failure_changes(message))
    builder.note(stopped_by="FailedGetScale")
    error = _FAILED_STEPS[failure.step].format(reference=observation.reference, error=message)
    return builder.failed(error, "spec" if failure.step == "parse" else "internal")


def _take_scale(builder: DecisionBuilder, scale: Scale) -> None:
    observation = builder.observation
    builder.current = current = scale.spec.replicas
    builder.apply(scale_read_changes(observation, builder.memory, current))
    memory = seed_recommendations(builder.memory, current, builder.now)
    if observation.rules.ours and memory.replicas != current:
        memory = msgspec.structs.replace(memory, replicas=current)
    builder.memory = memory
    if current and builder.was_true(SCALED_TO_ZERO) and observation.rules.ours:
        builder.apply((UNSET_SCALED_TO_ZERO,))
    spec = observation.hpa.spec
    builder.note(
        min_replicas=effective_min_replicas(spec, observation.gates, observation.rules),
        max_replicas=effective_max_replicas(spec),
    )


def _is_paused(builder: DecisionBuilder) -> bool:
    observation = builder.observation
    is_ours = observation.gates.hpa_scale_to_zero and builder.was_true(SCALED_TO_ZERO)
    return is_paused(observation.hpa.spec, builder.trace.min_replicas, is_ours=is_ours)


def _paused(builder: DecisionBuilder) -> Decision:
    builder.apply(pause_changes(builder.observation))
    builder.note(stopped_by="Paused")
    return builder.settled(0)


def _outside_bounds(builder: DecisionBuilder, bound: int, stopped_by: str, reason: str) -> Decision:
    builder.note(stopped_by=stopped_by)
    return _rescale(builder, bound, reason)


def _above_max(builder: DecisionBuilder, highest: int, stale: tuple[StaleInput, ...]) -> Decision:
    """Lower the replicas, unless maxReplicas or the replicas may have been changed meanwhile."""
    if all(cache.input == "pods" for cache in stale):
        return _outside_bounds(builder, highest, "AboveMax", ABOVE_MAX)
    builder.note(stopped_by="StaleCaches", stale_hold=describe_stale(stale))
    return builder.settled(builder.current)


def _compute_replicas(builder: DecisionBuilder, scale: Scale) -> None:
    """Select the pods, check the selector and let the metrics propose replicas."""
    observation, strategy = builder.observation, builder.trace.strategy
    selection = select_pods(observation, strategy)
    context = proposal_context(observation, scale, selection, strategy, builder.now)
    extra = _check_pods(builder, scale, selection)
    if observation.clock_offset or CLOCK_WRONG in builder.conditions_before:
        builder.apply(clock_changes(observation, builder.conditions_before))
    problem = check_selector(observation, scale.status.selector, selection)
    if problem is None:
        builder.apply(ignored_annotations_changes(observation))
        result = compute_replicas(observation, context, builder.memory)
        policies = policies_of(observation)
        if policies or builder.memory.policies or PLUGIN_FAILED in builder.conditions_before:
            result = _add_policies(builder, result, policies)
        builder.apply(metrics_changes(observation.hpa, result, builder.conditions_before))
        _remember_metrics(builder, result)
    else:
        builder.apply(selector_changes(problem))
        result = MetricsResult(error=problem.error, stopped_by=problem.reason)
    builder.metrics = result
    builder.note(
        counted_pods=len(selection.pods),
        left_out=selection.left_out,
        extra_pods=extra,
        surge_pods=max(scale.status.replicas - scale.spec.replicas, 0),
        selection_fallback=selection.fallback,
        tolerance=context.tolerance,
        proposals=result.proposals,
        winner=result.winner,
        stopped_by=result.stopped_by,
    )


def _add_policies(
    builder: DecisionBuilder, result: MetricsResult, answers: tuple[PolicyAnswer, ...]
) -> MetricsResult:
    """Add the proposals of replica policies, and remember what the policies remember."""
    builder.apply(plugin_changes(answers, builder.conditions_before))
    remembered = policy_memory(answers, builder.memory.policies)
    builder.memory = msgspec.structs.replace(builder.memory, policies=remembered)
    # A fail-over must not forget what a policy remembers.
    builder.must_store = remembered != builder.observation.memory.policies
    result = add_policies(result, answers, builder.current)
    builder.note(winning_policy=result.winning_policy, policy_hold=result.policy_hold)
    return result


def _check_pods(builder: DecisionBuilder, scale: Scale, selection: Selection) -> int:
    """Report extra pods and a filter that cannot decide, and return the number of extra pods."""
    rules, before, extra = builder.observation.rules, builder.conditions_before, 0
    if rules.ours:
        expected = expected_pods(scale)
        if builder.trace.strategy == SelectionStrategy.LABEL_SELECTOR:
            extra = count_extra_pods(selection.pods, expected)
        builder.apply(extra_pods_changes(extra, expected, before))
    if selection.fallback or SELECTION_FALLBACK in before:
        strategy = builder.trace.strategy
        builder.apply(fallback_changes(builder.observation, strategy, selection.fallback, before))
    return extra


def _remember_metrics(builder: DecisionBuilder, result: MetricsResult) -> None:
    memory = builder.memory
    if result.last_good != memory.last_good or result.rejected_since != memory.rejected_since:
        builder.memory = msgspec.structs.replace(
            memory, last_good=result.last_good, rejected_since=result.rejected_since
        )


def _without_replicas(builder: DecisionBuilder) -> Decision:
    """Hold the replicas, or wake a workload at zero whose minReplicas was raised meanwhile."""
    observation, result, lowest = builder.observation, builder.metrics, builder.trace.min_replicas
    is_limited = result.stopped_by == AMBIGUOUS
    if not builder.current and lowest and observation.rules.ours:
        builder.error = result.error
        builder.apply((EmitEvent("Warning", "FailedComputeMetricsReplicas", result.error),))
        return _rescale(builder, lowest, BELOW_MIN)
    if not result.is_warming_up:
        builder.apply(
            (EmitEvent("Warning", "FailedComputeMetricsReplicas", result.error, is_limited, is_last=True),)
        )
    reference = observation.reference
    return builder.failed(
        f"failed to compute desired number of replicas based on listed metrics for {reference}: {result.error}"
    )


def _normalize(builder: DecisionBuilder, replicas: int, stale: tuple[StaleInput, ...]) -> tuple[int, str]:
    """Return the replicas that windows, bounds and rates allow, and why they would change."""
    observation, current, trace = builder.observation, builder.current, builder.trace
    asked = max(replicas, 0)
    if trace.selection_fallback and observation.rules.ours:
        # Idle pods of others in the average would shrink a busy workload while a filter cannot leave them out.
        asked = max(asked, current)
    if stale and asked < current:
        # A pod, a spec or a scale that is not known yet may be the reason why fewer seem to be enough.
        asked = current
        builder.note(stale_hold=describe_stale(stale))
    wanted = NormalizeInput(
        current=current,
        desired=asked,
        lowest=trace.min_replicas,
        highest=trace.max_replicas,
        behavior=observation.hpa.spec.behavior,
    )
    result = normalize(wanted, builder.memory, builder.now, observation.settings, observation.rules)
    builder.memory = msgspec.structs.replace(
        builder.memory, recommendations=result.stabilized.recommendations
    )
    builder.error = builder.metrics.error
    builder.apply(limit_changes(result))
    builder.note(recommended=asked, normalized=result)
    reason = _change_reason(builder, asked, result)
    if current:
        return result.replicas, reason
    if not reason and (result.replicas < trace.min_replicas or observation.rules.ours):
        reason = BELOW_MIN  # upstream forgets it when the bounds have already raised the number
    return max(result.replicas, trace.min_replicas), reason


def _change_reason(builder: DecisionBuilder, asked: int, result: Normalized) -> str:
    """Return why the replicas would change, as the event says it."""
    current, metrics = builder.current, builder.metrics
    if asked <= current < result.stabilized.replicas and builder.observation.rules.ours:
        return earlier_recommendation(result.stabilized)
    if asked == current:
        return ""
    if metrics.winning_policy is not None:
        policy = builder.observation.policy_answers[metrics.winning_policy]
        return f"{policy.name} asks for {policy.replicas}: {policy.reason}"
    if metrics.winner is not None and isinstance(metrics.proposals[metrics.winner], LossFallback):
        return f"{metrics.name} asks for {metrics.replicas}"
    if asked > current:
        return f"{metrics.name} above target"
    return "All metrics that count below target" if metrics.fallbacks else "All metrics below target"


def _rescale(builder: DecisionBuilder, desired: int, reason: str) -> Decision:
    observation = builder.observation
    to_zero = goes_to_zero(observation, builder.current, desired, builder.trace.min_replicas)
    return builder.rescale(desired, reason, marks_zero=to_zero and observation.rules.ours)
