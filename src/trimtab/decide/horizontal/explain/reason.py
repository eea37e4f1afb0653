"""One word for a decision: why it scales, or which of the many reasons there are for not scaling."""

from enum import StrEnum

from trimtab.decide.horizontal.behavior.normalize import TOO_FEW, TOO_MANY, Normalized
from trimtab.decide.horizontal.decision import Decision, Trail
from trimtab.decide.horizontal.explain.surge import is_only_surge
from trimtab.decide.horizontal.metrics.proposal import Outcome, Proposal, StandIn


class Verdict(StrEnum):
    """What a decision comes to."""

    SCALES_UP = "ScalesUp"
    SCALES_DOWN = "ScalesDown"
    ABOVE_MAXIMUM = "AboveMaximum"
    BELOW_MINIMUM = "BelowMinimum"
    EARLIER_RECOMMENDATION = "ScalesUpToEarlierRecommendation"

    SCALE_UNREADABLE = "ScaleUnreadable"
    SCALE_NOT_WRITTEN = "ScaleNotWritten"
    PAUSED = "Paused"
    SELECTOR_MISSING = "SelectorMissing"
    SELECTOR_INVALID = "SelectorInvalid"
    AMBIGUOUS = "Ambiguous"
    METRICS_FAILED = "MetricsFailed"
    METRICS_INCOMPLETE = "MetricsIncomplete"
    OWNERS_UNREAD = "OwnersUnread"
    LOSS_POLICY = "LossPolicy"
    WITHIN_TOLERANCE = "WithinTolerance"
    WITHIN_AFTER_FILLING = "WithinToleranceOnceGapsAreFilled"
    DIRECTION_UNSURE = "DirectionUnsureBecauseOfGaps"
    NO_READY_PODS = "NoReadyPods"
    IDLE_AT_ZERO = "IdleAtZero"
    ENOUGH = "AsManyAsNeeded"
    DOWN_WINDOW = "HeldByScaleDownWindow"
    UP_WINDOW = "HeldByScaleUpWindow"
    AT_MAXIMUM = "AtMaximum"
    SURGE = "AtMaximumDuringSurge"
    AT_MINIMUM = "AtMinimum"
    UP_RATE = "HeldByScaleUpRate"
    DOWN_RATE = "HeldByScaleDownRate"
    UP_DISABLED = "ScaleUpDisabled"
    DOWN_DISABLED = "ScaleDownDisabled"


GROWING = frozenset(
    {
        Verdict.SCALES_UP,
        Verdict.EARLIER_RECOMMENDATION,
        Verdict.BELOW_MINIMUM,
        Verdict.UP_WINDOW,
        Verdict.AT_MAXIMUM,
        Verdict.SURGE,
        Verdict.UP_RATE,
        Verdict.UP_DISABLED,
    }
)
"""More replicas come, or are asked for and held."""

SHRINKING = frozenset(
    {
        Verdict.SCALES_DOWN,
        Verdict.ABOVE_MAXIMUM,
        Verdict.METRICS_INCOMPLETE,
        Verdict.OWNERS_UNREAD,
        Verdict.DOWN_WINDOW,
        Verdict.AT_MINIMUM,
        Verdict.DOWN_RATE,
        Verdict.DOWN_DISABLED,
    }
)
"""Replicas go, or fewer are asked for and held."""

_STOPS = {
    "FailedGetScale": Verdict.SCALE_UNREADABLE,
    "Paused": Verdict.PAUSED,
    "AboveMax": Verdict.ABOVE_MAXIMUM,
    "BelowMin": Verdict.BELOW_MINIMUM,
    "AmbiguousSelector": Verdict.AMBIGUOUS,
}

_OUTCOMES = {
    Outcome.WITHIN_TOLERANCE: Verdict.WITHIN_TOLERANCE,
    Outcome.WITHIN_AFTER_FILLING: Verdict.WITHIN_AFTER_FILLING,
    Outcome.DIRECTION_UNSURE: Verdict.DIRECTION_UNSURE,
    Outcome.NO_READY_PODS: Verdict.NO_READY_PODS,
    Outcome.FROM_ZERO: Verdict.IDLE_AT_ZERO,
    Outcome.PROPOSED: Verdict.ENOUGH,
}


def verdict_of(decision: Decision) -> Verdict:
    """Return why the scale changes, or why it does not."""
    trail = decision.trail
    if decision.error.startswith("failed to rescale"):
        return Verdict.SCALE_NOT_WRITTEN
    if trail.stop in _STOPS:
        return _STOPS[trail.stop]
    if trail.stop == "InvalidSelector":
        is_missing = decision.error.endswith("selector is required")
        return Verdict.SELECTOR_MISSING if is_missing else Verdict.SELECTOR_INVALID
    if decision.desired != decision.current:
        return _change(decision)
    if trail.stop == "Metrics":
        all_failed = not any(isinstance(result, Proposal) for result in trail.proposals)
        return Verdict.METRICS_FAILED if all_failed else Verdict.METRICS_INCOMPLETE
    return _standstill(decision)


def _change(decision: Decision) -> Verdict:
    current, normalized = decision.current, decision.trail.normalized
    if normalized is None:
        return Verdict.BELOW_MINIMUM
    if decision.desired < current:
        return Verdict.SCALES_DOWN
    if (decision.trail.asked or 0) > current:
        return Verdict.SCALES_UP
    is_earlier = normalized.stabilized.replicas > current
    return Verdict.EARLIER_RECOMMENDATION if is_earlier else Verdict.BELOW_MINIMUM


def _standstill(decision: Decision) -> Verdict:
    trail, normalized = decision.trail, decision.trail.normalized
    winner = trail.proposals[trail.winner] if trail.winner is not None else None
    if trail.fallback and isinstance(winner, Proposal) and winner.replicas < decision.current:
        return Verdict.OWNERS_UNREAD
    if normalized is not None and trail.asked is not None and trail.asked != decision.current:
        held = _held(normalized, trail.asked, decision.current)
        is_surge = held == Verdict.AT_MAXIMUM and is_only_surge(trail, decision.current)
        return Verdict.SURGE if is_surge else held
    if isinstance(winner, StandIn) or (
        isinstance(winner, Proposal) and winner.replicas < decision.current and _is_lost(trail)
    ):
        return Verdict.LOSS_POLICY
    return _OUTCOMES[winner.outcome] if isinstance(winner, Proposal) else Verdict.ENOUGH


def _is_lost(trail: Trail) -> bool:
    return any(isinstance(one, StandIn) for one in trail.proposals)


def _held(normalized: Normalized, asked: int, current: int) -> Verdict:
    """Return what holds the replicas in the direction that the metrics ask for.

    The bounds come after the windows. They may cut a remembered recommendation that points the other way, which is
    no reason for anything.
    """
    limited, is_up = normalized.limited, asked > current
    stabilized = normalized.stabilized.replicas
    if stabilized <= current if is_up else stabilized >= current:
        return Verdict.UP_WINDOW if is_up else Verdict.DOWN_WINDOW
    if limited.reason == (TOO_MANY if is_up else TOO_FEW):
        return Verdict.AT_MAXIMUM if is_up else Verdict.AT_MINIMUM
    if limited.limit is not None and limited.limit.is_disabled:
        return Verdict.UP_DISABLED if is_up else Verdict.DOWN_DISABLED
    return Verdict.UP_RATE if is_up else Verdict.DOWN_RATE
