"""Advice: what would have to change for the replicas to change, as values.

Advice comes cheapest first, and names every change that is needed together. Tests apply it to the observation and decide again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from math import inf, isfinite

import msgspec

from trimtab.decide.horizontal.decide import decide
from trimtab.decide.horizontal.decision import WINDOWS, Decision
from trimtab.decide.horizontal.limits import (
    DEFAULT_DOWN,
    DEFAULT_UP,
    bounds_of,
    can_scale_from_zero,
    is_scaled_to_zero,
    may_wake,
    rate_limit,
    windows_of,
)
from trimtab.decide.horizontal.memory import Memory, Recommendation
from trimtab.decide.horizontal.metrics.combine import LossFallback
from trimtab.decide.horizontal.metrics.kinds import Failure, Proposal
from trimtab.decide.horizontal.observation.observation import Observation, policies_of
from trimtab.decide.horizontal.reasons import ROWS, SCALE_TO_ZERO, SELECTION, Act, Code, Direction, State
from trimtab.decide.horizontal.units import edges_of
from trimtab.model.hpa.types import HPAScalingRules, ScalingPolicySelect, SelectionStrategy
from trimtab.model.json.wire import Wire

WINDOW = "stabilizationWindowSeconds"
POLICIES = "policies"


class AdvisedChange(Wire):
    """One change."""

    act: Act
    field: str = ""
    value: str = ""
    metric: int | None = None
    """Index of the metric in the spec."""
    amount: float = 0.0
    """A value of the metric, in the unit of its proposal, or replicas that a policy asks for."""
    seconds: float = 0.0
    until: float | None = None

    @property
    def is_condition(self) -> bool:
        """Return whether a metric or a replica policy makes the change, and no user."""
        return self.metric is not None or self.act in {Act.POLICY_ABOVE, Act.POLICY_BELOW}


class Advice(Wire):
    """Changes that work together, and their outcome."""

    direction: Direction
    changes: tuple[AdvisedChange, ...]
    outcome: int | None = None
    """What the metrics ask for afterwards, where that was computed."""


class Hold(Wire):
    """A window, bound or rate that holds the replicas."""

    code: Code
    until: float | None = None
    """When it ends by itself; None if only a change of the spec ends it."""
    seconds: float = 0.0
    """How long the metrics have to ask before a window allows it, where they do not ask yet."""


_UNREAD = {Code.METRICS_FAILED, Code.METRICS_INCOMPLETE, Code.LOSS_POLICY}
_GAPS = {Act.READY_POD, Act.SAMPLES, Act.LATER_SAMPLES}
"""Acts that help, beside which other ones do."""


def advise(observation: Observation, decision: Decision) -> tuple[Advice, ...]:
    """Return the ways to change the replicas, cheapest first.

    Where they change already, return what may have caused it.
    """
    code, row = decision.reason.code, ROWS[decision.reason.code]
    if row.state is State.SCALING or code is Code.SCALE_NOT_WRITTEN:
        # Growth that other pods may have caused goes away once only the target's own pods count.
        return _own_pods(observation, decision) if code is Code.SCALES_UP and decision.current else ()
    if code in _UNREAD:
        return _unread(decision)
    if row.act is not None and row.act not in _GAPS:
        value = _failure_of(observation) if row.act is Act.REPAIR_PLUGIN else ""
        if row.act is Act.REMOVE_RIVAL:
            value = next((rival.scaled_object for rival in observation.rivals.hpas), "")
        wakes = _wake(observation) if code is Code.PAUSED else ()
        return (_either(AdvisedChange(act=row.act, value=value)), *wakes)
    by_owner = _own_pods(observation, decision)
    if code is Code.AT_MAXIMUM and _is_enough(by_owner, decision.current):
        return by_owner  # a larger maximum would serve the load of other pods
    if row.asks is not None:
        return (*by_owner, *_held(observation, decision, row.asks))
    gaps = () if row.act is None else (_either(AdvisedChange(act=row.act)),)
    return (*by_owner, *gaps, *more(observation, decision), *fewer(observation, decision))


def more(observation: Observation, decision: Decision) -> tuple[Advice, ...]:
    """Return the ways to more replicas, one per metric and one per replica policy, those of the winner first."""
    trace, current = decision.trace, decision.current
    beside = _beside(observation, decision, is_up=True)
    if beside is None:
        return ()
    metrics = []
    for index, result in enumerate(trace.proposals):
        edge = edges_of(result, trace.tolerance, current).up if isinstance(result, Proposal) else None
        if edge is not None and isfinite(edge):
            metrics.append(AdvisedChange(act=Act.METRIC_ABOVE, metric=index, amount=edge))
    policies = [
        AdvisedChange(act=Act.POLICY_ABOVE, value=answer.plugin, amount=current)
        for answer in observation.policy_answers
        if not answer.failure
    ]
    return tuple(
        Advice(direction=Direction.UP, changes=(rises, *beside))
        for rises in _winner_first(decision, metrics, policies)
    )


def fewer(observation: Observation, decision: Decision) -> tuple[Advice, ...]:
    """Return the way to fewer replicas, which every metric and every replica policy has to ask for."""
    beside = _beside(observation, decision, is_up=False) if decision.current else None
    if beside is None or _keeps_replicas(decision):
        return ()
    changes: list[AdvisedChange] = []
    for index, result in enumerate(decision.trace.proposals):
        if isinstance(result, Proposal):
            falls = _falls(result, index, decision)
            if falls is None:
                return ()
            changes.append(falls)
        elif isinstance(result, Failure) or _fallback_keeps_replicas(result, decision.current):
            return ()
    policies = [
        AdvisedChange(act=Act.POLICY_BELOW, value=answer.plugin, amount=decision.current)
        for answer in observation.policy_answers
        if answer.replicas is not None and answer.replicas >= decision.current
    ]
    asked = _winner_first(decision, changes, policies)
    return (Advice(direction=Direction.DOWN, changes=(*asked, *beside)),) if asked else ()


def _winner_first(
    decision: Decision, metrics: list[AdvisedChange], policies: list[AdvisedChange]
) -> list[AdvisedChange]:
    return metrics + policies if decision.trace.winning_policy is None else policies + metrics


def _keeps_replicas(decision: Decision) -> bool:
    """Return whether the replicas are not lowered, whatever metrics and policies ask for."""
    # Without a metric that asks for replicas, a replica policy may only ask for more.
    return bool(decision.trace.doubts) or all(
        isinstance(result, Failure) or result.replicas is None for result in decision.trace.proposals
    )


def _fallback_keeps_replicas(fallback: LossFallback, current: int) -> bool:
    """Return whether a metric that was lost keeps the replicas."""
    # Only metrics that were read may bring a workload to zero.
    return fallback.holds or current == 1 or (fallback.replicas is not None and fallback.replicas >= current)


def _falls(proposal: Proposal, index: int, decision: Decision) -> AdvisedChange | None:
    """Return how far a metric must fall to ask for fewer replicas, or None if no value does."""
    edges = edges_of(proposal, decision.trace.tolerance, decision.current)
    if edges.down < 0 or (edges.down == 0 and not edges.includes_down):
        return None
    act = Act.METRIC_AT_MOST if edges.includes_down else Act.METRIC_BELOW
    return AdvisedChange(act=act, metric=index, amount=edges.down)


def _held(observation: Observation, decision: Decision, direction: Direction) -> tuple[Advice, ...]:
    changes = _beside(observation, decision, is_up=direction is Direction.UP)
    return (Advice(direction=direction, changes=changes),) if changes else ()


def _beside(observation: Observation, decision: Decision, *, is_up: bool) -> tuple[AdvisedChange, ...] | None:
    """Return the changes that release the replicas in a direction, or None if none can."""
    changes: list[AdvisedChange] = []
    for hold in holds_on(observation, decision, is_up=is_up):
        found = _release(observation, decision, hold)
        if found is None:
            return None
        changes += found
    return tuple(changes)


def _release(observation: Observation, decision: Decision, hold: Hold) -> list[AdvisedChange] | None:
    current = decision.current
    if hold.code == Code.AT_MAXIMUM:
        return [AdvisedChange(act=Act.SET, field="spec.maxReplicas", value=str(current + 1))]
    if hold.code == Code.AT_MINIMUM:
        return _lower_minimum(observation, current - 1)
    if hold.code in {Code.UP_DISABLED, Code.DOWN_DISABLED}:
        side = "scaleUp" if hold.code == Code.UP_DISABLED else "scaleDown"
        return [AdvisedChange(act=Act.SET, field=f"spec.behavior.{side}.selectPolicy", value="Max")]
    if hold.until is None:
        return [AdvisedChange(act=Act.KEEP, seconds=hold.seconds)]
    is_window = hold.code in {Code.UP_WINDOW, Code.DOWN_WINDOW}
    field = WINDOW if is_window else POLICIES
    return [AdvisedChange(act=Act.WAIT, field=field, until=hold.until)] if isfinite(hold.until) else None


def _lower_minimum(observation: Observation, lowest: int) -> list[AdvisedChange] | None:
    """Return the changes that lower the minimum, or None if the API server would reject them."""
    if lowest > 0:
        return [AdvisedChange(act=Act.SET, field="spec.minReplicas", value=str(lowest))]
    if lowest < 0 or not can_scale_from_zero(observation.hpa.spec):
        return None
    changes = []
    if not observation.gates.hpa_scale_to_zero:
        changes.append(AdvisedChange(act=Act.OPEN_GATE, value=SCALE_TO_ZERO))
    if observation.hpa.spec.min_replicas != 0:
        changes.append(AdvisedChange(act=Act.SET, field="spec.minReplicas", value="0"))
    return changes


def _unread(decision: Decision) -> tuple[Advice, ...]:
    """Return which metrics must become readable, those without a fallback first."""
    results = list(enumerate(decision.trace.proposals))
    failed = [index for index, result in results if isinstance(result, Failure)]
    failed += [index for index, result in results if isinstance(result, LossFallback)]
    changes = tuple(AdvisedChange(act=Act.READ_METRIC, metric=index) for index in failed)
    return (Advice(direction=Direction.EITHER, changes=changes),) if changes else ()


def _failure_of(observation: Observation) -> str:
    """Return the reason of the first plug-in that failed, as its condition has it."""
    answers = [observation.filter_answer, *policies_of(observation)]
    return next((answer.reason for answer in answers if answer is not None and answer.failure), "")


def _either(change: AdvisedChange) -> Advice:
    return Advice(direction=Direction.EITHER, changes=(change,))


def _own_pods(observation: Observation, decision: Decision) -> tuple[Advice, ...]:
    """Return the advice to count only the target's own pods, if that changes the result."""
    if not decision.trace.extra_pods:
        return ()
    changes = [
        AdvisedChange(act=Act.SET, field="spec.selectionStrategy", value=SelectionStrategy.OWNER_REFERENCE)
    ]
    if not observation.gates.hpa_selection_strategy:
        changes.insert(0, AdvisedChange(act=Act.OPEN_GATE, value=SELECTION))
    asked = asked_by_owner(observation, decision.now)
    if asked is not None and asked == decision.trace.recommended:
        return ()
    return (Advice(direction=Direction.EITHER, changes=tuple(changes), outcome=asked),)


def _wake(observation: Observation) -> tuple[Advice, ...]:
    """Return the feature gate that lets the HPA wake its workload, if only that is missing."""
    if observation.gates.hpa_scale_to_zero or not is_scaled_to_zero(observation.hpa.status.conditions):
        return ()
    gates = replace(observation.gates, hpa_scale_to_zero=True)
    if not may_wake(observation.hpa, bounds_of(observation.hpa.spec, gates, observation.rules), gates):
        return ()
    return (_either(AdvisedChange(act=Act.OPEN_GATE, value=SCALE_TO_ZERO)),)


def _is_enough(by_owner: tuple[Advice, ...], current: int) -> bool:
    """Return whether the replicas are enough for the target's own pods."""
    return any(advice.outcome is not None and advice.outcome <= current for advice in by_owner)


def asked_by_owner(observation: Observation, now: float) -> int | None:
    """Return the replicas recommended for the target's own pods, or None if owners are unknown."""
    if not observation.owners:
        return None
    spec = msgspec.structs.replace(observation.hpa.spec, selection_strategy=SelectionStrategy.OWNER_REFERENCE)
    hpa = msgspec.structs.replace(observation.hpa, spec=spec)
    by_owner = msgspec.structs.replace(
        observation, hpa=hpa, gates=replace(observation.gates, hpa_selection_strategy=True)
    )
    trace = decide(by_owner, datetime.fromtimestamp(now, UTC)).trace
    return None if trace.selection_fallback else trace.recommended


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
    if not window:
        return None
    code = Code.UP_WINDOW if is_up else Code.DOWN_WINDOW
    asked = trace.recommended if trace.recommended is not None else current
    if not (asked > current if is_up else asked < current):
        return Hold(code=code, seconds=window)
    steady = trace.counts[WINDOWS].replicas if trace.is_measured else asked
    if steady > current if is_up else steady < current:
        return None
    against = _against(decision.memory.recommendations or (), current, is_up=is_up)
    return Hold(code=code, until=max((recommendation.at for recommendation in against), default=now) + window)


def _against(known: Iterable[Recommendation], current: int, *, is_up: bool) -> list[Recommendation]:
    return [
        recommendation
        for recommendation in known
        if (recommendation.replicas <= current if is_up else recommendation.replicas >= current)
    ]


def _bound(decision: Decision, *, is_up: bool) -> Hold | None:
    if is_up:
        return Hold(code=Code.AT_MAXIMUM) if decision.current >= decision.trace.max_replicas else None
    return Hold(code=Code.AT_MINIMUM) if decision.current <= decision.trace.min_replicas else None


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
        yield Hold(code=Code.UP_DISABLED if is_up else Code.DOWN_DISABLED)
        rules = msgspec.structs.replace(rules, select_policy=ScalingPolicySelect.MAX)

    def allows(moment: float) -> bool:
        limit = rate_limit(current, decision.memory, rules, moment, observation.rules, is_up=is_up)
        return limit.replicas > current if is_up else limit.replicas < current

    begin = decision.now if allows(after) else after
    if not allows(begin):
        code = Code.UP_RATE if is_up else Code.DOWN_RATE
        yield Hold(code=code, until=_first(allows, _ends(decision.memory, rules, begin)))


def _ends(memory: Memory, rules: HPAScalingRules, now: float) -> Iterator[float]:
    """Yield the times at which a scale event leaves the period of a policy, soonest first."""
    events = (*memory.scale_up, *memory.scale_down)
    ends = {event.at + policy.period_seconds for event in events for policy in rules.policies}
    yield from sorted(end for end in ends if end > now)


def _first(allows: Callable[[float], bool], moments: Iterable[float]) -> float:
    return next((moment for moment in moments if allows(moment)), inf)
