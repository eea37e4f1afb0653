"""A decision in words: the pods, each metric, what held it, and what would change it."""

from math import isfinite
from typing import Any

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.decision import Decision, DecisionTrace
from trimtab.decide.horizontal.explain.advice import Advice, advise
from trimtab.decide.horizontal.explain.change_reason import partly_held
from trimtab.decide.horizontal.explain.reason import DecisionReason, knows_replicas, reason_for
from trimtab.decide.horizontal.explain.units import (
    Edges,
    edges_of,
    format_result,
    format_value,
)
from trimtab.decide.horizontal.explain.wording import describe_reason, next_step
from trimtab.decide.horizontal.metrics.combine import LossFallback, describe_fallback
from trimtab.decide.horizontal.metrics.kinds import Failure, PodCounts, Proposal
from trimtab.decide.horizontal.observation.clock_offset import describe_offset
from trimtab.decide.horizontal.observation.observation import Observation, policies_of
from trimtab.decide.horizontal.records.record import Record
from trimtab.decide.horizontal.selection.selection import foreign_pods
from trimtab.decide.horizontal.status.dry_run import annotation_problem, must_not_scale
from trimtab.decide.horizontal.status.ignored_fields import ignored_annotations, ignored_fields
from trimtab.model.hpa.metric_kinds import label_of, plain_names
from trimtab.model.json.wire import Wire
from trimtab.model.readable import counted
from trimtab.model.times import format_time


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

    reason: DecisionReason
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
    clock: str = ""
    """How the operator's clock is wrong; empty if it is right."""
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
    trace, reason = decision.trace, reason_for(decision)
    normalized = trace.normalized
    window = normalized.stabilized.recommendations if normalized else ()
    advice = advise(observation, decision, reason)
    return Explanation(
        reason=reason,
        summary=summary_of(observation, decision),
        current=decision.current if knows_replicas(decision) else None,
        desired=decision.desired if knows_replicas(decision) else None,
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
        limit=_limit(trace),
        ignored_fields=tuple(
            map(str, ignored_fields(observation.hpa.spec, observation.gates, observation.rules))
        )
        + ignored_annotations(observation.hpa),
        partly_held=partly_held(observation, decision),
        next_step=next_step(observation, decision, reason, advice, dry_run=dry_run),
        advice=advice,
        clock=describe_offset(observation.clock_offset) if observation.clock_offset else "",
        author="" if record.author is None else str(record.author),
        is_dry_run=dry_run or must_not_scale(observation.hpa, observation.gates),
        annotation_problem=annotation_problem(observation.hpa, observation.gates),
    )


def summary_of(observation: Observation, decision: Decision) -> str:
    """Return what happens to the replicas and why, in one line."""
    current, desired, reason = decision.current, decision.desired, reason_for(decision)
    text = describe_reason(observation, decision, reason)
    if desired != current and reason != DecisionReason.SCALE_NOT_WRITTEN:
        return f"scales from {current} to {desired}: {text}"
    return text if reason == DecisionReason.SCALE_UNREADABLE else f"stays at {current}: {text}"


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
    return format_value(proposal, edges.up) if isfinite(edges.up) else ""


def _fewer(proposal: Proposal, edges: Edges) -> str:
    if edges.down < 0 or (not edges.down and not edges.includes_down):
        return ""
    text = format_value(proposal, edges.down)
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
    if not proposal.value:
        notes.append("every sample is zero")
    return notes


def _between(proposal: Proposal, ends: tuple[float, float]) -> str:
    low, high = ends
    return f"above {format_value(proposal, low)} up to {format_value(proposal, high)}"


def _limit(trace: DecisionTrace) -> str:
    limited = trace.normalized.limited if trace.normalized else None
    if limited is None or limited.limit is None:
        return ""
    if limited.limit.is_disabled:
        return "scaling this way is disabled"
    if limited.limit.policy is None:
        return f"at most {limited.limit.replicas} in one sync"
    policy = limited.limit.policy
    amount = f"{policy.value}%" if policy.type == "Percent" else counted(policy.value, "pod")
    return f"{amount} per {policy.period_seconds} s"


def _lines(story: Explanation) -> list[str]:
    dry_run = " (dry run: nothing is scaled)" if story.is_dry_run else ""
    lines = [f"{story.reason}: {story.summary}{dry_run}"]
    if story.pods_counted is not None:
        lines.append(_pods_line(story))
    lines += [_metric_line(metric) for metric in story.metrics]
    lines += [f"policy: {policy}" for policy in story.policies]
    if story.partly_held:
        lines.append(f"partly: {story.partly_held}")
    if story.limit:
        lines.append(f"limit: {story.limit}")
    lines += [f"ignored: {text}" for text in story.ignored_fields]
    if story.clock:
        lines.append(f"clock: {story.clock}")
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
