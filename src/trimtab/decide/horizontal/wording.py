"""The sentences of explanations: why nothing happens, and what would have to change."""

from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.proposals.proposal import Failure, Proposal, StandIn
from trimtab.decide.horizontal.timing import wire_time
from trimtab.decide.horizontal.units import break_even, one_less, shown, told_name
from trimtab.decide.horizontal.verdict import Verdict
from trimtab.model.times import format_time

SUMMARIES = {
    Verdict.SCALES_UP: "a metric is above its target",
    Verdict.SCALES_DOWN: "all metrics are below their targets",
    Verdict.ABOVE_MAXIMUM: "there are more replicas than maxReplicas",
    Verdict.BELOW_MINIMUM: "there are fewer replicas than minReplicas",
    Verdict.SCALE_UNREADABLE: "the target's scale cannot be read, so nothing is known about it",
    Verdict.SCALE_NOT_WRITTEN: "the new size could not be written",
    Verdict.PAUSED: "someone set the replicas to zero, which pauses the autoscaler",
    Verdict.SELECTOR_MISSING: "the target's scale names no selector, so its pods are unknown",
    Verdict.SELECTOR_INVALID: "the selector of the target's scale cannot be read",
    Verdict.AMBIGUOUS: "another autoscaler counts the same pods",
    Verdict.METRICS_FAILED: "no metric can be read",
    Verdict.METRICS_INCOMPLETE: "the metrics that can be read ask for less, but others cannot be read",
    Verdict.OWNERS_UNREAD: "the owners of some pods cannot be read, so replicas are not lowered",
    Verdict.LOSS_POLICY: "a metric cannot be read, and its loss policy asks for this",
    Verdict.WITHIN_TOLERANCE: "usage is within the tolerance of its target",
    Verdict.WITHIN_AFTER_FILLING: "usage is within the tolerance once pods without usable samples are counted in",
    Verdict.DIRECTION_UNSURE: "pods without usable samples leave open which way to go",
    Verdict.NO_READY_PODS: "no pod is ready yet to take the load",
    Verdict.IDLE_AT_ZERO: "nothing asks for a pod",
    Verdict.ENOUGH: "that many are needed",
    Verdict.DOWN_WINDOW: "more was recommended within the scale-down window",
    Verdict.UP_WINDOW: "less was recommended within the scale-up window",
    Verdict.AT_MAXIMUM: "more is asked for, but this is maxReplicas",
    Verdict.AT_MINIMUM: "less is asked for, but this is minReplicas",
    Verdict.UP_RATE: "the scale-up policies allow no more in this period",
    Verdict.DOWN_RATE: "the scale-down policies allow no less in this period",
    Verdict.UP_DISABLED: "scaling up is disabled by selectPolicy",
    Verdict.DOWN_DISABLED: "scaling down is disabled by selectPolicy",
}

_NEXT = {
    Verdict.SCALES_UP: "the new pods become ready and are measured",
    Verdict.SCALES_DOWN: "the remaining pods are measured",
    Verdict.ABOVE_MAXIMUM: "metrics count again once replicas are within bounds",
    Verdict.BELOW_MINIMUM: "metrics count again once replicas are within bounds",
    Verdict.SCALE_UNREADABLE: "make scaleTargetRef name a readable object with a scale subresource",
    Verdict.SCALE_NOT_WRITTEN: "the write is tried again with the next sync",
    Verdict.PAUSED: "set replicas to 1 or more to resume",
    Verdict.SELECTOR_MISSING: "the target's scale must report a selector",
    Verdict.SELECTOR_INVALID: "the target's scale must report a selector that can be read",
    Verdict.AMBIGUOUS: "remove one of the autoscalers, or let each select by OwnerReference",
    Verdict.OWNERS_UNREAD: "let the autoscaler read the owners of the pods (RBAC, API server)",
    Verdict.WITHIN_AFTER_FILLING: "usage must change, or the missing samples must come",
    Verdict.DIRECTION_UNSURE: "the missing samples must come",
    Verdict.NO_READY_PODS: "a pod must become ready",
    Verdict.IDLE_AT_ZERO: "a metric must rise above zero",
    Verdict.AT_MAXIMUM: "raise maxReplicas",
    Verdict.AT_MINIMUM: "lower minReplicas",
    Verdict.UP_DISABLED: "change behavior.scaleUp.selectPolicy",
    Verdict.DOWN_DISABLED: "change behavior.scaleDown.selectPolicy",
}


def next_step(decision: Decision, verdict: Verdict) -> str:
    """Say what would have to change for the replicas to change."""
    if verdict in _NEXT:
        return _NEXT[verdict]
    if verdict in {Verdict.DOWN_WINDOW, Verdict.UP_WINDOW}:
        return _window_end(decision, verdict)
    if verdict in {Verdict.UP_RATE, Verdict.DOWN_RATE}:
        return _rate_end(decision, verdict)
    if verdict in {Verdict.METRICS_FAILED, Verdict.METRICS_INCOMPLETE, Verdict.LOSS_POLICY}:
        return _unread(decision)
    return _break_even(decision, verdict)


def _unread(decision: Decision) -> str:
    """Say which metric must become readable; one that holds comes before one that is stood in for."""
    results = decision.trail.proposals
    failures = [one for one in results if isinstance(one, Failure)]
    failures += [one.failure for one in results if isinstance(one, StandIn)]
    return f"make this metric readable: {failures[0].message}" if failures else "name a metric in the spec"


def _break_even(decision: Decision, verdict: Verdict) -> str:
    """Say which values of the winning metric would change the replicas."""
    trail = decision.trail
    winner = trail.proposals[trail.winner] if trail.winner is not None else None
    if not isinstance(winner, Proposal):
        return "a metric must ask for something else"
    up, down = break_even(winner, trail.tolerance)
    if verdict == Verdict.ENOUGH:
        fewer = min(one_less(winner, decision.current), down)
        return f"{told_name(winner)} must go above {shown(winner, up)}, or to {shown(winner, fewer)} or less"
    return f"{told_name(winner)} must go above {shown(winner, up)} or below {shown(winner, down)}"


def _rate_end(decision: Decision, verdict: Verdict) -> str:
    """Say when the first scale event leaves the period of the policy that limits."""
    limit = decision.trail.normalized.limited.limit if decision.trail.normalized else None
    events = decision.memory.scale_up if verdict == Verdict.UP_RATE else decision.memory.scale_down
    if limit is None or limit.policy is None:
        return "the next sync allows more"
    ends = [event.at + limit.policy.period_seconds for event in events]
    ahead = [end for end in ends if end > decision.now]
    until = format_time(wire_time(min(ahead))) if ahead else "the next sync"
    return f"the policy allows more from {until}"


def _window_end(decision: Decision, verdict: Verdict) -> str:
    """Say when the recommendation that holds the decision leaves its window."""
    normalized, asked = decision.trail.normalized, decision.trail.asked or 0
    if normalized is None:
        return ""
    window = normalized.stabilized.window
    is_down = verdict == Verdict.DOWN_WINDOW
    holding = [
        one.at + window
        for one in normalized.stabilized.recommendations
        if one.at + window >= decision.now and (one.replicas > asked if is_down else one.replicas < asked)
    ]
    until = format_time(wire_time(max(holding, default=decision.now)))
    return f"the recommendation must stay at {asked} until {until}"
