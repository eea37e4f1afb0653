"""What may be done now with the replicas that are asked for: doubts, windows, bounds and rates, and the rules of zero.

Each limit takes a `Count` and returns one, with a reason of its own where it changes the number. Floats are used as upstream uses
them: 50 replicas and 10 % allow 56, and 10 replicas less 90 % allow 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

from trimtab.decide.horizontal.arithmetic import INT32_MAX, INT32_MIN, int32_of
from trimtab.decide.horizontal.memory import (
    LONGEST_WINDOW,
    Memory,
    Recommendation,
    ScaleEvent,
    add_event,
    overwrite_event,
    overwrite_outdated,
    remember,
)
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.reasons import Code, Count, Earlier, Rate, Reason
from trimtab.decide.horizontal.rules import HpaSettings, Rules
from trimtab.model.core.meta import Condition
from trimtab.model.core.workloads import Scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.metric_kinds import WAKING
from trimtab.model.hpa.types import (
    ConditionType,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec,
    HPAScalingPolicy,
    HPAScalingRules,
    ScalingPolicySelect,
    ScalingPolicyType,
)

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


def not_lower(count: Count, doubts: Iterable[Reason], current: int) -> Count:
    """Keep the replicas from being lowered while something is not known well enough to remove pods."""
    doubt = next(iter(doubts), None) if count.replicas < current else None
    return count if doubt is None else Count(current, doubt)


GRACE_SECONDS = 0.5
"""How much shorter a window or a period of ours is. One that is a whole number of syncs ends at that sync, not one later."""


class Windows(NamedTuple):
    """The stabilization windows of both directions, in seconds."""

    up: float = 0.0
    down: float = 300.0


def windows_of(behavior: HorizontalPodAutoscalerBehavior | None, settings: HpaSettings) -> Windows:
    """Return the windows of both directions, with the controller's default where none is set."""
    if behavior is None:
        return Windows(0.0, settings.downscale_stabilization)
    up = behavior.scale_up.stabilization_window_seconds if behavior.scale_up else None
    down = behavior.scale_down.stabilization_window_seconds if behavior.scale_down else None
    return Windows(float(up or 0), float(int(settings.downscale_stabilization) if down is None else down))


def within_windows(count: Count, seen: Observation, memory: Memory, now: float) -> Count:
    """Let recent recommendations hold the replicas back.

    Without `behavior` the highest recommendation of the downscale window counts. With it each direction has its own window: the
    lowest of the up-window bounds growth, the highest of the down-window bounds shrinking.
    """
    behavior, asked = seen.hpa.spec.behavior, count.replicas
    windows = windows_of(behavior, seen.settings)
    known, by = memory.recommendations or (), now + (GRACE_SECONDS if seen.rules.ours else 0.0)
    if behavior is None:
        allowed = highest_within(known, asked, by, windows.down)
    else:
        allowed = within_both_windows(known, seen.current, asked, by, windows)
    if allowed == asked:
        return count
    current = seen.current
    if behavior is not None and asked >= current:
        code, window = Code.UP_WINDOW, windows.up
    else:
        is_raised = asked <= current < allowed
        code, window = Code.EARLIER_RECOMMENDATION if is_raised else Code.DOWN_WINDOW, windows.down
    at = max((recommended.at for recommended in known if recommended.replicas == allowed), default=None)
    return Count(allowed, Reason(code=code, facts=Earlier(replicas=allowed, at=at, window=window)))


def highest_within(known: Iterable[Recommendation], asked: int, now: float, window: float) -> int:
    """Return the highest recommendation of the window, its very edge included."""
    cutoff, highest = now - window, asked
    for recommended in known:
        if recommended.replicas > highest and recommended.at >= cutoff:
            highest = recommended.replicas
    return highest


def within_both_windows(
    known: Sequence[Recommendation], current: int, asked: int, now: float, windows: Windows
) -> int:
    """Return the replicas that both windows allow.

    Here a recommendation exactly as old as its window no longer counts, as upstream has it.
    """
    up_cutoff, down_cutoff = now - windows.up, now - windows.down
    lowest = highest = asked
    for recommended in known:
        if recommended.replicas < lowest and recommended.at > up_cutoff:
            lowest = recommended.replicas
        elif recommended.replicas > highest and recommended.at > down_cutoff:
            highest = recommended.replicas
    return min(max(current, lowest), highest)


def window_edges(seen: Observation, memory: Memory) -> Iterator[float]:
    """Yield when a recommendation before the last one leaves a window, or is forgotten."""
    windows = windows_of(seen.hpa.spec.behavior, seen.settings)
    spans = {windows.up, windows.down, seen.settings.downscale_stabilization, LONGEST_WINDOW}
    for recommended in (memory.recommendations or ())[:-1]:
        for span in spans:
            yield recommended.at + span - GRACE_SECONDS
            yield recommended.at + span


def recommendations_after(
    seen: Observation, memory: Memory, asked: int, now: float
) -> tuple[Recommendation, ...]:
    """Return the recommendations to remember, the new one included."""
    known, windows = memory.recommendations or (), windows_of(seen.hpa.spec.behavior, seen.settings)
    longest = max(windows)
    if seen.rules.ours:
        return remember(known, asked, now, max(longest, LONGEST_WINDOW))
    return overwrite_outdated(known, asked, now, now - longest)


class Bounds(NamedTuple):
    """minReplicas and maxReplicas in force."""

    lowest: int
    highest: int

    def against(self, current: int) -> Count | None:
        """Return the bound that the present replicas are outside of, or None if they are within both."""
        if current > self.highest:
            return Count(self.highest, Reason(code=Code.ABOVE_MAXIMUM))
        return Count(self.lowest, Reason(code=Code.BELOW_MINIMUM)) if current < self.lowest else None


def bounds_of(spec: HorizontalPodAutoscalerSpec, gates: FeatureGates, rules: Rules) -> Bounds:
    """Return the bounds in force. The maximum is at least 1 even if a stored object has none, and so is the minimum with the gate off."""
    lowest = 1 if spec.min_replicas is None else spec.min_replicas
    if rules.ours and not gates.hpa_scale_to_zero:
        # The HPA could not leave zero again.
        lowest = max(lowest, 1)
    return Bounds(lowest, max(spec.max_replicas, 1))


def within_bounds_and_rates(
    count: Count, seen: Observation, bounds: Bounds, memory: Memory, now: float
) -> Count:
    """Limit the replicas to [min, max], and to the growth that is allowed at once."""
    if seen.hpa.spec.behavior is None:
        return limit_by_rules(count, seen.current, bounds, seen.settings)
    return limit_by_behavior(count, seen, bounds, memory, now)


def limit_by_rules(count: Count, current: int, bounds: Bounds, settings: HpaSettings) -> Count:
    """Limit the replicas to [min, max] and to the growth of a single sync."""
    limit = int32_of(max(settings.scale_up_limit_factor * current, settings.scale_up_limit_minimum))
    if count.replicas < bounds.lowest:
        return Count(bounds.lowest, Reason(code=Code.AT_MINIMUM))
    if count.replicas > min(limit, bounds.highest):
        if bounds.highest > limit:
            return Count(limit, Reason(code=Code.UP_RATE, facts=Rate(replicas=limit)))
        return Count(bounds.highest, Reason(code=Code.AT_MAXIMUM))
    return count


def limit_by_behavior(count: Count, seen: Observation, bounds: Bounds, memory: Memory, now: float) -> Count:
    """Limit the replicas to [min, max] and to what the scaling policies allow."""
    behavior = seen.hpa.spec.behavior or HorizontalPodAutoscalerBehavior()
    current, replicas = seen.current, count.replicas
    if replicas > current:
        rate = rate_limit(current, memory, behavior.scale_up or DEFAULT_UP, now, seen.rules, is_up=True)
        # Past the limit already: hold until the events leave the period, but never reverse.
        allowed = max(rate.replicas, current)
        if replicas > min(allowed, bounds.highest):
            if bounds.highest > allowed:
                code = Code.UP_DISABLED if rate.is_disabled else Code.UP_RATE
                return Count(allowed, Reason(code=code, facts=rate))
            return Count(bounds.highest, Reason(code=Code.AT_MAXIMUM))
    elif replicas < current:
        rate = rate_limit(current, memory, behavior.scale_down or DEFAULT_DOWN, now, seen.rules, is_up=False)
        allowed = min(rate.replicas, current)
        if replicas < max(allowed, bounds.lowest):
            if bounds.lowest < allowed:
                code = Code.DOWN_DISABLED if rate.is_disabled else Code.DOWN_RATE
                return Count(allowed, Reason(code=code, facts=rate))
            return Count(bounds.lowest, Reason(code=Code.AT_MINIMUM))
    return count


def rate_limit(
    current: int, memory: Memory, scaling: HPAScalingRules, now: float, rules: Rules, *, is_up: bool
) -> Rate:
    """Return how far the policies of one direction let the replicas go.

    It is the limit of the strictest policy with `selectPolicy: Min`, else of the most generous.
    """
    if scaling.select_policy == ScalingPolicySelect.DISABLED:
        return Rate(replicas=current, is_disabled=True)
    takes_lowest = is_up == (scaling.select_policy == ScalingPolicySelect.MIN)
    best = Rate(replicas=INT32_MAX if takes_lowest else INT32_MIN)
    allowed, grace = 0, GRACE_SECONDS if rules.ours else 0.0
    for policy in scaling.policies:
        seconds = policy.period_seconds - grace
        # A change that was found may be a user's. It limits its own direction and frees nothing in the other.
        added = change_within(seconds, memory.scale_up, now, with_found=is_up)
        removed = change_within(seconds, memory.scale_down, now, with_found=not is_up)
        allowed = _allowed(int32_of(current - added + removed), policy, rules, allowed, is_up=is_up)
        if allowed < best.replicas if takes_lowest else allowed > best.replicas:
            best = Rate(replicas=allowed, policy=policy)
    return best


def change_within(
    period_seconds: float, events: Iterable[ScaleEvent], now: float, *, with_found: bool = True
) -> int:
    """Return the sum of the scale events younger than the period."""
    cutoff = now - period_seconds
    return sum(event.change for event in events if event.at > cutoff and (with_found or not event.is_found))


def rate_edges(seen: Observation, memory: Memory) -> Iterator[float]:
    """Yield when a scale event leaves the period of a policy."""
    behavior = seen.hpa.spec.behavior
    if behavior is None:
        return
    rules = (behavior.scale_up or DEFAULT_UP, behavior.scale_down or DEFAULT_DOWN)
    periods = {policy.period_seconds for rule in rules for policy in rule.policies}
    for event in (*memory.scale_up, *memory.scale_down):
        yield from (event.at + period - GRACE_SECONDS for period in periods)


def _allowed(start: int, policy: HPAScalingPolicy, rules: Rules, previous: int, *, is_up: bool) -> int:
    """Return how far a policy lets the replicas go that there were at the start of its period."""
    if policy.type == ScalingPolicyType.PODS:
        return int32_of(start + policy.value if is_up else start - policy.value)
    if policy.type != ScalingPolicyType.PERCENT:
        return previous  # an unknown type passes no validation; upstream then repeats the policy before
    if not is_up:
        return int32_of(start * (1 - policy.value / 100))
    allowed = int32_of(ceil(start * (1 + policy.value / 100)))
    # A share of 0 is 0; by upstream's rules such a policy can never leave zero.
    return max(allowed, 1) if start <= 0 and policy.value > 0 and rules.ours else allowed


def scale_events(
    memory: Memory,
    behavior: HorizontalPodAutoscalerBehavior | None,
    before: int,
    after: int,
    now: float,
    *,
    compact: bool,
) -> tuple[tuple[ScaleEvent, ...], tuple[ScaleEvent, ...]]:
    """Return the scale events after a change. Ours are kept without `behavior`, too, which may be set later."""
    if behavior is None and not compact:
        return memory.scale_up, memory.scale_down
    is_up, change = after > before, abs(after - before)
    events = memory.scale_up if is_up else memory.scale_down
    if compact:
        events = add_event(events, change, now)
    else:
        scaling = (behavior.scale_up if is_up else behavior.scale_down) if behavior is not None else None
        longest = max((policy.period_seconds for policy in scaling.policies), default=0) if scaling else 0
        events = overwrite_event(events, change, now, longest)
    return (events, memory.scale_down) if is_up else (memory.scale_up, events)


# Zero (KEP-2021): a workload at zero is paused, unless the condition `ScaledToZero` says that the HPA itself brought it there.


def can_scale_from_zero(spec: HorizontalPodAutoscalerSpec) -> bool:
    """Return whether the spec has a metric that can be read without pods."""
    return any(metric.type in WAKING for metric in spec.metrics)


def is_scaled_to_zero(conditions: Iterable[Condition]) -> bool:
    """Return whether `ScaledToZero` is True: the HPA itself brought the workload to zero."""
    return any(
        condition.type == ConditionType.SCALED_TO_ZERO and condition.status == "True"
        for condition in conditions
    )


def may_wake(hpa: HorizontalPodAutoscaler, bounds: Bounds, gates: FeatureGates) -> bool:
    """Return whether metrics, or a raised minimum, wake a workload at zero."""
    is_ours = gates.hpa_scale_to_zero and is_scaled_to_zero(hpa.status.conditions)
    return is_ours and (bounds.lowest > 0 or can_scale_from_zero(hpa.spec))


def needs_metrics(hpa: HorizontalPodAutoscaler, scale: Scale, gates: FeatureGates, rules: Rules) -> bool:
    """Return whether metrics decide: not while paused, nor outside of minReplicas and maxReplicas."""
    bounds, current = bounds_of(hpa.spec, gates, rules), scale.spec.replicas
    return bounds.against(current) is None if current else may_wake(hpa, bounds, gates)


def goes_to_zero(seen: Observation, desired: int, lowest: int) -> bool:
    """Return whether a rescale brings the workload to a zero that the HPA can wake it from."""
    return (
        seen.gates.hpa_scale_to_zero
        and seen.current > 0
        and desired == 0
        and lowest == 0
        and can_scale_from_zero(seen.hpa.spec)
    )
