"""One decision, as a story: `propose` what is asked for, then `settle` what is set, and `conclude` with why."""

from datetime import datetime
from functools import partial

import msgspec

from trimtab.decide.horizontal.arithmetic import ratio_of, wire_time
from trimtab.decide.horizontal.decision import Decision, DecisionTrace, Proposed
from trimtab.decide.horizontal.limits import (
    Bounds,
    bounds_of,
    goes_to_zero,
    is_scaled_to_zero,
    may_wake,
    not_lower,
    recommendations_after,
    within_bounds_and_rates,
    within_windows,
)
from trimtab.decide.horizontal.memory import EMPTY, Memory, owner_of, seed_recommendations, start
from trimtab.decide.horizontal.metrics.combine import (
    ErrorLabel,
    MetricsResult,
    Result,
    add_policies,
    asked_by,
    compute_replicas,
    policy_memory,
    proposal_context,
)
from trimtab.decide.horizontal.metrics.kinds import Failure, Proposal, counts_pods
from trimtab.decide.horizontal.metrics.pods import Tolerance
from trimtab.decide.horizontal.observation.observation import NOT_READ, Observation, policies_of
from trimtab.decide.horizontal.observation.plugin_answers import PolicyAnswer
from trimtab.decide.horizontal.reasons import (
    Asleep,
    Code,
    Count,
    Detail,
    ExtraPods,
    Reason,
    Unreadable,
    because,
)
from trimtab.decide.horizontal.selection.selection import (
    count_extra_pods,
    effective_strategy,
    expected_pods,
    select_pods,
)
from trimtab.decide.horizontal.selection.selector_check import check_selector
from trimtab.decide.horizontal.status.conditions import Report, advised, report_on, with_scaled_to_zero
from trimtab.decide.horizontal.status.generations import (
    condition_generation,
    must_write,
    observed_generation,
)
from trimtab.decide.horizontal.status.ignored_fields import ignored_minimum, must_not_scale
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus, SelectionStrategy
from trimtab.model.plugin_names import is_plugin_name


def decide(observation: Observation, now: datetime) -> Decision:
    """Decide how many replicas the target of one HPA gets.

    If the decision has `scale_to`, write `intent` (if any), then the scale, and complete the decision with `after_scale`.
    """
    return settle(propose(observation, now.timestamp()), policies_of(observation))


def propose(seen: Observation, now: float) -> Proposed:
    """Return the replicas that are asked for, or the reason why nothing can be asked for."""
    hpa, scale, gates, rules = seen.hpa, seen.scale, seen.gates, seen.rules
    strategy, memory = effective_strategy(hpa.spec.selection_strategy, gates), own_memory(seen)
    bounds = bounds_of(hpa.spec, gates, rules)
    proposes = partial(Proposed, seen, now, memory, strategy, bounds)
    if scale is None:
        failure = seen.scale_failure or NOT_READ
        target = Unreadable(target=str(hpa.spec.scale_target_ref), message=failure.message)
        return proposes(Reason(code=Code.SCALE_UNREADABLE, facts=target))
    if seen.rivals.hpas and not seen.rivals.is_only_told and not must_not_scale(hpa, gates):
        return proposes(Reason(code=Code.BESIDE_NATIVE, facts=seen.rivals))
    current = scale.spec.replicas
    if not current and (seen.has_other_target or not may_wake(hpa, bounds, gates)):
        is_ours = is_scaled_to_zero(hpa.status.conditions) and not seen.has_other_target
        facts = Asleep(is_gate_off=not gates.hpa_scale_to_zero) if is_ours else None
        return proposes(Reason(code=Code.PAUSED, facts=facts))
    if current and (outside := bounds.against(current)):
        return proposes(outside, is_bound=True)  # metrics are not asked, as upstream has it
    selection, extra = select_pods(seen, strategy), 0
    if rules.ours and strategy == SelectionStrategy.LABEL_SELECTOR:
        extra = count_extra_pods(selection.pods, expected_pods(scale))
    context = proposal_context(seen, scale, selection, memory, now)
    proposes = partial(proposes, selection=selection, extra_pods=extra, tolerance=context.tolerance)
    if problem := check_selector(seen, scale.status.selector, selection):
        return proposes(
            Reason(code=problem.code), problem=problem, metrics=MetricsResult(error=problem.error)
        )
    metrics = compute_replicas(seen, context)
    return proposes(asked_by(metrics, (), selection, current), metrics=metrics)


def own_memory(seen: Observation) -> Memory:
    """Return the observed memory, or one that starts afresh for another HPA or another target."""
    memory, owner = seen.memory, owner_of(seen.hpa)
    if not seen.rules.ours or memory.owner == owner:
        return memory
    is_same_hpa = memory.owner.uid == owner.uid  # whose strategy is no news
    return msgspec.structs.replace(EMPTY, strategy=memory.strategy if is_same_hpa else "")


def settle(proposed: Proposed, answers: tuple[PolicyAnswer, ...]) -> Decision:
    """Return what is set, given what replica policies answer to what is proposed."""
    if answers or proposed.is_unread:
        proposed = _with_policies(proposed, answers)
    seen, now, asked, bounds = proposed.seen, proposed.now, proposed.asked, proposed.bounds
    memory = _remember(proposed, answers)
    if isinstance(asked, Reason):
        return conclude(proposed, answers, asked, memory)
    current = seen.current
    if unsure := doubts(proposed, answers):
        proposed = msgspec.structs.replace(proposed, doubts=unsure)
    safe = not_lower(asked, unsure, current) if unsure else asked
    if proposed.is_bound:  # no window or rate keeps a size that the spec forbids
        return conclude(proposed, answers, (asked, safe), memory)
    steady = within_windows(safe, seen, memory, now)
    allowed = within_bounds_and_rates(steady, seen, bounds, memory, now)
    known = recommendations_after(seen, memory, safe.replicas, now)
    memory = msgspec.structs.replace(memory, recommendations=known, at=now, is_asking=seen.rules.ours)
    if not current and allowed.replicas < bounds.lowest:
        awake = Count(bounds.lowest, Reason(code=Code.BELOW_MINIMUM))
        return conclude(proposed, answers, (asked, safe, steady, allowed, awake), memory)
    return conclude(proposed, answers, (asked, safe, steady, allowed), memory)


def _with_policies(proposed: Proposed, answers: tuple[PolicyAnswer, ...]) -> Proposed:
    """Add what replica policies ask for. A minimum that was raised meanwhile wakes a workload that cannot be measured."""
    seen, selection, lowest = proposed.seen, proposed.selection, proposed.bounds.lowest
    if selection is not None and proposed.problem is None and answers:
        metrics = add_policies(proposed.metrics, answers, seen.current)
        asked = asked_by(metrics, answers, selection, seen.current)
        proposed = msgspec.structs.replace(proposed, metrics=metrics, asked=asked)
    if proposed.is_unread and not seen.current and lowest and seen.rules.ours:
        return msgspec.structs.replace(
            proposed, asked=Count(lowest, Reason(code=Code.BELOW_MINIMUM)), is_bound=True
        )
    return proposed


def doubts(proposed: Proposed, answers: tuple[PolicyAnswer, ...]) -> tuple[Reason, ...]:
    """Return what is not known well enough to remove pods, the first of which holds.

    A pod, a spec or a scale that is not known yet may be the reason why fewer seem to be enough. Idle pods of others in the
    average would shrink a busy workload while a filter cannot leave them out; that matters to metrics that count pods only.
    """
    seen, selection = proposed.seen, proposed.selection
    stale = seen.stale_inputs if seen.rules.ours else ()
    if selection is None:
        # Where the maximum decides, only a spec or a scale that changed meanwhile could say otherwise, and no pod.
        stale = tuple(cache for cache in stale if cache.input != "pods") and stale
    found: tuple[Reason, ...] = ()
    if (
        selection is not None
        and selection.fallback
        and seen.rules.ours
        and counts_pods(seen.hpa.spec.metrics)
    ):
        code = Code.PLUGIN_FAILED if is_plugin_name(proposed.strategy) else Code.OWNERS_UNREAD
        found += (Reason(code=code, facts=Detail(text=selection.fallback)),)
    failed = [answer.failure for answer in answers if answer.failure] if selection is not None else []
    if failed:
        found += (Reason(code=Code.PLUGIN_FAILED, facts=Detail(text="; ".join(failed))),)
    if stale:
        text = "; ".join(cache.message for cache in stale)
        found += (Reason(code=Code.CACHES_STALE, facts=Detail(text=text)),)
    return found


def _remember(proposed: Proposed, answers: tuple[PolicyAnswer, ...]) -> Memory:
    """Return the memory after a decision that recommends nothing. Without the target's scale it stays as it was."""
    seen, memory, metrics = proposed.seen, proposed.memory, proposed.metrics
    if seen.gates.hpa_selection_strategy and memory.strategy != proposed.strategy:
        memory = msgspec.structs.replace(memory, strategy=proposed.strategy)
    if seen.scale is None:
        return memory
    current, now = seen.scale.spec.replicas, proposed.now
    if not seen.rules.ours:
        memory = seed_recommendations(memory, current, now)
    elif memory.recommendations is None:
        memory = start(owner_of(seen.hpa), current, now, memory.strategy)
    if seen.rules.ours:
        memory = msgspec.structs.replace(memory, replicas=current, at=now, is_asking=False)
    if proposed.selection is None or proposed.problem is not None:
        return memory
    if answers or memory.policies:
        memory = msgspec.structs.replace(memory, policies=policy_memory(answers, memory.policies))
    if metrics.last_good == memory.last_good:
        return memory
    return msgspec.structs.replace(memory, last_good=metrics.last_good)


_CALM = {Code.PAUSED, Code.BESIDE_NATIVE}
"""Reasons for which nothing is asked for, without a failure."""

_FAILED_STEPS = {
    "parse": "invalid API version in scale target reference: {error}",
    "map": "unable to determine resource for scale target reference: {error}",
    "query": "failed to query scale subresource for {reference}: {error}",
}


def conclude(
    proposed: Proposed,
    answers: tuple[PolicyAnswer, ...],
    result: Reason | tuple[Count, ...],
    memory: Memory,
) -> Decision:
    """Return the decision that ends with a reason, or with the counts of its steps."""
    seen, old = proposed.seen, proposed.seen.hpa.status
    report = report_on(proposed, answers, result, memory)
    current = desired = seen.current
    counts: tuple[Count, ...] = ()
    if isinstance(result, Reason):
        reason, because_of, is_failed = result, "", result.code not in _CALM
    else:
        counts, reason, is_failed = result, headline(proposed, result, current), False
        desired = result[-1].replicas
        because_of = "" if desired == current else _because(proposed, result, reason)
    scales = desired != current
    error, label = _error_of(proposed, is_failed=is_failed)
    status = _status_of(proposed, report, old.desired_replicas if scales or is_failed else desired)
    to_zero = scales and seen.rules.ours and goes_to_zero(seen, desired, proposed.bounds.lowest)
    return Decision(
        now=proposed.now,
        current=current,
        desired=desired,
        scale_to=desired if scales else None,
        reason=reason,
        because=because_of,
        status=status,
        status_changed=not scales and must_write(status, old),
        intent=with_scaled_to_zero(old, wire_time(proposed.now), condition_generation(seen))
        if to_zero
        else None,
        events=report.events,
        events_after_status=report.late_events,
        memory=report.memory,
        error=error,
        error_label=label,
        computations=proposed.metrics.computations,
        observed_desired=None if scales or is_failed else desired,
        is_final=not is_failed,
        trace=_trace_of(proposed, counts),
    )


def headline(proposed: Proposed, counts: tuple[Count, ...], current: int) -> Reason:
    """Return the reason of the step that turned what is asked for into what is set."""
    asked = counts[0]
    end = _side(counts[-1], current)
    if end == _side(asked, current):
        return asked.why
    turned = next(count for count in counts if _side(count, current) != _side(asked, current))
    if end and _side(turned, current) != end:  # what a doubt kept, an earlier recommendation moves on
        turned = next(count for count in counts if _side(count, current) == end)
    why = turned.why
    if _side(turned, current) != end:  # the bounds cut an earlier recommendation back to what there is
        return Reason(code=Code.DOWN_WINDOW, facts=why.facts)
    if why.code is Code.AT_MINIMUM:
        if end > 0:
            return Reason(code=Code.BELOW_MINIMUM)
        ignored = ignored_minimum(proposed.seen)
        return Reason(code=why.code, facts=Detail(text=ignored)) if ignored and current == 1 else why
    if why.code is Code.AT_MAXIMUM:
        if _is_only_surge(proposed, current):
            return Reason(code=Code.SURGE)
        return Reason(
            code=why.code, facts=ExtraPods(number=proposed.extra_pods) if proposed.extra_pods else None
        )
    return why


def _side(count: Count, current: int) -> int:
    return (count.replicas > current) - (count.replicas < current)


def _because(proposed: Proposed, counts: tuple[Count, ...], reason: Reason) -> str:
    """Return why the scale changes, as the event says it."""
    if proposed.seen.rules.ours or proposed.is_bound:
        return because(reason)
    # Upstream forgets earlier recommendations, and the minimum where the bounds have raised the number already.
    asked, *_, last = counts
    if asked.replicas != proposed.seen.current:
        return because(asked.why)
    return because(last.why) if last.why.code is Code.BELOW_MINIMUM else ""


def _is_only_surge(proposed: Proposed, current: int) -> bool:
    """Return whether metrics ask for more only because a rollout has more pods than replicas.

    The pods of a surge are measured too, and a ratio is multiplied by all of them. A metric below its target may then ask for
    more replicas than there are. Once the load is on as many pods as replicas, it is within the tolerance.
    """
    if not _surge_of(proposed) or proposed.metrics.winning_policy is not None:
        return False
    asking = [
        result
        for result in proposed.metrics.proposals
        if not isinstance(result, Failure) and (result.replicas or 0) > current
    ]
    return bool(asking) and all(_is_within(result, proposed.tolerance, current) for result in asking)


def _is_within(result: Result, tolerance: Tolerance, current: int) -> bool:
    if not isinstance(result, Proposal) or result.ratio is None:
        return False
    most = 1.0 + tolerance.up
    if result.total is not None:
        return ratio_of(result.total, float(result.target) * current) <= most
    if result.counts is None:
        return result.ratio <= most  # one value for all: it does not depend on the pods
    pods = result.measured_pods
    ratio = result.ratio if result.filled_ratio is None else result.filled_ratio
    return pods > current and ratio * pods <= most * current


def _surge_of(proposed: Proposed) -> int:
    scale = proposed.seen.scale
    return 0 if scale is None else max(scale.status.replicas - scale.spec.replicas, 0)


def _error_of(proposed: Proposed, *, is_failed: bool) -> tuple[str, ErrorLabel]:
    """Return what the reconcile reports as its error, and its label."""
    seen, error = proposed.seen, proposed.metrics.error
    if seen.scale is None:
        failure = seen.scale_failure or NOT_READ
        text = _FAILED_STEPS[failure.step].format(reference=seen.reference, error=advised(seen, failure))
        return text, "spec" if failure.step == "parse" else "internal"
    if is_failed:
        error = f"failed to compute desired number of replicas based on listed metrics for {seen.reference}: {error}"
    return error, "internal" if error else "none"


def _status_of(proposed: Proposed, report: Report, desired: int) -> HorizontalPodAutoscalerStatus:
    seen, old = proposed.seen, proposed.seen.hpa.status
    if seen.scale is None:
        generation = observed_generation(seen, has_scale=False)
        return msgspec.structs.replace(old, conditions=report.done(), observed_generation=generation)
    return HorizontalPodAutoscalerStatus(
        observed_generation=observed_generation(seen),
        last_scale_time=old.last_scale_time,
        current_replicas=seen.current,
        desired_replicas=desired,
        current_metrics=proposed.metrics.statuses,
        conditions=report.done(),
    )


def _trace_of(proposed: Proposed, counts: tuple[Count, ...]) -> DecisionTrace:
    metrics, selection, bounds = proposed.metrics, proposed.selection, proposed.bounds
    bounds = Bounds(0, 0) if proposed.seen.scale is None else bounds
    if selection is None:
        return DecisionTrace(
            min_replicas=bounds.lowest,
            max_replicas=bounds.highest,
            strategy=proposed.strategy,
            counted_pods=None,
            counts=counts,
        )
    return DecisionTrace(
        min_replicas=bounds.lowest,
        max_replicas=bounds.highest,
        strategy=proposed.strategy,
        counted_pods=len(selection.pods),
        left_out=selection.left_out,
        extra_pods=proposed.extra_pods,
        surge_pods=_surge_of(proposed),
        selection_fallback=selection.fallback,
        tolerance=proposed.tolerance,
        proposals=metrics.proposals,
        winner=metrics.winner,
        winning_policy=metrics.winning_policy,
        doubts=proposed.doubts,
        counts=counts,
    )
