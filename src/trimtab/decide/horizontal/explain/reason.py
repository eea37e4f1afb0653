"""One word for a decision: why it scales, or why it does not."""

from enum import StrEnum

from trimtab.decide.horizontal.arithmetic import ratio_of
from trimtab.decide.horizontal.behavior.normalize import TOO_FEW, TOO_MANY, Normalized
from trimtab.decide.horizontal.decision import Decision, DecisionTrace
from trimtab.decide.horizontal.metrics.combine import LossFallback, Result
from trimtab.decide.horizontal.metrics.kinds import Failure, Proposal
from trimtab.decide.horizontal.metrics.pods import ProposalOutcome, Tolerance
from trimtab.model.hpa.metric_kinds import WAKING
from trimtab.model.plugin_names import is_plugin_name


class DecisionReason(StrEnum):
    """Why the replicas are what they are."""

    SCALES_UP = "ScalesUp"
    SCALES_DOWN = "ScalesDown"
    ABOVE_MAXIMUM = "AboveMaximum"
    BELOW_MINIMUM = "BelowMinimum"
    EARLIER_RECOMMENDATION = "ScalesUpToEarlierRecommendation"

    SCALE_UNREADABLE = "FailedGetScale"
    SCALE_NOT_WRITTEN = "FailedUpdateScale"
    PAUSED = "Paused"
    SELECTOR_MISSING = "SelectorMissing"
    SELECTOR_INVALID = "SelectorInvalid"
    AMBIGUOUS = "Ambiguous"
    METRICS_FAILED = "MetricsFailed"
    METRICS_INCOMPLETE = "MetricsIncomplete"
    ALL_LEFT_OUT = "AllPodsLeftOut"
    WARMING_UP = "WarmingUp"
    OWNERS_UNREAD = "OwnersUnread"
    PLUGIN_FAILED = "PluginFailed"
    REPLICA_POLICY = "ReplicaPolicy"
    CACHES_STALE = "CachesStale"
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
        DecisionReason.SCALES_UP,
        DecisionReason.EARLIER_RECOMMENDATION,
        DecisionReason.BELOW_MINIMUM,
        DecisionReason.UP_WINDOW,
        DecisionReason.AT_MAXIMUM,
        DecisionReason.SURGE,
        DecisionReason.UP_RATE,
        DecisionReason.UP_DISABLED,
    }
)
"""Metrics or replica policies ask for more replicas, which come or are held."""

SHRINKING = frozenset(
    {
        DecisionReason.SCALES_DOWN,
        DecisionReason.ABOVE_MAXIMUM,
        DecisionReason.METRICS_INCOMPLETE,
        DecisionReason.OWNERS_UNREAD,
        DecisionReason.PLUGIN_FAILED,
        DecisionReason.CACHES_STALE,
        DecisionReason.DOWN_WINDOW,
        DecisionReason.AT_MINIMUM,
        DecisionReason.DOWN_RATE,
        DecisionReason.DOWN_DISABLED,
    }
)
"""Metrics and replica policies ask for fewer replicas, which go or are held."""

_STOPS = {
    "FailedGetScale": DecisionReason.SCALE_UNREADABLE,
    "Paused": DecisionReason.PAUSED,
    "AboveMax": DecisionReason.ABOVE_MAXIMUM,
    "BelowMin": DecisionReason.BELOW_MINIMUM,
    "AmbiguousSelector": DecisionReason.AMBIGUOUS,
    "StaleCaches": DecisionReason.CACHES_STALE,
}

_OUTCOMES = {
    ProposalOutcome.WITHIN_TOLERANCE: DecisionReason.WITHIN_TOLERANCE,
    ProposalOutcome.WITHIN_AFTER_FILLING: DecisionReason.WITHIN_AFTER_FILLING,
    ProposalOutcome.DIRECTION_UNSURE: DecisionReason.DIRECTION_UNSURE,
    ProposalOutcome.NO_READY_PODS: DecisionReason.NO_READY_PODS,
    ProposalOutcome.FROM_ZERO: DecisionReason.IDLE_AT_ZERO,
    ProposalOutcome.PROPOSED: DecisionReason.ENOUGH,
}


def reason_for(decision: Decision) -> DecisionReason:
    """Return why the scale changes, or why it does not."""
    trace = decision.trace
    if decision.error.startswith("failed to rescale"):
        return DecisionReason.SCALE_NOT_WRITTEN
    if trace.stopped_by in _STOPS:
        return _STOPS[trace.stopped_by]
    if trace.stopped_by == "InvalidSelector":
        is_missing = decision.error.endswith("selector is required")
        return DecisionReason.SELECTOR_MISSING if is_missing else DecisionReason.SELECTOR_INVALID
    if decision.desired != decision.current:
        return _change(decision)
    if leaves_out_all(trace) and _lacks_pods(trace):
        return DecisionReason.ALL_LEFT_OUT
    if trace.stopped_by == "Metrics":
        failures = [result for result in trace.proposals if isinstance(result, Failure)]
        if failures and all(failure.is_warming_up for failure in failures):
            return DecisionReason.WARMING_UP
        all_failed = not any(isinstance(result, Proposal) for result in trace.proposals)
        return DecisionReason.METRICS_FAILED if all_failed else DecisionReason.METRICS_INCOMPLETE
    return _standstill(decision)


def knows_replicas(decision: Decision) -> bool:
    """Return whether the decision read the scale. If not, its numbers of replicas are unknown, and not 0."""
    return decision.trace.stopped_by != "FailedGetScale"


def leaves_out_all(trace: DecisionTrace) -> bool:
    """Return whether the selection strategy leaves out every pod that matches the selector."""
    return trace.counted_pods == 0 and bool(trace.left_out)


def _lacks_pods(trace: DecisionTrace) -> bool:
    """Return whether a metric keeps the replicas for lack of pods that count."""
    if trace.stopped_by == "Metrics":
        return any(isinstance(result, Failure) and result.type not in WAKING for result in trace.proposals)
    winner = _winner(trace)
    return isinstance(winner, Proposal) and winner.outcome == ProposalOutcome.NO_READY_PODS


def _change(decision: Decision) -> DecisionReason:
    current, normalized = decision.current, decision.trace.normalized
    if normalized is None:
        return DecisionReason.BELOW_MINIMUM
    if decision.desired < current:
        return DecisionReason.SCALES_DOWN
    if (decision.trace.recommended or 0) > current:
        return DecisionReason.SCALES_UP
    is_earlier = normalized.stabilized.replicas > current
    return DecisionReason.EARLIER_RECOMMENDATION if is_earlier else DecisionReason.BELOW_MINIMUM


def _standstill(decision: Decision) -> DecisionReason:
    return _doubt(decision) or _limit(decision) or _nothing_asked(decision.trace, decision.current)


def _doubt(decision: Decision) -> DecisionReason | None:
    """Return what is not known well enough to remove pods, if that holds the replicas."""
    trace = decision.trace
    if trace.selection_fallback and _asks_for_fewer(_winner(trace), decision.current):
        is_plugin = is_plugin_name(trace.strategy)
        return DecisionReason.PLUGIN_FAILED if is_plugin else DecisionReason.OWNERS_UNREAD
    if trace.policy_hold and _would_shrink(decision):
        return DecisionReason.PLUGIN_FAILED
    return DecisionReason.CACHES_STALE if trace.stale_hold else None


def _limit(decision: Decision) -> DecisionReason | None:
    """Return the window, bound or rate that holds the replicas against the metrics, if one does."""
    trace, current = decision.trace, decision.current
    if trace.normalized is None or trace.recommended is None or trace.recommended == current:
        return None
    held = _held(trace.normalized, trace.recommended, current)
    is_surge = held == DecisionReason.AT_MAXIMUM and _is_only_surge(trace, current)
    return DecisionReason.SURGE if is_surge else held


def _nothing_asked(trace: DecisionTrace, current: int) -> DecisionReason:
    """Return why neither a metric nor a policy asks for other replicas."""
    winner = _winner(trace)
    if isinstance(winner, LossFallback) or (_asks_for_fewer(winner, current) and _is_lost(trace)):
        return DecisionReason.LOSS_POLICY
    if trace.winning_policy is not None:
        return DecisionReason.REPLICA_POLICY
    return _OUTCOMES[winner.outcome] if isinstance(winner, Proposal) else DecisionReason.ENOUGH


def _winner(trace: DecisionTrace) -> Result | None:
    return trace.proposals[trace.winner] if trace.winner is not None else None


def _asks_for_fewer(result: Result | None, current: int) -> bool:
    return isinstance(result, Proposal) and result.replicas < current


def _would_shrink(decision: Decision) -> bool:
    """Return whether metrics ask for fewer replicas, all of them."""
    asked = [
        result.replicas
        for result in decision.trace.proposals
        if not isinstance(result, Failure) and result.replicas is not None
    ]
    return bool(asked) and max(asked) < decision.current and decision.trace.winning_policy is None


def _is_lost(trace: DecisionTrace) -> bool:
    return any(isinstance(result, LossFallback) for result in trace.proposals)


def _held(normalized: Normalized, asked: int, current: int) -> DecisionReason:
    """Return what holds the replicas in the direction that the metrics ask for.

    The bounds come after the windows. They may cut an earlier recommendation that points the other way, which is not the
    reason.
    """
    limited, is_up = normalized.limited, asked > current
    stabilized = normalized.stabilized.replicas
    if stabilized <= current if is_up else stabilized >= current:
        return DecisionReason.UP_WINDOW if is_up else DecisionReason.DOWN_WINDOW
    if limited.reason == (TOO_MANY if is_up else TOO_FEW):
        return DecisionReason.AT_MAXIMUM if is_up else DecisionReason.AT_MINIMUM
    if limited.limit is not None and limited.limit.is_disabled:
        return DecisionReason.UP_DISABLED if is_up else DecisionReason.DOWN_DISABLED
    return DecisionReason.UP_RATE if is_up else DecisionReason.DOWN_RATE


def _is_only_surge(trace: DecisionTrace, current: int) -> bool:
    """Return whether metrics ask for more only because a rollout has more pods than replicas.

    The pods of a surge are measured too, and a ratio is multiplied by all of them. A metric below its target may then ask for
    more replicas than there are. Once the load is on as many pods as replicas, it is within the tolerance.
    """
    if not trace.surge_pods or trace.winning_policy is not None:
        return False
    asking = [
        result
        for result in trace.proposals
        if not isinstance(result, Failure) and (result.replicas or 0) > current
    ]
    return bool(asking) and all(_is_within(result, trace.tolerance, current) for result in asking)


def _is_within(result: Result, tolerance: Tolerance, current: int) -> bool:
    if not isinstance(result, Proposal) or result.ratio is None:
        return False
    most = 1.0 + tolerance.up
    if result.total is not None:
        return ratio_of(result.total, float(result.target) * current) <= most
    if result.counts is None:
        return result.ratio <= most  # one value for all: it does not depend on the pods
    pods = result.measured_pods
    ratio = result.ratio if result.filled_ratio is None else result.filled_ratio
    return pods > current and ratio * pods <= most * current
