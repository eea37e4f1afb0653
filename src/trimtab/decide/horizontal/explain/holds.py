"""What holds the replicas in one direction: windows, bounds and rates, in their order."""

from collections.abc import Callable, Iterable, Iterator
from math import inf

import msgspec

from trimtab.decide.horizontal.behavior.normalize import DEFAULT_DOWN, DEFAULT_UP, windows_of
from trimtab.decide.horizontal.behavior.rate_limits import (
    RateLimit,
    scale_down_limit,
    scale_up_limit,
)
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.explain.reason import DecisionReason
from trimtab.decide.horizontal.memory import Memory, Recommendation
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.model.hpa.types import HPAScalingRules, ScalingPolicySelect
from trimtab.model.json.wire import Wire


class Hold(Wire):
    """A window, bound or rate that holds the replicas."""

    reason: DecisionReason
    until: float | None = None
    """When it ends by itself; None if only a change of the spec ends it."""
    seconds: float = 0.0
    """How long the metrics have to ask before a window allows it, where they do not ask yet."""


def holds_on(observation: Observation, decision: Decision, *, is_up: bool) -> tuple[Hold, ...]:
    """Return everything that holds the replicas in that direction now."""
    window = _window(observation, decision, is_up=is_up)
    found = (
        window,
        _bound(decision, is_up=is_up),
        *_rates(observation, decision, _after(window, decision.now), is_up=is_up),
    )
    return tuple(hold for hold in found if hold is not None)


def _after(window: Hold | None, now: float) -> float:
    """Return when a sync can find that the window no longer holds, which includes its last moment."""
    if window is None:
        return now
    return (now + window.seconds if window.until is None else window.until) + 1


def _window(observation: Observation, decision: Decision, *, is_up: bool) -> Hold | None:
    """Return the window if a recommendation in it holds, or if no metric asks for the direction yet."""
    trace, current, now = decision.trace, decision.current, decision.now
    windows = windows_of(observation.hpa.spec.behavior, observation.settings)
    window = windows.up if is_up else windows.down
    if observation.hpa.spec.behavior is None:
        window = 0.0 if is_up else observation.settings.downscale_stabilization
    if not window:
        return None
    reason = DecisionReason.UP_WINDOW if is_up else DecisionReason.DOWN_WINDOW
    asked = trace.recommended if trace.recommended is not None else current
    if not (asked > current if is_up else asked < current):
        return Hold(reason=reason, seconds=window)
    stabilized = trace.normalized.stabilized.replicas if trace.normalized is not None else asked
    if stabilized > current if is_up else stabilized < current:
        return None
    against = _against(decision.memory.recommendations or (), current, is_up=is_up)
    return Hold(
        reason=reason, until=max((recommendation.at for recommendation in against), default=now) + window
    )


def _against(known: Iterable[Recommendation], current: int, *, is_up: bool) -> list[Recommendation]:
    return [
        recommendation
        for recommendation in known
        if (recommendation.replicas <= current if is_up else recommendation.replicas >= current)
    ]


def _bound(decision: Decision, *, is_up: bool) -> Hold | None:
    if is_up:
        return (
            Hold(reason=DecisionReason.AT_MAXIMUM)
            if decision.current >= decision.trace.max_replicas
            else None
        )
    return Hold(reason=DecisionReason.AT_MINIMUM) if decision.current <= decision.trace.min_replicas else None


def _rates(observation: Observation, decision: Decision, after: float, *, is_up: bool) -> Iterator[Hold]:
    """Yield the scaling policies if they allow no change now, or none `after` the window.

    They may allow a change now and none later: scale-ups leave their period and no longer offset scale-downs.
    """
    behavior = observation.hpa.spec.behavior
    if behavior is None:
        return
    up, down = behavior.scale_up or DEFAULT_UP, behavior.scale_down or DEFAULT_DOWN
    rules, current = (up if is_up else down), decision.current
    if rules.select_policy == ScalingPolicySelect.DISABLED:
        yield Hold(reason=DecisionReason.UP_DISABLED if is_up else DecisionReason.DOWN_DISABLED)
        rules = msgspec.structs.replace(rules, select_policy=ScalingPolicySelect.MAX)

    def allows(moment: float) -> bool:
        limit = _limit(observation, decision, rules, moment, is_up=is_up)
        return limit.replicas > current if is_up else limit.replicas < current

    begin = decision.now if allows(after) else after
    if not allows(begin):
        reason = DecisionReason.UP_RATE if is_up else DecisionReason.DOWN_RATE
        yield Hold(reason=reason, until=_first(allows, _ends(decision.memory, rules, begin)))


def _limit(
    observation: Observation, decision: Decision, rules: HPAScalingRules, moment: float, *, is_up: bool
) -> RateLimit:
    limit_of = scale_up_limit if is_up else scale_down_limit
    return limit_of(decision.current, decision.memory, rules, moment, observation.rules)


def _ends(memory: Memory, rules: HPAScalingRules, now: float) -> Iterator[float]:
    """Yield the times at which a scale event leaves the period of a policy, soonest first."""
    events = (*memory.scale_up, *memory.scale_down)
    ends = {event.at + policy.period_seconds for event in events for policy in rules.policies}
    yield from sorted(end for end in ends if end > now)


def _first(allows: Callable[[float], bool], moments: Iterable[float]) -> float:
    return next((moment for moment in moments if allows(moment)), inf)
