"""Why there are not more and not fewer replicas, in words, and the limits of each direction."""

from trimtab.dashboard.pages.views import PolicyView
from trimtab.decide.horizontal import Code, Decision, Observation
from trimtab.decide.horizontal.advice import advise, fewer, more
from trimtab.decide.horizontal.explain import (
    describe_reason,
    describe_recommendation,
    next_step,
    partly_held,
    when,
)
from trimtab.decide.horizontal.limits import DEFAULT_DOWN, DEFAULT_UP, rate_limit
from trimtab.decide.horizontal.metrics.combine import LossFallback, describe_fallback
from trimtab.decide.horizontal.metrics.kinds import Failure
from trimtab.decide.horizontal.observation.observation import policies_of
from trimtab.decide.horizontal.reasons import ROWS
from trimtab.decide.horizontal.status.ignored_fields import must_not_scale
from trimtab.model.hpa.types import HPAScalingPolicy, HPAScalingRules
from trimtab.model.readable import counted

_OUT_OF_BOUNDS = {Code.ABOVE_MAXIMUM, Code.BELOW_MINIMUM}


def why_not_more(observation: Observation, decision: Decision) -> str:
    """Return why there are not more replicas, or that there will be."""
    trace, current = decision.trace, decision.current
    if decision.desired > current:
        return _change(observation, decision, "grows", "would grow")
    if trace.recommended is None:
        return _without_metrics(observation, decision)
    if trace.recommended > current:
        return _held(observation, decision)
    bound = f"There are {current}, which is maxReplicas." if current >= trace.max_replicas else ""
    ways = more(observation, decision)
    if not ways:
        return bound or "No metric asks for more, and none would at any value now."
    enough = (
        "Neither a metric nor a policy asks for more."
        if policies_of(observation)
        else "No metric asks for more."
    )
    return f"{bound or enough} It grows when {when(observation, decision, ways)}."


def why_not_less(observation: Observation, decision: Decision) -> str:
    """Return why there are not fewer replicas, or that there will be."""
    trace, current = decision.trace, decision.current
    if decision.desired < current:
        return _change(observation, decision, "shrinks", "would shrink")
    if trace.recommended is None:
        return _without_metrics(observation, decision)
    if not current:
        return "There is nothing left to remove."
    if trace.recommended < current:
        return _held(observation, decision)
    return _lost_metrics(observation, decision) or _needed(observation, decision)


def _change(observation: Observation, decision: Decision, verb: str, would: str) -> str:
    text = f"It {verb} from {decision.current} to {decision.desired}"
    if must_not_scale(observation.hpa, observation.gates):
        text = f"It {would} from {decision.current} to {decision.desired}, but nothing is scaled: {_next(observation, decision)}"
    held = partly_held(observation, decision)
    return f"{text}; {held}." if held else f"{text}."


def _without_metrics(observation: Observation, decision: Decision) -> str:
    """Return the reason, for both directions, of a decision in which no metric counted."""
    code = decision.reason.code
    if code in _OUT_OF_BOUNDS:
        return f"{_sentence(ROWS[code].says)} Metrics do not count until that is corrected."
    sentence = _sentence(describe_reason(observation, decision))
    return f"{sentence} To change that: {_next(observation, decision)}."


def _held(observation: Observation, decision: Decision) -> str:
    first, _, rest = describe_reason(observation, decision).partition(", but ")
    recommended = _sentence(describe_recommendation(observation, decision)).removesuffix(".")
    return f"{recommended}, but {rest or first}. Next: {_next(observation, decision)}."


def _lost_metrics(observation: Observation, decision: Decision) -> str:
    """Return that metrics which cannot be read hold the replicas, or an empty text."""
    proposals = decision.trace.proposals
    lost = [proposal for proposal in proposals if isinstance(proposal, LossFallback)]
    if any(isinstance(proposal, Failure) for proposal in proposals) or any(metric.holds for metric in lost):
        return "A metric cannot be read, and replicas are not lowered on half the facts."
    if decision.reason.code not in {
        Code.LOSS_POLICY,
        Code.OWNERS_UNREAD,
        Code.PLUGIN_FAILED,
        Code.CACHES_STALE,
    }:
        return ""
    fallbacks = " ".join(f"{metric.label} cannot be read: {describe_fallback(metric)}." for metric in lost)
    return f"{fallbacks} Next: {_next(observation, decision)}.".lstrip()


def _needed(observation: Observation, decision: Decision) -> str:
    current = decision.current
    bound = f"There are {current}, which is minReplicas." if current <= decision.trace.min_replicas else ""
    ways = fewer(observation, decision)
    if not ways:
        return bound or "The present replicas are needed, and no value of the metrics asks for fewer now."
    return (
        f"{bound or 'The present replicas are needed.'} It shrinks when {when(observation, decision, ways)}."
    )


def _next(observation: Observation, decision: Decision) -> str:
    return next_step(observation, decision, advise(observation, decision))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def down_window(observation: Observation) -> float:
    """Return the scale-down window in seconds."""
    rules = _rules(observation, is_up=False)
    own = rules.stabilization_window_seconds if rules else None
    return observation.settings.downscale_stabilization if own is None else float(own)


def up_limits(observation: Observation, decision: Decision) -> PolicyView:
    """Return the rules for scaling up, and what they allow now."""
    current, highest = decision.current, decision.trace.max_replicas
    rules = _rules(observation, is_up=True)
    if rules is None:
        settings = observation.settings
        factor, least = settings.scale_up_limit_factor, settings.scale_up_limit_minimum
        allowed = int(max(factor * current, least))
        policy = f"{factor:g} times the replicas per sync, or up to {least:g}"
        return PolicyView(window_seconds=0, select="Max", policies=(policy,), allowed=min(allowed, highest))
    limit = rate_limit(current, observation.memory, rules, decision.now, observation.rules, is_up=True)
    return PolicyView(
        window_seconds=float(rules.stabilization_window_seconds or 0),
        select=rules.select_policy or "Max",
        policies=tuple(_policy(policy) for policy in rules.policies),
        allowed=min(max(limit.replicas, current), max(highest, current)),
    )


def down_limits(observation: Observation, decision: Decision) -> PolicyView:
    """Return the rules for scaling down, and what they allow now."""
    current, lowest = decision.current, decision.trace.min_replicas
    window = down_window(observation)
    rules = _rules(observation, is_up=False)
    if rules is None:
        return PolicyView(window_seconds=window, select="Max", policies=(), allowed=min(lowest, current))
    limit = rate_limit(current, observation.memory, rules, decision.now, observation.rules, is_up=False)
    return PolicyView(
        window_seconds=window,
        select=rules.select_policy or "Max",
        policies=tuple(_policy(policy) for policy in rules.policies),
        allowed=max(min(limit.replicas, current), min(lowest, current)),
    )


def _rules(observation: Observation, *, is_up: bool) -> HPAScalingRules | None:
    behavior = observation.hpa.spec.behavior
    if behavior is None:
        return None
    return (behavior.scale_up or DEFAULT_UP) if is_up else (behavior.scale_down or DEFAULT_DOWN)


def _policy(policy: HPAScalingPolicy) -> str:
    amount = f"{policy.value} %" if policy.type == "Percent" else counted(policy.value, "pod")
    return f"{amount} per {policy.period_seconds} s"
