"""Why the replicas change, in words that are true for the value, its target and the counted pods.

Upstream's events have two sentences: a metric is above target, or all are below. Neither is true while the measured pods and the
replicas of the target differ, nor at zero. Events keep them; explanations say what was computed.
"""

from trimtab.decide.horizontal.behavior.scale_to_zero import goes_to_zero
from trimtab.decide.horizontal.behavior.stabilization import earlier_recommendation
from trimtab.decide.horizontal.decision import Decision, DecisionTrace
from trimtab.decide.horizontal.explain.reason import DecisionReason
from trimtab.decide.horizontal.explain.units import (
    format_amount,
    format_result,
    format_value,
)
from trimtab.decide.horizontal.metrics.kinds import Proposal
from trimtab.decide.horizontal.metrics.pods import ProposalOutcome
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.plugin_answers import PolicyAnswer
from trimtab.model.hpa.metric_kinds import label_of, plain_names
from trimtab.model.readable import counted

_LIMITS = {
    "TooManyReplicas": "this is maxReplicas",
    "TooFewReplicas": "this is minReplicas",
    "ScaleUpLimit": "the scale-up policies allow no more in this period",
    "ScaleDownLimit": "the scale-down policies allow no less in this period",
    "ScaleDownStabilized": "more was recommended within the scale-down window",
    "ScaleUpStabilized": "less was recommended within the scale-up window",
}

_AFTERWARDS = {
    DecisionReason.SCALES_UP: "the new pods become ready and are measured",
    DecisionReason.SCALES_DOWN: "the remaining pods are measured",
    DecisionReason.EARLIER_RECOMMENDATION: "the new pods become ready and are measured",
    DecisionReason.ABOVE_MAXIMUM: "metrics count again once replicas are within bounds",
    DecisionReason.BELOW_MINIMUM: "metrics count again once replicas are within bounds",
}


def describe_change(observation: Observation, decision: Decision) -> str:
    """Return why the replicas change, or an empty text if the decision names no reason."""
    trace, current, metrics = decision.trace, decision.current, observation.hpa.spec.metrics
    asked, normalized = trace.recommended or 0, trace.normalized
    if normalized is not None and asked <= current < normalized.stabilized.replicas:
        return earlier_recommendation(normalized.stabilized)
    if normalized is not None and asked != current and trace.winner is not None:
        winner = trace.proposals[trace.winner]
        if isinstance(winner, Proposal):
            return _describe_winner(decision, winner, label_of(metrics[trace.winner]))
    return plain_names(decision.reason, metrics)


def _describe_winner(decision: Decision, winner: Proposal, label: str) -> str:
    """Return why the metric that asks for the most changes the replicas."""
    current, is_up = decision.current, (decision.trace.recommended or 0) > decision.current
    if not current:
        return f"{label} is {format_result(winner)}: any load wakes it"
    if is_up and winner.value > winner.target:
        return f"{label} above target"
    if not is_up and _are_all_below_target(decision.trace):
        return decision.reason
    return _need(decision, winner, label)


def _are_all_below_target(trace: DecisionTrace) -> bool:
    measured = [result for result in trace.proposals if isinstance(result, Proposal)]
    return all(proposal.value < proposal.target for proposal in measured)


def _need(decision: Decision, winner: Proposal, label: str) -> str:
    """Return how many replicas a metric needs where pods and replicas differ."""
    current, replicas, extra = decision.current, winner.replicas, decision.trace.extra_pods
    if winner.outcome is ProposalOutcome.WITHIN_TOLERANCE:
        return f"{label} is within its tolerance, which keeps the {counted(replicas, 'replica')} of the target's status"
    target = f"at the target of {format_value(winner, winner.target)}, and {current} {_are(current)} set"
    if winner.total is not None:
        text = f"{label} is {format_amount(winner, winner.total)} in all, which needs {counted(replicas, 'replica')} {target}"
    else:
        number, ready = winner.measured_pods, "" if winner.counts is not None else "ready "
        subject = counted(number, f"{ready}pod")
        needs = "needs" if number == 1 else "need"
        text = f"{subject} with {label} at {format_value(winner, winner.value)} {needs} {counted(replicas, 'replica')} {target}"
    if not extra or replicas < current:
        return text
    return f"{text}; {extra_pods_text(extra)}"


def extra_pods_text(extra: int) -> str:
    """Return how many pods count beyond those that the target has."""
    return f"the selector counts {counted(extra, 'pod')} more than the target has"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def deciding_policy(observation: Observation, decision: Decision) -> PolicyAnswer | None:
    """Return the replica policy whose answer is recommended, or None if the metrics' is."""
    winner = decision.trace.winning_policy
    return None if winner is None else observation.policy_answers[winner]


def describe_recommendation(observation: Observation, decision: Decision) -> str:
    """Return what is recommended before windows, bounds and rates apply, and by what."""
    policy, asked = deciding_policy(observation, decision), decision.trace.recommended
    return f"the metrics ask for {asked}" if policy is None else f"{policy.name} asks for {asked}"


def partly_held(observation: Observation, decision: Decision) -> str:
    """Return what keeps a change from going as far as metrics and policies ask, or an empty text."""
    trace, desired = decision.trace, decision.desired
    asked, normalized = trace.recommended, trace.normalized
    if asked is None or normalized is None or desired in {decision.current, asked}:
        return ""
    recommended = describe_recommendation(observation, decision)
    why, limit = normalized.stabilized.reason, normalized.limited.limit
    if normalized.is_limited:
        why = normalized.limited.reason
        if limit is not None and limit.policy is None and not limit.is_disabled:
            return f"{recommended}, but one sync goes no farther than {limit.replicas}"
    if why == "ScaleDownStabilized" and normalized.stabilized.earlier is not None:
        return f"{recommended}, but {earlier_recommendation(normalized.stabilized)}"
    return f"{recommended}, but {_LIMITS.get(why, 'that is not allowed at once')}"


def afterwards(
    observation: Observation, decision: Decision, reason: DecisionReason, *, dry_run: bool, held: bool
) -> str:
    """Return what follows a decision that changes the replicas, or an empty text."""
    if reason == DecisionReason.SCALE_NOT_WRITTEN:
        return "the write is tried again with the next sync"
    if reason not in _AFTERWARDS or decision.desired == decision.current:
        return ""
    if held:
        return f"correct the annotation, and it scales to {decision.desired}"
    if dry_run:
        return f"end the dry run, and it scales to {decision.desired}"
    if decision.desired:
        return _AFTERWARDS[reason]
    if goes_to_zero(observation, decision.current, 0, decision.trace.min_replicas):
        return "the autoscaler wakes it when a metric asks for a pod"
    return "set replicas to 1 or more to resume; at zero the autoscaler pauses"
