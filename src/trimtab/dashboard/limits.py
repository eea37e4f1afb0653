"""The windows and rates that are in force for an HPA, and how far they let it go now."""

from trimtab.dashboard.views import PolicyView
from trimtab.decide.horizontal import Decision, Observation
from trimtab.decide.horizontal.behavior.normalize import DEFAULT_DOWN, DEFAULT_UP
from trimtab.decide.horizontal.behavior.rate_limits import scale_down_limit, scale_up_limit
from trimtab.model.hpa.types import HPAScalingPolicy, HPAScalingRules


def down_window(seen: Observation) -> float:
    """Return the scale-down window in seconds."""
    rules = _rules(seen, is_up=False)
    own = rules.stabilization_window_seconds if rules else None
    return seen.settings.downscale_stabilization if own is None else float(own)


def up_limits(seen: Observation, decision: Decision) -> PolicyView:
    """Tell the rules for growing."""
    current, highest = decision.current, decision.trail.highest
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
    current, lowest = decision.current, decision.trail.lowest
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
