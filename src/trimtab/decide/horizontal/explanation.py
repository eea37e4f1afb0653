"""A decision in words: what counted, what each metric said, what held it, and what would change it."""

from trimtab.decide.horizontal.decision import Decision, Trail
from trimtab.decide.horizontal.loss import words_of
from trimtab.decide.horizontal.proposals.proposal import Failure, PodCounts, Proposal, StandIn
from trimtab.decide.horizontal.timing import wire_time
from trimtab.decide.horizontal.units import break_even, shown, told_name
from trimtab.decide.horizontal.verdict import Verdict, verdict_of
from trimtab.decide.horizontal.wording import SUMMARIES, next_step
from trimtab.model.times import format_time
from trimtab.model.wire import Wire


class MetricStory(Wire):
    """What one metric said."""

    name: str
    replicas: int | None = None
    """What it asks for; None when it failed."""
    value: str = ""
    target: str = ""
    ratio: float | None = None
    scales_up_above: str = ""
    scales_down_below: str = ""
    is_winner: bool = False
    problem: str = ""
    stand_in: str = ""
    """What it counts as while it is lost; empty when it is read, or when it holds without a policy."""
    notes: tuple[str, ...] = ()


class WindowEntry(Wire):
    """A remembered recommendation."""

    replicas: int
    at: str


class Explanation(Wire):
    """A decision told to people and to dashboards."""

    verdict: Verdict
    summary: str
    current: int
    desired: int
    strategy: str
    pods_counted: int
    pods_left_out: dict[str, str]
    pods_extra: int
    """Of those counted, how many are more than the target has."""
    metrics: tuple[MetricStory, ...]
    window: tuple[WindowEntry, ...]
    limit: str
    next_step: str

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def explain(decision: Decision) -> Explanation:
    """Tell a decision."""
    trail, verdict = decision.trail, verdict_of(decision)
    normalized = trail.normalized
    window = normalized.stabilized.recommendations if normalized else ()
    return Explanation(
        verdict=verdict,
        summary=_summary(decision, verdict),
        current=decision.current,
        desired=decision.desired,
        strategy=trail.strategy,
        pods_counted=trail.counted,
        pods_left_out={one.pod: one.why for one in trail.left_out},
        pods_extra=trail.extra,
        metrics=tuple(_metric(trail, index) for index in range(len(trail.proposals))),
        window=tuple(WindowEntry(replicas=one.replicas, at=format_time(wire_time(one.at))) for one in window),
        limit=_limit(trail),
        next_step=next_step(decision, verdict),
    )


def _summary(decision: Decision, verdict: Verdict) -> str:
    current, desired = decision.current, decision.desired
    if desired != current and verdict != Verdict.SCALE_NOT_WRITTEN:
        return f"scales from {current} to {desired}: {decision.reason}"
    if verdict == Verdict.SCALE_UNREADABLE:
        return SUMMARIES[verdict]
    return f"stays at {current}: {SUMMARIES[verdict]}"


def _metric(trail: Trail, index: int) -> MetricStory:
    result = trail.proposals[index]
    if isinstance(result, Failure):
        return MetricStory(name=f"{result.type} metric", problem=result.message)
    if isinstance(result, StandIn):
        return MetricStory(
            name=f"{result.type} metric {result.label}",
            replicas=result.replicas,
            is_winner=trail.winner == index,
            problem=result.failure.message,
            stand_in=words_of(result),
        )
    up, down = break_even(result, trail.tolerance)
    return MetricStory(
        name=told_name(result),
        replicas=result.replicas,
        value=shown(result, result.value),
        target=shown(result, result.target),
        ratio=result.ratio,
        scales_up_above=shown(result, up),
        scales_down_below=shown(result, down),
        is_winner=trail.winner == index,
        notes=tuple(_notes(result)),
    )


def _notes(proposal: Proposal) -> list[str]:
    notes = []
    counts = proposal.counts or PodCounts()
    gaps = {"unready": counts.unready, "without a sample": counts.missing, "failed or going": counts.ignored}
    notes += [f"{number} {what}" for what, number in gaps.items() if number]
    if proposal.filled_ratio is not None:
        notes.append(f"ratio {proposal.filled_ratio:.3g} once gaps are filled")
    if proposal.refused:
        name, rule = proposal.refused[0]
        notes.append(f"{len(proposal.refused)} samples refused, first {name}: {rule}")
    if not proposal.value:
        notes.append("every sample is zero")
    return notes


def _limit(trail: Trail) -> str:
    limited = trail.normalized.limited if trail.normalized else None
    if limited is None or limited.limit is None:
        return ""
    if limited.limit.is_disabled:
        return "scaling this way is disabled"
    if limited.limit.policy is None:
        return f"at most {limited.limit.replicas} in one sync"
    policy = limited.limit.policy
    unit = "%" if policy.type == "Percent" else " pods"
    return f"{policy.value}{unit} per {policy.period_seconds} s"


def _lines(story: Explanation) -> list[str]:
    lines = [f"{story.verdict}: {story.summary}", f"pods: {story.pods_counted} counted by {story.strategy}"]
    if story.pods_left_out:
        first, why = next(iter(story.pods_left_out.items()))
        lines[-1] += f", {len(story.pods_left_out)} left out ({first}: {why})"
    if story.pods_extra:
        lines[-1] += (
            f", {story.pods_extra} more than the target has (OwnerReference would count only its own)"
        )
    lines += [_metric_line(metric) for metric in story.metrics]
    if story.limit:
        lines.append(f"limit: {story.limit}")
    lines.append(f"next: {story.next_step}")
    return lines


def _metric_line(metric: MetricStory) -> str:
    crown = " (wins)" if metric.is_winner else ""
    if metric.stand_in:
        return f"metric: {metric.name} is lost; {metric.stand_in}{crown}; {metric.problem}"
    if metric.problem:
        return f"metric: {metric.name} failed: {metric.problem}"
    notes = f"; {', '.join(metric.notes)}" if metric.notes else ""
    return (
        f"metric: {metric.name} is {metric.value}, target {metric.target}, asks for {metric.replicas}{crown}; "
        f"scales up above {metric.scales_up_above}, down below {metric.scales_down_below}{notes}"
    )
