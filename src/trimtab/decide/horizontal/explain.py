"""A decision in words: the pods, each metric, what held it, and what would change it.

The reason is the decision's own, and its words are those of `reasons`. `advice` says what would change it, `units` writes values.
"""

from math import isfinite
from typing import Any

from trimtab.decide.horizontal.advice import POLICIES, Advice, AdvisedChange, advise
from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.decision import Decision, DecisionTrace
from trimtab.decide.horizontal.limits import goes_to_zero
from trimtab.decide.horizontal.metrics.combine import LossFallback, describe_fallback
from trimtab.decide.horizontal.metrics.kinds import Failure, PodCounts, Proposal
from trimtab.decide.horizontal.metrics.pods import ProposalOutcome
from trimtab.decide.horizontal.observation.observation import Observation, policies_of
from trimtab.decide.horizontal.observation.plugin_answers import (
    INVALID_POLICIES,
    NODES_UNREADABLE,
    PolicyAnswer,
)
from trimtab.decide.horizontal.reasons import (
    ROWS,
    Act,
    Code,
    Direction,
    Earlier,
    ExtraPods,
    Rate,
    because,
    describe,
)
from trimtab.decide.horizontal.records.record import Record
from trimtab.decide.horizontal.selection.selection import foreign_pods
from trimtab.decide.horizontal.status.ignored_fields import (
    annotation_problem,
    ignored_annotations,
    ignored_fields,
    must_not_scale,
)
from trimtab.decide.horizontal.units import (
    Edges,
    edges_of,
    format_activation,
    format_amount,
    format_edge,
    format_result,
    format_value,
)
from trimtab.model.hpa.metric_kinds import label_of, plain_names
from trimtab.model.json.wire import Wire
from trimtab.model.readable import counted
from trimtab.model.times import format_time
from trimtab.plugins.guard import FailureReason


class MetricExplanation(Wire):
    """What one metric asks for, and why."""

    name: str
    replicas: int | None = None
    """What it asks for; None when it failed."""
    value: str = ""
    target: str = ""
    ratio: float | None = None
    more_above: str = ""
    """It asks for more above this value; empty if no value does."""
    fewer: str = ""
    """`below` or `at … or less`: where it asks for fewer; empty if no value does."""
    is_winner: bool = False
    problem: str = ""
    is_warming_up: bool = False
    """Whether the pods are too young for a sample, which is the problem then."""
    fallback: str = ""
    """What it counts as while it is lost; empty if it was read, or has no loss policy."""
    notes: tuple[str, ...] = ()


class PolicyExplanation(Wire):
    """What one replica policy asks for, and why."""

    name: str
    version: str = ""
    replicas: int | None = None
    """What it asks for; None if it asks for nothing, or failed."""
    reason: str = ""
    problem: str = ""
    is_winner: bool = False

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        name = f"{self.name} {self.version}".rstrip()
        if self.replicas is None:
            return f"{name} asks for nothing: {self.reason}"
        return f"{name} asks for {self.replicas}{' (wins)' if self.is_winner else ''}: {self.reason}"


class WindowEntry(Wire):
    """A remembered recommendation."""

    replicas: int
    at: str


class Explanation(Wire):
    """A decision for people and dashboards."""

    reason: Code
    summary: str
    current: int | None
    """None when the target cannot be read."""
    desired: int | None
    strategy: str
    pods_counted: int | None
    """None when the decision ended before the pods were selected."""
    pods_left_out: dict[str, str]
    selection_fallback: str
    """Why labels count although the strategy is another; empty if the strategy is applied."""
    pods_extra: int
    """Of those counted, how many are more than the target has."""
    pods_foreign: dict[str, str]
    """Of those counted, which are not the target's own, and why; empty if owners are unknown."""
    metrics: tuple[MetricExplanation, ...]
    policies: tuple[PolicyExplanation, ...]
    recommendations: tuple[WindowEntry, ...]
    limit: str
    partly_held: str
    """What keeps a change from going as far as metrics and policies ask; empty if nothing does."""
    ignored_fields: tuple[str, ...]
    """Fields that have no effect because their feature gate is off, and annotations that are wrong."""
    next_step: str
    advice: tuple[Advice, ...]
    """The same as `next_step`, as values."""
    author: str = ""
    """The replica that wrote the scale or the status; empty if nothing was written."""
    is_dry_run: bool = False
    annotation_problem: str = ""
    """Which annotation is wrong, so that nothing is scaled."""

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def _repr_pretty_(self, printer: Any, _is_cycle: bool) -> None:
        """Show the text in a notebook, which calls this method."""
        printer.text(str(self))


def explain(record: Record, *, dry_run: bool = False) -> Explanation:
    """Explain a decision, of an operator that writes nothing if `dry_run`."""
    observation, decision = record.observation, record.decision
    trace, is_known = decision.trace, decision.knows_replicas
    window = (decision.memory.recommendations or ()) if trace.is_measured else ()
    advice = advise(observation, decision)
    return Explanation(
        reason=decision.reason.code,
        summary=summary_of(observation, decision),
        current=decision.current if is_known else None,
        desired=decision.desired if is_known else None,
        strategy=trace.strategy,
        pods_counted=trace.counted_pods,
        pods_left_out={pod.pod: pod.reason for pod in trace.left_out},
        selection_fallback=trace.selection_fallback,
        pods_extra=trace.extra_pods,
        pods_foreign=foreign_pods(observation.pods, observation.target, observation.owners)
        if trace.extra_pods
        else {},
        metrics=tuple(_metric(observation, decision, index) for index in range(len(trace.proposals))),
        policies=tuple(
            PolicyExplanation(
                name=answer.plugin,
                version=answer.version,
                replicas=answer.replicas,
                reason="" if answer.failure else answer.reason,
                problem=answer.failure,
                is_winner=trace.winning_policy == index,
            )
            for index, answer in enumerate(policies_of(observation))
        ),
        recommendations=tuple(
            WindowEntry(replicas=recommendation.replicas, at=format_time(wire_time(recommendation.at)))
            for recommendation in window
        ),
        limit=limit_of(trace),
        ignored_fields=tuple(
            map(str, ignored_fields(observation.hpa.spec, observation.gates, observation.rules))
        )
        + ignored_annotations(observation.hpa),
        partly_held=partly_held(observation, decision),
        next_step=next_step(observation, decision, advice, dry_run=dry_run),
        advice=advice,
        author="" if record.author is None else str(record.author),
        is_dry_run=dry_run or must_not_scale(observation.hpa, observation.gates),
        annotation_problem=annotation_problem(observation.hpa, observation.gates),
    )


def summary_of(observation: Observation, decision: Decision) -> str:
    """Return what happens to the replicas and why, in one line."""
    text = describe_reason(observation, decision)
    if _is_changing(decision):
        return f"scales from {decision.current} to {decision.desired}: {text}"
    return f"stays at {decision.current}: {text}" if decision.knows_replicas else text


def _is_changing(decision: Decision) -> bool:
    return decision.desired != decision.current and decision.reason.code is not Code.SCALE_NOT_WRITTEN


def describe_reason(observation: Observation, decision: Decision) -> str:
    """Return why the replicas change or stay, with the short names of metrics."""
    if _is_changing(decision):
        return change_reason(observation, decision)
    text = describe(decision.reason)
    if decision.reason.code is not Code.IDLE_AT_ZERO:
        return text
    inactive = [
        _describe_inactive(result, label_of(metric))
        for metric, result in zip(observation.hpa.spec.metrics, decision.trace.proposals, strict=True)
        if isinstance(result, Proposal) and result.outcome is ProposalOutcome.BELOW_ACTIVATION
    ]
    return f"{text}: {'; '.join(inactive)}" if inactive else text


def change_reason(observation: Observation, decision: Decision) -> str:
    """Return why the scale is written, in words that are true for the value, its target and the counted pods.

    Upstream's events have two sentences: a metric is above target, or all are below. Neither is true while the measured pods and
    the replicas of the target differ, nor at zero. Events keep them; here the text says what was computed.
    """
    trace, metrics = decision.trace, observation.hpa.spec.metrics
    text = ""
    if decision.reason.code is Code.EARLIER_RECOMMENDATION:
        text = because(decision.reason)
    elif trace.winner is not None and trace.is_measured and trace.recommended != decision.current:
        winner = trace.proposals[trace.winner]
        if isinstance(winner, Proposal):
            text = _describe_winner(decision, winner, label_of(metrics[trace.winner]))
    return text or plain_names(decision.because, metrics) or ROWS[decision.reason.code].says


def _describe_winner(decision: Decision, winner: Proposal, label: str) -> str:
    """Return why the metric that asks for the most changes the replicas."""
    current, is_up = decision.current, (decision.trace.recommended or 0) > decision.current
    if winner.outcome is ProposalOutcome.BELOW_ACTIVATION:
        return _describe_inactive(winner, label)
    if not current:
        level = "any load" if winner.activation is None else f"more than {format_activation(winner)}"
        return f"{label} is {format_result(winner)}: {level} wakes it"
    if is_up and winner.value > winner.target:
        return f"{label} above target"
    if not is_up and _are_all_below_target(decision.trace):
        return decision.because
    return _need(decision, winner, label)


def _describe_inactive(proposal: Proposal, label: str) -> str:
    """Return that a metric asks for nothing because of its activation level."""
    return f"{label} is {format_result(proposal)}, not above its activation of {format_activation(proposal)}"


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
    return f"{text}; {ExtraPods(number=extra)}"


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
    trace = decision.trace
    if trace.recommended is None or decision.desired in {decision.current, trace.recommended}:
        return ""
    recommended, why = describe_recommendation(observation, decision), trace.counts[-1].why
    match why.code, why.facts:
        case Code.UP_RATE, Rate(policy=None, replicas=limit):
            return f"{recommended}, but one sync goes no farther than {limit}"
        case Code.DOWN_WINDOW | Code.EARLIER_RECOMMENDATION, Earlier(at=float()):
            return f"{recommended}, but {why.facts}"
    return f"{recommended}, but {ROWS[why.code].holds or 'that is not allowed at once'}"


def limit_of(trace: DecisionTrace) -> str:
    """Return how far the policies let the replicas go, if they hold them."""
    rates = [count.why.facts for count in trace.counts if isinstance(count.why.facts, Rate)]
    return str(rates[-1]) if rates else ""


def _metric(observation: Observation, decision: Decision, index: int) -> MetricExplanation:
    trace, metrics = decision.trace, observation.hpa.spec.metrics
    result = trace.proposals[index]
    if isinstance(result, Failure):
        return MetricExplanation(
            name=label_of(metrics[index]),
            problem=plain_names(result.message, metrics),
            is_warming_up=result.is_warming_up,
        )
    if isinstance(result, LossFallback):
        return MetricExplanation(
            name=label_of(metrics[index]),
            replicas=result.replicas,
            is_winner=trace.winner == index,
            problem=plain_names(result.failure.message, metrics),
            fallback=describe_fallback(result),
        )
    edges = edges_of(result, trace.tolerance, decision.current)
    return MetricExplanation(
        name=label_of(metrics[index]),
        replicas=result.replicas,
        value=format_result(result),
        target=format_value(result, result.target),
        ratio=result.ratio,
        more_above=_more(result, edges),
        fewer=_fewer(result, edges),
        is_winner=trace.winner == index,
        notes=tuple(_notes(result, edges)),
    )


def _more(proposal: Proposal, edges: Edges) -> str:
    if not edges.up:
        return "0"
    return format_edge(proposal, edges.up) if isfinite(edges.up) else ""


def _fewer(proposal: Proposal, edges: Edges) -> str:
    if edges.down < 0 or (not edges.down and not edges.includes_down):
        return ""
    text = format_edge(proposal, edges.down)
    return f"at {text} or less" if edges.includes_down else f"below {text}"


def _notes(proposal: Proposal, edges: Edges) -> list[str]:
    notes = []
    if edges.more_between:
        notes.append(f"more replicas also {_between(proposal, edges.more_between)}")
    if edges.fewer_between:
        notes.append(f"fewer replicas also {_between(proposal, edges.fewer_between)}")
    counts = proposal.counts or PodCounts()
    gaps = {"unready": counts.unready, "without a sample": counts.missing, "failed or going": counts.ignored}
    notes += [f"{number} {what}" for what, number in gaps.items() if number]
    if proposal.filled_ratio is not None:
        notes.append(f"ratio {proposal.filled_ratio:.3g} once gaps are filled")
    if proposal.rejected_samples:
        name, rule = proposal.rejected_samples[0]
        notes.append(f"{counted(len(proposal.rejected_samples), 'sample')} refused, first {name}: {rule}")
    if proposal.removed:
        notes.append(f"{counted(proposal.removed, 'replica')} more when it was measured")
    if proposal.activation is not None:
        notes.append(f"nothing up to {format_activation(proposal)}, its activation")
    if not proposal.value:
        notes.append("every sample is zero")
    return notes


def _between(proposal: Proposal, ends: tuple[float, float]) -> str:
    low, high = ends
    return f"above {format_edge(proposal, low)} up to {format_edge(proposal, high)}"


def _lines(story: Explanation) -> list[str]:
    why = "held" if story.annotation_problem else "dry run" if story.is_dry_run else ""
    lines = [f"{story.reason}: {story.summary}{f' ({why}: nothing is scaled)' if why else ''}"]
    if story.pods_counted is not None:
        lines.append(_pods_line(story))
    lines += [_metric_line(metric) for metric in story.metrics]
    lines += [f"policy: {policy}" for policy in story.policies]
    if story.partly_held:
        lines.append(f"partly: {story.partly_held}")
    if story.limit:
        lines.append(f"limit: {story.limit}")
    lines += [f"ignored: {text}" for text in story.ignored_fields]
    if story.annotation_problem:
        lines.append(f"held: {story.annotation_problem}; nothing is scaled until then")
    if story.author:
        lines.append(f"written by: {story.author}")
    lines.append(f"next: {story.next_step}")
    return lines


def _how_counted(story: Explanation) -> str:
    if not story.selection_fallback:
        return story.strategy
    return f"labels, because {story.strategy} cannot be applied: {story.selection_fallback}"


def _pods_line(story: Explanation) -> str:
    line = f"pods: {story.pods_counted} counted by {_how_counted(story)}"
    if story.pods_left_out:
        first, why = next(iter(story.pods_left_out.items()))
        line += f", {len(story.pods_left_out)} left out ({first}: {why})"
    if story.pods_extra:
        line += f", {story.pods_extra} more than the target has"
    if story.pods_foreign:
        first, why = next(iter(story.pods_foreign.items()))
        line += f", {len(story.pods_foreign)} not its own ({first}: {why})"
    return line


def _metric_line(metric: MetricExplanation) -> str:
    crown = " (wins)" if metric.is_winner else ""
    if metric.fallback:
        return f"metric: {metric.name} is lost; {metric.fallback}{crown}; {metric.problem}"
    if metric.is_warming_up:
        return f"metric: {metric.name} has no sample yet"
    if metric.problem:
        return f"metric: {metric.name} failed: {metric.problem}"
    more = f"more above {metric.more_above}" if metric.more_above else "more at no value"
    fewer = f"fewer {metric.fewer}" if metric.fewer else ""
    notes = f"; {', '.join(metric.notes)}" if metric.notes else ""
    return (
        f"metric: {metric.name} is {metric.value}, target {metric.target}, asks for {metric.replicas}{crown}; "
        f"asks for {', '.join(filter(None, (more, fewer)))}{notes}"
    )


_ACTS = {
    Act.READ_SCALE: "create the target, or make scaleTargetRef name a readable object with a scale subresource",
    Act.REPORT_SELECTOR: "the target's scale must report a selector that can be read",
    Act.READ_OWNERS: "let the autoscaler read the owners of the pods (RBAC, API server)",
    Act.REFRESH_CACHES: "the operator must be able to list and watch that kind again (RBAC, API server)",
    Act.COUNT_PODS: "the selection strategy must count at least one pod; correct it, or choose another",
    Act.END_ROLLOUT: "the rollout must end, so that the target has as many pods as replicas",
    Act.RESUME: "set replicas to 1 or more to resume",
    Act.READY_POD: "a pod must become ready",
    Act.SAMPLES: "the missing samples must come",
    Act.LATER_SAMPLES: "wait for samples that begin after the last scale-down",
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


def next_step(
    observation: Observation, decision: Decision, advice: tuple[Advice, ...], *, dry_run: bool = False
) -> str:
    """Return what would have to change, or what follows a change of the replicas."""
    moves = _afterwards(observation, decision, dry_run=dry_run)
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


def _afterwards(observation: Observation, decision: Decision, *, dry_run: bool) -> str:
    """Return what follows a decision that changes the replicas, or an empty text."""
    desired, follows = decision.desired, ROWS[decision.reason.code].follows
    if desired == decision.current or decision.reason.code is Code.SCALE_NOT_WRITTEN:
        return follows if decision.reason.code is Code.SCALE_NOT_WRITTEN else ""
    if annotation_problem(observation.hpa, observation.gates):
        return f"correct the annotation, and it scales to {desired}"
    if dry_run or must_not_scale(observation.hpa, observation.gates):
        return f"end the dry run, and it scales to {desired}"
    if desired:
        return follows
    if goes_to_zero(observation, 0, decision.trace.min_replicas):
        return "the autoscaler wakes it when a metric asks for a pod"
    return "set replicas to 1 or more to resume; at zero the autoscaler pauses"


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
    if change.act == Act.REMOVE_RIVAL:
        return _remove_rival(observation, change.value)
    if change.act == Act.REMOVE_CONFLICTING_HPA:
        return _remove_conflicting(observation)
    if change.act != Act.SET:
        return _ACTS.get(change.act, str(change.act))
    name = change.field.removeprefix("spec.")
    known = {"maxReplicas": "raise maxReplicas", "minReplicas": "lower minReplicas"}
    return known.get(name) or f"set {name} to {change.value}"


def _remove_rival(observation: Observation, scaled_object: str) -> str:
    if scaled_object:
        return f"move to one of the two: remove KEDA's ScaledObject {scaled_object}, or this autoscaler (docs/move-from-keda.md)"
    name = observation.rivals.hpas[0].name
    return (
        f"remove hpa.autoscaling/{name} or this autoscaler, or let Trimtab serve native HPAs, too, and then remove one "
        "(docs/move-from-native-hpa.md)"
    )


def _remove_conflicting(observation: Observation) -> str:
    """Return what ends a conflict. Owners separate the pods of two workloads, and not two autoscalers of one."""
    own = observation.hpa.spec.scale_target_ref
    same = [
        hpa.key
        for hpa in observation.conflicting_hpas
        if (hpa.target.kind, hpa.target.name) == (own.kind, own.name)
    ]
    if same:
        return f"remove this autoscaler or {' and '.join(sorted(same))}: they scale the same target"
    return "remove one of the autoscalers, or let each select by OwnerReference"


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
    text = format_edge(proposal, change.amount)
    if change.act == Act.METRIC_ABOVE:
        return f"above {text}" if change.amount else "above 0"
    return f"below {text}" if change.act == Act.METRIC_BELOW else f"at {text} or less"
