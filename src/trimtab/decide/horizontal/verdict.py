"""One word for a decision: why it scales, or which of the many reasons there are for not scaling."""

from enum import StrEnum

from trimtab.decide.horizontal.decision import Decision, Trail
from trimtab.decide.horizontal.normalize import SCALE_UP_LIMIT, TOO_FEW, TOO_MANY, WITHIN_RANGE, Normalized
from trimtab.decide.horizontal.proposals.proposal import Outcome, Proposal, StandIn
from trimtab.decide.horizontal.stabilize import SCALE_DOWN_STABILIZED


class Verdict(StrEnum):
    """What a decision comes to."""

    SCALES_UP = "ScalesUp"
    SCALES_DOWN = "ScalesDown"
    ABOVE_MAXIMUM = "AboveMaximum"
    BELOW_MINIMUM = "BelowMinimum"

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
    AT_MINIMUM = "AtMinimum"
    UP_RATE = "HeldByScaleUpRate"
    DOWN_RATE = "HeldByScaleDownRate"
    UP_DISABLED = "ScaleUpDisabled"
    DOWN_DISABLED = "ScaleDownDisabled"


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
    if decision.trail.normalized is None:
        return Verdict.BELOW_MINIMUM
    return Verdict.SCALES_UP if decision.desired > decision.current else Verdict.SCALES_DOWN


def _standstill(decision: Decision) -> Verdict:
    trail, normalized = decision.trail, decision.trail.normalized
    winner = trail.proposals[trail.winner] if trail.winner is not None else None
    if trail.fallback and isinstance(winner, Proposal) and winner.replicas < decision.current:
        return Verdict.OWNERS_UNREAD
    if normalized is not None and trail.asked != decision.current:
        return _held(normalized, decision.current)
    if isinstance(winner, StandIn) or (
        isinstance(winner, Proposal) and winner.replicas < decision.current and _is_lost(trail)
    ):
        return Verdict.LOSS_POLICY
    return _OUTCOMES[winner.outcome] if isinstance(winner, Proposal) else Verdict.ENOUGH


def _is_lost(trail: Trail) -> bool:
    return any(isinstance(one, StandIn) for one in trail.proposals)


def _held(normalized: Normalized, current: int) -> Verdict:
    limited, stabilized = normalized.limited, normalized.stabilized
    if stabilized.reason and (stabilized.replicas == current or limited.reason == WITHIN_RANGE):
        return Verdict.DOWN_WINDOW if stabilized.reason == SCALE_DOWN_STABILIZED else Verdict.UP_WINDOW
    if limited.reason in {TOO_MANY, TOO_FEW}:
        return Verdict.AT_MAXIMUM if limited.reason == TOO_MANY else Verdict.AT_MINIMUM
    is_disabled = limited.limit is not None and limited.limit.is_disabled
    if limited.reason == SCALE_UP_LIMIT:
        return Verdict.UP_DISABLED if is_disabled else Verdict.UP_RATE
    return Verdict.DOWN_DISABLED if is_disabled else Verdict.DOWN_RATE
