"""From the recommended replicas to those allowed now: windows, then minReplicas, maxReplicas and rates."""

from trimtab.decide.horizontal.arithmetic import int32_of
from trimtab.decide.horizontal.behavior.rate_limits import (
    RateLimit,
    scale_down_limit,
    scale_up_limit,
)
from trimtab.decide.horizontal.behavior.stabilization import (
    GRACE_SECONDS,
    Stabilized,
    Windows,
    stabilize,
    stabilize_both_ways,
)
from trimtab.decide.horizontal.memory import LONGEST_WINDOW, Memory, overwrite_outdated, remember
from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.model.hpa.types import HorizontalPodAutoscalerBehavior, HPAScalingPolicy, HPAScalingRules
from trimtab.model.json.wire import Wire

WITHIN_RANGE = "DesiredWithinRange"
TOO_FEW = "TooFewReplicas"
TOO_MANY = "TooManyReplicas"
SCALE_UP_LIMIT = "ScaleUpLimit"
SCALE_DOWN_LIMIT = "ScaleDownLimit"

MESSAGES = {
    WITHIN_RANGE: "the desired count is within the acceptable range",
    TOO_FEW: "the desired replica count is less than the minimum replica count",
    TOO_MANY: "the desired replica count is more than the maximum replica count",
    SCALE_UP_LIMIT: "the desired replica count is increasing faster than the maximum scale rate",
    SCALE_DOWN_LIMIT: "the desired replica count is decreasing faster than the maximum scale rate",
}

# A stored object may lack fields that admission fills in; they count as the API's defaults.
DEFAULT_UP = HPAScalingRules(
    stabilization_window_seconds=0,
    select_policy="Max",
    policies=(
        HPAScalingPolicy(type="Pods", value=4, period_seconds=15),
        HPAScalingPolicy(type="Percent", value=100, period_seconds=15),
    ),
)
DEFAULT_DOWN = HPAScalingRules(
    select_policy="Max", policies=(HPAScalingPolicy(type="Percent", value=100, period_seconds=15),)
)


class NormalizeInput(Wire):
    """The replicas to normalize, and their bounds."""

    current: int
    desired: int
    lowest: int
    highest: int
    behavior: HorizontalPodAutoscalerBehavior | None = None


class Limited(Wire):
    """The replicas after bounds and rates, and which of them limited."""

    replicas: int
    reason: str = WITHIN_RANGE
    limit: RateLimit | None = None


class Normalized(Wire):
    """The replicas to set now, with the steps that led to them."""

    replicas: int
    stabilized: Stabilized
    limited: Limited

    @property
    def is_limited(self) -> bool:
        """Return whether bounds or rates changed what the windows allowed."""
        return self.replicas != self.stabilized.replicas


def normalize(
    wanted: NormalizeInput, memory: Memory, now: float, settings: HpaSettings, rules: Rules
) -> Normalized:
    """Apply the windows, then bounds and rates."""
    if wanted.behavior is None:
        stabilized = stabilize(
            memory.recommendations or (),
            wanted.desired,
            now,
            settings.downscale_stabilization,
            compact=rules.ours,
        )
        limited = limit_by_rules(wanted, stabilized.replicas, settings)
    else:
        stabilized = stabilize_with_behavior(wanted, memory, now, settings, rules)
        limited = limit_by_behavior(wanted, stabilized.replicas, memory, now, rules)
    return Normalized(replicas=limited.replicas, stabilized=stabilized, limited=limited)


def stabilize_with_behavior(
    wanted: NormalizeInput, memory: Memory, now: float, settings: HpaSettings, rules: Rules
) -> Stabilized:
    """Apply the windows of both directions."""
    windows = windows_of(wanted.behavior, settings)
    recommendations = memory.recommendations or ()
    replicas, reason, window = stabilize_both_ways(
        recommendations, wanted.current, wanted.desired, now, windows, GRACE_SECONDS if rules.ours else 0.0
    )
    if rules.ours:
        kept = remember(recommendations, wanted.desired, now, max(windows.up, windows.down, LONGEST_WINDOW))
    else:
        kept = overwrite_outdated(recommendations, wanted.desired, now, now - max(windows.up, windows.down))
    return Stabilized(replicas=replicas, reason=reason, recommendations=kept, window=window)


def windows_of(behavior: HorizontalPodAutoscalerBehavior | None, settings: HpaSettings) -> Windows:
    """Return the windows of both directions, with the controller's default where none is set."""
    up = behavior.scale_up.stabilization_window_seconds if behavior and behavior.scale_up else None
    down = behavior.scale_down.stabilization_window_seconds if behavior and behavior.scale_down else None
    return Windows(
        up=float(up or 0), down=float(int(settings.downscale_stabilization) if down is None else down)
    )


def limit_by_rules(wanted: NormalizeInput, desired: int, settings: HpaSettings) -> Limited:
    """Limit the replicas to [min, max] and to the growth of a single sync."""
    growth = max(settings.scale_up_limit_factor * wanted.current, settings.scale_up_limit_minimum)
    limit = int32_of(growth)
    if desired < wanted.lowest:
        return Limited(replicas=wanted.lowest, reason=TOO_FEW)
    if desired > min(limit, wanted.highest):
        if wanted.highest > limit:
            return Limited(replicas=limit, reason=SCALE_UP_LIMIT, limit=RateLimit(replicas=limit))
        return Limited(replicas=wanted.highest, reason=TOO_MANY)
    return Limited(replicas=desired)


def limit_by_behavior(
    wanted: NormalizeInput, desired: int, memory: Memory, now: float, rules: Rules
) -> Limited:
    """Limit the replicas to [min, max] and to what the scaling policies allow."""
    behavior = wanted.behavior or HorizontalPodAutoscalerBehavior()
    if desired > wanted.current:
        limit = scale_up_limit(wanted.current, memory, behavior.scale_up or DEFAULT_UP, now, rules)
        # Past the limit already: hold until the events leave the period, but never reverse.
        allowed = max(limit.replicas, wanted.current)
        if desired > min(allowed, wanted.highest):
            if wanted.highest > allowed:
                return Limited(replicas=allowed, reason=SCALE_UP_LIMIT, limit=limit)
            return Limited(replicas=wanted.highest, reason=TOO_MANY)
    elif desired < wanted.current:
        limit = scale_down_limit(wanted.current, memory, behavior.scale_down or DEFAULT_DOWN, now, rules)
        allowed = min(limit.replicas, wanted.current)
        if desired < max(allowed, wanted.lowest):
            if wanted.lowest < allowed:
                return Limited(replicas=allowed, reason=SCALE_DOWN_LIMIT, limit=limit)
            return Limited(replicas=wanted.lowest, reason=TOO_FEW)
    return Limited(replicas=desired)
