"""The sentences of explanations."""

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.behavior.scale_to_zero import is_scaled_to_zero
from trimtab.decide.horizontal.decision import Decision, DecisionTrace
from trimtab.decide.horizontal.explain.advice import (
    POLICIES,
    Act,
    Advice,
    AdvisedChange,
    Direction,
)
from trimtab.decide.horizontal.explain.change_reason import (
    afterwards,
    deciding_policy,
    describe_change,
    extra_pods_text,
)
from trimtab.decide.horizontal.explain.reason import DecisionReason, reason_for
from trimtab.decide.horizontal.explain.units import format_value
from trimtab.decide.horizontal.metrics.combine import LossFallback
from trimtab.decide.horizontal.metrics.kinds import Failure, Proposal
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.plugin_answers import INVALID_POLICIES, NODES_UNREADABLE
from trimtab.decide.horizontal.selection.selection import foreign_pods
from trimtab.decide.horizontal.status.dry_run import annotation_problem, must_not_scale
from trimtab.decide.horizontal.status.ignored_fields import SCALE_TO_ZERO, ignored_fields
from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.hpa.metric_kinds import label_of, plain_names
from trimtab.model.times import format_time
from trimtab.plugins.guard import FailureReason

SUMMARIES = {
    DecisionReason.SCALES_UP: "a metric is above its target",
    DecisionReason.SCALES_DOWN: "all metrics are below their targets",
    DecisionReason.EARLIER_RECOMMENDATION: "more was recommended before, within the scale-down window",
    DecisionReason.ABOVE_MAXIMUM: "there are more replicas than maxReplicas",
    DecisionReason.BELOW_MINIMUM: "there are fewer replicas than minReplicas",
    DecisionReason.SCALE_UNREADABLE: "its target cannot be read",
    DecisionReason.SCALE_NOT_WRITTEN: "the new size could not be written",
    DecisionReason.PAUSED: "someone set the replicas to zero, which pauses the autoscaler",
    DecisionReason.SELECTOR_MISSING: "the target's scale names no selector, so its pods are unknown",
    DecisionReason.SELECTOR_INVALID: "the selector of the target's scale cannot be read",
    DecisionReason.AMBIGUOUS: "another autoscaler counts the same pods",
    DecisionReason.METRICS_FAILED: "no metric can be read",
    DecisionReason.METRICS_INCOMPLETE: "the metrics that can be read ask for less, but others cannot be read",
    DecisionReason.ALL_LEFT_OUT: "the selection strategy leaves out every pod, so no usage can be measured",
    DecisionReason.WARMING_UP: "its pods are too young for a first sample",
    DecisionReason.OWNERS_UNREAD: "the owners of some pods cannot be read, so replicas are not lowered",
    DecisionReason.PLUGIN_FAILED: "a plug-in gave no answer, so replicas are not lowered",
    DecisionReason.REPLICA_POLICY: "a replica policy asks for that many",
    DecisionReason.CACHES_STALE: "recent changes may be unknown, so replicas are not lowered",
    DecisionReason.LOSS_POLICY: "a metric cannot be read, and its loss policy asks for this",
    DecisionReason.WITHIN_TOLERANCE: "usage is within the tolerance of its target",
    DecisionReason.WITHIN_AFTER_FILLING: "usage is within the tolerance once pods without usable samples are counted in",
    DecisionReason.DIRECTION_UNSURE: "pods without usable samples leave open which way to go",
    DecisionReason.NO_READY_PODS: "no pod is ready yet to take the load",
    DecisionReason.IDLE_AT_ZERO: "nothing asks for a pod",
    DecisionReason.ENOUGH: "that many are needed",
    DecisionReason.DOWN_WINDOW: "fewer are asked for, but more was recommended within the scale-down window",
    DecisionReason.UP_WINDOW: "more is asked for, but less was recommended within the scale-up window",
    DecisionReason.AT_MAXIMUM: "more is asked for, but this is maxReplicas",
    DecisionReason.SURGE: "more is asked for only while a rollout has more pods than replicas, and this is maxReplicas",
    DecisionReason.AT_MINIMUM: "less is asked for, but this is minReplicas",
    DecisionReason.UP_RATE: "more is asked for, but the scale-up policies allow no more in this period",
    DecisionReason.DOWN_RATE: "less is asked for, but the scale-down policies allow no less in this period",
    DecisionReason.UP_DISABLED: "more is asked for, but scaling up is disabled by selectPolicy",
    DecisionReason.DOWN_DISABLED: "less is asked for, but scaling down is disabled by selectPolicy",
}

_ASLEEP = (
    "the autoscaler scaled it to zero, and none of its metrics can be read without pods, so nothing wakes it"
)
_ASLEEP_WITHOUT_GATE = (
    f"the autoscaler scaled it to zero, and does not wake it while the feature gate {SCALE_TO_ZERO} is off"
)

_ACTS = {
    Act.READ_SCALE: "create the target, or make scaleTargetRef name a readable object with a scale subresource",
    Act.REPORT_SELECTOR: "the target's scale must report a selector that can be read",
    Act.REMOVE_CONFLICTING_HPA: "remove one of the autoscalers, or let each select by OwnerReference",
    Act.READ_OWNERS: "let the autoscaler read the owners of the pods (RBAC, API server)",
    Act.REFRESH_CACHES: "the operator must be able to list and watch that kind again (RBAC, API server)",
    Act.COUNT_PODS: "the selection strategy must count at least one pod; correct it, or choose another",
    Act.END_ROLLOUT: "the rollout must end, so that the target has as many pods as replicas",
    Act.RESUME: "set replicas to 1 or more to resume",
    Act.READY_POD: "a pod must become ready",
    Act.SAMPLES: "the missing samples must come",
    Act.FIRST_SAMPLES: "wait for the first samples, which usually come within a minute",
}

_CORRECT_IT = "correct the plug-in; the operator's log shows where it failed"
_REPAIRS = {
    FailureReason.NOT_LOADED: "install or correct the plug-in, and name it in --plugins",
    FailureReason.WRONG_KIND: "name a plug-in of the right kind there",
    FailureReason.RAISED: _CORRECT_IT,
    FailureReason.WRONG_ANSWER: "correct the plug-in; `trimtab plugin check` shows what it may return",
    FailureReason.TOO_SLOW: "make the plug-in faster, or let it declare a larger budget",
    FailureReason.PAUSED: f"{_CORRECT_IT}, and it is called again after the pause",
    FailureReason.DECLINED: "give the plug-in what it misses",
    INVALID_POLICIES: "correct the annotation; `trimtab validate` on the manifest says what is wrong with it",
    NODES_UNREADABLE: "let the operator list and watch nodes (chart: horizontal.watchNodes)",
}
"""What ends the failure of a plug-in, by its reason."""


def describe_reason(observation: Observation, decision: Decision, reason: DecisionReason) -> str:
    """Return why the replicas change or stay, with the short names of metrics."""
    if decision.desired != decision.current and reason != DecisionReason.SCALE_NOT_WRITTEN:
        return change_reason(observation, decision)
    if text := _specific_text(observation, decision, reason):
        return text
    cause = _cause(decision.trace, reason)
    return f"{SUMMARIES[reason]}: {cause}" if cause else SUMMARIES[reason]


def _specific_text(observation: Observation, decision: Decision, reason: DecisionReason) -> str:
    """Return the text that replaces the summary of a reason, or an empty text if none does."""
    match reason:
        case DecisionReason.SCALE_UNREADABLE:
            return _unreadable_target(observation)
        case DecisionReason.PAUSED:
            return _asleep(observation)
        case DecisionReason.AT_MINIMUM:
            return _ignored_minimum(observation, decision)
        case DecisionReason.AT_MAXIMUM:
            extra = decision.trace.extra_pods
            return f"{SUMMARIES[reason]}; {extra_pods_text(extra)}" if extra else ""
        case DecisionReason.REPLICA_POLICY:
            policy = observation.policy_answers[decision.trace.winning_policy or 0]
            return f"{policy.name} asks for that many: {policy.reason}"
        case _:
            return ""


def _unreadable_target(observation: Observation) -> str:
    failure = observation.scale_failure
    if failure is None:
        return ""
    return describe_unreadable(observation.hpa.spec.scale_target_ref, failure.message)


def describe_unreadable(target: CrossVersionObjectReference, message: str) -> str:
    """Return that a target cannot be read, and why."""
    return f"its target {target} cannot be read: {message}"


def _asleep(observation: Observation) -> str:
    """Return why nothing wakes a target that the HPA scaled to zero, or an empty text if a user did."""
    if not is_scaled_to_zero(observation.hpa.status.conditions):
        return ""
    return _ASLEEP if observation.gates.hpa_scale_to_zero else _ASLEEP_WITHOUT_GATE


def _ignored_minimum(observation: Observation, decision: Decision) -> str:
    """Return why a minimum of 0 ends at 1 replica, or an empty text if the minimum is not 0."""
    ignored = ignored_fields(observation.hpa.spec, observation.gates, observation.rules)
    zero = next((field for field in ignored if field.gate == SCALE_TO_ZERO), None)
    return f"less is asked for, but {zero}" if zero is not None and decision.current == 1 else ""


def _cause(trace: DecisionTrace, reason: DecisionReason) -> str:
    """Return what follows the summary of a reason that has different causes."""
    match reason:
        case DecisionReason.ALL_LEFT_OUT:
            first = trace.left_out[0]
            return f"{trace.strategy} leaves out {first.pod}: {first.reason}"
        case DecisionReason.CACHES_STALE:
            return trace.stale_hold
        case DecisionReason.PLUGIN_FAILED:
            return trace.selection_fallback or trace.policy_hold
        case _:
            return ""


def change_reason(observation: Observation, decision: Decision) -> str:
    """Return why the scale is written, for logs and explanations."""
    return describe_change(observation, decision) or SUMMARIES[reason_for(decision)]


def next_step(
    observation: Observation,
    decision: Decision,
    reason: DecisionReason,
    advice: tuple[Advice, ...],
    *,
    dry_run: bool = False,
) -> str:
    """Return what would have to change, or what follows a change of the replicas."""
    moves = afterwards(
        observation,
        decision,
        reason,
        dry_run=dry_run or must_not_scale(observation.hpa, observation.gates),
        held=bool(annotation_problem(observation.hpa, observation.gates)),
    )
    parts = [moves] if moves else []
    parts += [_either(observation, decision, item) for item in advice if item.direction == Direction.EITHER]
    for direction, count in ((Direction.UP, "more replicas"), (Direction.DOWN, "fewer replicas")):
        chosen = [item for item in advice if item.direction == direction]
        if not chosen:
            continue
        if any(change.is_condition for change in chosen[0].changes):
            parts.append(f"{count} when {when(observation, decision, chosen)}")
        else:
            parts.append(_imperatives(observation, decision, chosen[0]))
    return "; or ".join(parts) or "nothing that can be changed here"


def when(observation: Observation, decision: Decision, advice: tuple[Advice, ...] | list[Advice]) -> str:
    """Return the conditions under any of which the replicas change."""
    texts = []
    for item in advice:
        kept = [change.seconds for change in item.changes if change.act == Act.KEEP]
        stays = f" and stays so for {max(kept):g} s" if kept else ""
        asked = [_condition(observation, decision, change) for change in item.changes if change.is_condition]
        rest = [
            _condition(observation, decision, change)
            for change in item.changes
            if not change.is_condition and change.act != Act.KEEP
        ]
        texts.append(", and ".join([f"{' and '.join(asked)}{stays}", *rest]))
    return ", or ".join(texts)


def _either(observation: Observation, decision: Decision, advice: Advice) -> str:
    reads = [change.metric for change in advice.changes if change.act == Act.READ_METRIC]
    if reads:
        return _read_metric(observation, decision, reads[0] or 0)
    text = _imperatives(observation, decision, advice)
    if advice.changes[-1].field != "spec.selectionStrategy":
        return text
    then = "" if advice.outcome is None else f"; the metrics then ask for {advice.outcome}"
    return f"{text}, because {_not_own(observation, decision)}{then}"


def _not_own(observation: Observation, decision: Decision) -> str:
    """Return which pods count beside the target's own, by owner if owners are known."""
    if foreign := len(foreign_pods(observation.pods, observation.target, observation.owners)):
        return f"{foreign} counted {'pod is' if foreign == 1 else 'pods are'} not the target's own"
    extra = decision.trace.extra_pods
    return f"{extra} more {'pod is' if extra == 1 else 'pods are'} counted than the target has"


def _read_metric(observation: Observation, decision: Decision, index: int) -> str:
    result = decision.trace.proposals[index]
    failure = result.failure if isinstance(result, LossFallback) else result
    message = failure.message if isinstance(failure, Failure) else ""
    return f"make this metric readable: {plain_names(message, observation.hpa.spec.metrics)}"


def _imperatives(observation: Observation, decision: Decision, advice: Advice) -> str:
    return ", and ".join(_imperative(observation, decision, change) for change in advice.changes)


def _imperative(observation: Observation, decision: Decision, change: AdvisedChange) -> str:
    if change.act == Act.WAIT:
        return _wait(observation, decision, change)
    if change.act == Act.OPEN_GATE:
        return f"turn on the operator's feature gate {change.value}"
    if change.act == Act.REPAIR_PLUGIN:
        return _REPAIRS.get(change.value, _REPAIRS[FailureReason.NOT_LOADED])
    if change.act != Act.SET:
        return _ACTS.get(change.act, str(change.act))
    name = change.field.removeprefix("spec.")
    known = {"maxReplicas": "raise maxReplicas", "minReplicas": "lower minReplicas"}
    return known.get(name) or f"set {name} to {change.value}"


def _wait(observation: Observation, decision: Decision, change: AdvisedChange) -> str:
    until = format_time(wire_time(change.until or decision.now))
    is_up = (decision.trace.recommended or 0) > decision.current
    number = "more" if is_up else "fewer"
    if change.field == POLICIES:
        return f"the scale-{'up' if is_up else 'down'} policies allow {number} from {until}"
    asking = "the metrics"
    if is_up:
        policy = deciding_policy(observation, decision)
        asking = asking if policy is None else policy.name
    elif observation.policy_answers:
        asking = "metrics and replica policies"
    return f"{asking} must ask for {number} than {decision.current} until {until}"


def _condition(observation: Observation, decision: Decision, change: AdvisedChange) -> str:
    result = decision.trace.proposals[change.metric] if change.metric is not None else None
    if isinstance(result, Proposal) and change.metric is not None:
        label, amount = label_of(observation.hpa.spec.metrics[change.metric]), _amount(result, change)
        return f"{label} is {amount}"
    if change.act in {Act.POLICY_ABOVE, Act.POLICY_BELOW}:
        number = "more" if change.act == Act.POLICY_ABOVE else "fewer"
        return f"replica policy {change.value} asks for {number} than {change.amount:g}"
    if change.act == Act.WAIT:
        return f"the scaling policies allow it, from {format_time(wire_time(change.until or decision.now))}"
    if change.act == Act.OPEN_GATE:
        return f"the operator's feature gate {change.value} is on"
    name = change.field.removeprefix("spec.")
    known = {"maxReplicas": "maxReplicas is raised", "minReplicas": "minReplicas is lowered"}
    return known.get(name) or f"{name} is {change.value}"


def _amount(proposal: Proposal, change: AdvisedChange) -> str:
    text = format_value(proposal, change.amount)
    if change.act == Act.METRIC_ABOVE:
        return f"above {text}" if change.amount else "above 0"
    return f"below {text}" if change.act == Act.METRIC_BELOW else f"at {text} or less"
