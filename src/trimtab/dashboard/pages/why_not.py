"""Why not more replicas, and why not fewer: each direction in words, from the decision's own trace."""

from trimtab.dashboard.pages.views import PolicyView
from trimtab.decide.horizontal import Decision, DecisionReason, Observation, reason_for
from trimtab.decide.horizontal.behavior.normalize import DEFAULT_DOWN, DEFAULT_UP
from trimtab.decide.horizontal.behavior.rate_limits import scale_down_limit, scale_up_limit
from trimtab.decide.horizontal.explain.advice import advise, fewer, more
from trimtab.decide.horizontal.explain.change_reason import partly_held
from trimtab.decide.horizontal.explain.wording import SUMMARIES, describe_reason, next_step, when
from trimtab.decide.horizontal.metrics.on_loss import describe_fallback
from trimtab.decide.horizontal.metrics.proposal import Failure, LossFallback
from trimtab.decide.horizontal.status.dry_run import must_not_scale
from trimtab.model.hpa.types import HPAScalingPolicy, HPAScalingRules

_STARTS = {DecisionReason.ABOVE_MAXIMUM, DecisionReason.BELOW_MINIMUM}


def why_not_more(seen: Observation, decision: Decision) -> str:
    """Say why there are not more replicas, or that there will be."""
    trace, current = decision.trace, decision.current
    if decision.desired > current:
        return _moves(seen, decision, "grows", "would grow")
    if (settled := _unmeasured(seen, decision)) is not None:
        return settled
    if trace.recommended is not None and trace.recommended > current:
        return _held(seen, decision)
    ways = more(seen, decision)
    there = f"There are {current}, which is maxReplicas." if current >= trace.max_replicas else ""
    if not ways:
        return there or "No metric asks for more, and none would at any value now."
    return f"{there or 'No metric asks for more.'} It grows when {when(seen, decision, ways)}."


def why_not_less(seen: Observation, decision: Decision) -> str:
    """Say why there are not fewer replicas, or that there will be."""
    trace, current = decision.trace, decision.current
    if decision.desired < current:
        return _moves(seen, decision, "shrinks", "would shrink")
    if (settled := _unmeasured(seen, decision)) is not None:
        return settled
    if not current:
        return "There is nothing left to remove."
    if trace.recommended is not None and trace.recommended < current:
        return _held(seen, decision)
    if any(
        isinstance(one, Failure) or (isinstance(one, LossFallback) and one.holds) for one in trace.proposals
    ):
        return "A metric cannot be read, and replicas are not lowered on half the facts."
    if reason_for(decision) in {DecisionReason.LOSS_POLICY, DecisionReason.OWNERS_UNREAD}:
        return f"{_lost_metrics(decision)} Next: {_next(seen, decision)}.".lstrip()
    ways = fewer(seen, decision)
    there = f"There are {current}, which is minReplicas." if current <= trace.min_replicas else ""
    if not ways:
        return there or "The present replicas are needed, and no value of the metrics asks for fewer now."
    return f"{there or 'The present replicas are needed.'} It shrinks when {when(seen, decision, ways)}."


def _lost_metrics(decision: Decision) -> str:
    """Say what the lost metrics count as."""
    lost = [one for one in decision.trace.proposals if isinstance(one, LossFallback)]
    return " ".join(f"{one.label} cannot be read: {describe_fallback(one)}." for one in lost)


def _moves(seen: Observation, decision: Decision, verb: str, would: str) -> str:
    text = f"It {verb} from {decision.current} to {decision.desired}"
    if must_not_scale(seen.hpa, seen.gates):
        text = f"It {would} from {decision.current} to {decision.desired}, but nothing is scaled: {_next(seen, decision)}"
    held = partly_held(decision)
    return f"{text}; {held}." if held else f"{text}."


def _unmeasured(seen: Observation, decision: Decision) -> str | None:
    """Return the sentence for a decision in which no metric counted; both directions have the same reason."""
    if decision.trace.recommended is not None:
        return None
    reason = reason_for(decision)
    if reason in _STARTS:
        return f"{_sentence(SUMMARIES[reason])} Metrics do not count until that is corrected."
    sentence = _sentence(describe_reason(seen, decision, reason))
    return f"{sentence} To change that: {_next(seen, decision)}."


def _held(seen: Observation, decision: Decision) -> str:
    why = describe_reason(seen, decision, reason_for(decision)).partition(", but ")
    return f"The metrics ask for {decision.trace.recommended}, but {why[2] or why[0]}. Next: {_next(seen, decision)}."


def _next(seen: Observation, decision: Decision) -> str:
    reason = reason_for(decision)
    return next_step(seen, decision, reason, advise(seen, decision, reason))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def down_window(seen: Observation) -> float:
    """Return the scale-down window in seconds."""
    rules = _rules(seen, is_up=False)
    own = rules.stabilization_window_seconds if rules else None
    return seen.settings.downscale_stabilization if own is None else float(own)


def up_limits(seen: Observation, decision: Decision) -> PolicyView:
    """Tell the rules for growing."""
    current, highest = decision.current, decision.trace.max_replicas
    rules = _rules(seen, is_up=True)
    if rules is None:
        settings = seen.settings
        allowed = int(max(settings.scale_up_limit_factor * current, settings.scale_up_limit_minimum))
        factor, least = settings.scale_up_limit_factor, settings.scale_up_limit_minimum
        told = (f"{factor:g} times the replicas per sync, or up to {least:g}",)
        return PolicyView(window_seconds=0, select="Max", policies=told, allowed=min(allowed, highest))
    limit = scale_up_limit(current, seen.memory, rules, decision.now, seen.compat)
    return PolicyView(
        window_seconds=float(rules.stabilization_window_seconds or 0),
        select=rules.select_policy or "Max",
        policies=_policies(rules),
        allowed=min(max(limit.replicas, current), max(highest, current)),
    )


def down_limits(seen: Observation, decision: Decision) -> PolicyView:
    """Tell the rules for shrinking."""
    current, lowest = decision.current, decision.trace.min_replicas
    window = down_window(seen)
    rules = _rules(seen, is_up=False)
    if rules is None:
        return PolicyView(window_seconds=window, select="Max", policies=(), allowed=min(lowest, current))
    limit = scale_down_limit(current, seen.memory, rules, decision.now, seen.compat)
    return PolicyView(
        window_seconds=window,
        select=rules.select_policy or "Max",
        policies=_policies(rules),
        allowed=max(min(limit.replicas, current), min(lowest, current)),
    )


def _rules(seen: Observation, *, is_up: bool) -> HPAScalingRules | None:
    """Return the rules of a direction; None where the HPA has no `behavior` at all."""
    behavior = seen.hpa.spec.behavior
    if behavior is None:
        return None
    return (behavior.scale_up or DEFAULT_UP) if is_up else (behavior.scale_down or DEFAULT_DOWN)


def _policies(rules: HPAScalingRules) -> tuple[str, ...]:
    return tuple(_policy(one) for one in rules.policies)


def _policy(policy: HPAScalingPolicy) -> str:
    unit = " %" if policy.type == "Percent" else (" pod" if policy.value == 1 else " pods")
    return f"{policy.value}{unit} per {policy.period_seconds} s"
