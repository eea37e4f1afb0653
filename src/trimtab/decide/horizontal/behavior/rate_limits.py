"""Scaling policies: how far the replicas may move within a period.

The replicas at the start of a period are the current ones without what was added and removed since. Floats are used as upstream
uses them: 50 replicas and 10 % allow 56, and 10 replicas less 90 % allow 0.
"""

from collections.abc import Iterable
from math import ceil

from trimtab.decide.horizontal.arithmetic import INT32_MAX, INT32_MIN, int32_of
from trimtab.decide.horizontal.behavior.stabilization import GRACE_SECONDS
from trimtab.decide.horizontal.memory import Memory, ScaleEvent, add_event, overwrite_event
from trimtab.decide.horizontal.rules import Rules
from trimtab.model.hpa.types import (
    HorizontalPodAutoscalerBehavior,
    HPAScalingPolicy,
    HPAScalingRules,
    ScalingPolicySelect,
    ScalingPolicyType,
)
from trimtab.model.json.wire import Wire


class RateLimit(Wire):
    """How far the replicas may go now, and the policy that limits them."""

    replicas: int
    policy: HPAScalingPolicy | None = None
    is_disabled: bool = False
    """Whether the direction is switched off by `selectPolicy: Disabled`."""


def change_within(
    period_seconds: float, events: Iterable[ScaleEvent], now: float, *, with_found: bool = True
) -> int:
    """Return the sum of the scale events younger than the period."""
    cutoff = now - period_seconds
    return sum(event.change for event in events if event.at > cutoff and (with_found or not event.is_found))


def scale_up_limit(
    current: int, memory: Memory, scaling: HPAScalingRules, now: float, rules: Rules
) -> RateLimit:
    """Return the most replicas that the policies allow."""
    return _limit(current, memory, scaling, now, rules, is_up=True)


def scale_down_limit(
    current: int, memory: Memory, scaling: HPAScalingRules, now: float, rules: Rules
) -> RateLimit:
    """Return the fewest replicas that the policies allow."""
    return _limit(current, memory, scaling, now, rules, is_up=False)


def _limit(
    current: int, memory: Memory, scaling: HPAScalingRules, now: float, rules: Rules, *, is_up: bool
) -> RateLimit:
    """Return the limit of the strictest policy with `selectPolicy: Min`, else of the most generous."""
    if scaling.select_policy == ScalingPolicySelect.DISABLED:
        return RateLimit(replicas=current, is_disabled=True)
    takes_lowest = is_up == (scaling.select_policy == ScalingPolicySelect.MIN)
    best = RateLimit(replicas=INT32_MAX if takes_lowest else INT32_MIN)
    allow = _allowed_up if is_up else _allowed_down
    allowed, grace = 0, GRACE_SECONDS if rules.ours else 0.0
    for policy in scaling.policies:
        start = _period_start(current, memory, policy.period_seconds - grace, now, is_up=is_up)
        allowed = allow(start, policy, rules, allowed)
        if allowed < best.replicas if takes_lowest else allowed > best.replicas:
            best = RateLimit(replicas=allowed, policy=policy)
    return best


def _period_start(current: int, memory: Memory, seconds: float, now: float, *, is_up: bool) -> int:
    # A change that was found may be a user's. It limits its own direction and frees nothing in the other.
    added = change_within(seconds, memory.scale_up, now, with_found=is_up)
    removed = change_within(seconds, memory.scale_down, now, with_found=not is_up)
    return int32_of(current - added + removed)


def _allowed_up(start: int, policy: HPAScalingPolicy, rules: Rules, previous: int) -> int:
    if policy.type == ScalingPolicyType.PODS:
        return int32_of(start + policy.value)
    if policy.type == ScalingPolicyType.PERCENT:
        allowed = int32_of(ceil(start * (1 + policy.value / 100)))
        # A share of 0 is 0; without the ruling such a policy could never leave zero.
        return max(allowed, 1) if start <= 0 and policy.value > 0 and rules.ours else allowed
    return previous  # an unknown type passes no validation; upstream then repeats the policy before


def _allowed_down(start: int, policy: HPAScalingPolicy, _rules: Rules, previous: int) -> int:
    if policy.type == ScalingPolicyType.PODS:
        return int32_of(start - policy.value)
    if policy.type == ScalingPolicyType.PERCENT:
        return int32_of(start * (1 - policy.value / 100))
    return previous


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
    is_up = after > before
    events = memory.scale_up if is_up else memory.scale_down
    change = abs(after - before)
    if compact:
        events = add_event(events, change, now)
    else:
        rules = (behavior.scale_up if is_up else behavior.scale_down) if behavior is not None else None
        longest = max((policy.period_seconds for policy in rules.policies), default=0) if rules else 0
        events = overwrite_event(events, change, now, longest)
    return (events, memory.scale_down) if is_up else (memory.scale_up, events)
