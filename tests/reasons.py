"""What holds for the reason and the advice of every decision, whoever made it.

`check` takes a decision of a vector, a scenario or a simulated trace. It knows nothing of how an explanation is made:
directions are counted from the proposals, and advice is applied to the observation and decided on again.
"""

import math
from contextlib import suppress
from dataclasses import replace as replaced
from datetime import UTC, datetime

import msgspec

from trimtab.dashboard.pages.decision import decision_view
from trimtab.decide.horizontal import (
    Code,
    FetchFailure,
    OwnerNotFound,
    PodSamples,
    Record,
    Sample,
    Series,
    after_scale,
    decide,
    explain,
)
from trimtab.decide.horizontal.explain import change_reason
from trimtab.decide.horizontal.metrics.kinds import Proposal
from trimtab.decide.horizontal.metrics.pods import ProposalOutcome
from trimtab.decide.horizontal.observation.observation import NO_RIVALS
from trimtab.decide.horizontal.observation.pods import MissingRequestError
from trimtab.decide.horizontal.reasons import ROWS, Act, Direction
from trimtab.decide.horizontal.rules import Rules
from trimtab.decide.horizontal.status.ignored_fields import must_not_scale
from trimtab.decide.horizontal.units import edges_of, is_percent
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.types import HPAScalingRules

replace = msgspec.structs.replace
GROWING, SHRINKING = (
    {code for code, row in ROWS.items() if row.asks is direction}
    for direction in (Direction.UP, Direction.DOWN)
)
ASKING = GROWING | SHRINKING
POLICY_ACTS = (Act.POLICY_ABOVE, Act.POLICY_BELOW)
CONDITIONS = {
    Code.DOWN_WINDOW: ("AbleToScale", "ScaleDownStabilized"),
    Code.UP_WINDOW: ("AbleToScale", "ScaleUpStabilized"),
    Code.AT_MAXIMUM: ("ScalingLimited", "TooManyReplicas"),
    Code.SURGE: ("ScalingLimited", "TooManyReplicas"),
    Code.AT_MINIMUM: ("ScalingLimited", "TooFewReplicas"),
    Code.UP_RATE: ("ScalingLimited", "ScaleUpLimit"),
    Code.UP_DISABLED: ("ScalingLimited", "ScaleUpLimit"),
    Code.DOWN_RATE: ("ScalingLimited", "ScaleDownLimit"),
    Code.DOWN_DISABLED: ("ScalingLimited", "ScaleDownLimit"),
    Code.PAUSED: ("ScalingActive", "ScalingDisabled"),
    Code.SCALE_UNREADABLE: ("AbleToScale", "FailedGetScale"),
    Code.AMBIGUOUS: ("ScalingActive", "AmbiguousSelector"),
    Code.SELECTOR_INVALID: ("ScalingActive", "InvalidSelector"),
    Code.SELECTOR_MISSING: ("ScalingActive", "InvalidSelector"),
}
"""The condition of the status that names the same reason as the reason."""


def check(seen, decision):
    """Check everything that is true of the reason of a decision."""
    record = Record(observation=seen, decision=decision)
    story = explain(record)
    check_not_empty(seen, decision, story)
    check_direction(decision, story.reason)
    check_one_reason(record, story)
    check_words(decision, story)
    check_afterwards(seen, decision, story)
    check_policies(seen, decision, story)
    if seen.rules == Rules.TRIMTAB:
        check_edges(decision, story)
        for advice in story.advice:
            check_advice(seen, decision, story.reason, advice)


def check_not_empty(seen, decision, story):
    assert story.summary.strip(": ") == story.summary
    assert not story.summary.endswith(":")
    assert story.next_step
    assert change_reason(seen, decision) if decision.desired != decision.current else True
    if decision.scale_to is not None or decision.action != "none":
        assert decision.because or not seen.rules.ours


def check_direction(decision, reason):
    """Check that the reason is one for the way the replicas go, or are asked to go."""
    towards = _sign(decision.desired - decision.current)
    asked = _asked(decision)
    if not towards and asked is not None:
        # Upstream's sums overflow. A proposal below zero holds an HPA at zero when another metric is lost.
        is_raw = reason == Code.METRICS_INCOMPLETE
        towards = _sign((asked if is_raw else max(asked, 0)) - decision.current)
    if reason in GROWING:
        assert towards > 0, reason
    elif reason in SHRINKING:
        assert towards < 0, reason
    elif asked is not None and reason not in {Code.LOSS_POLICY, Code.SCALE_NOT_WRITTEN}:
        assert not decision.trace.is_measured or not towards, reason


def check_one_reason(record, story):
    """Check that status, events, log and page say what the explanation says."""
    seen, decision = record.observation, record.decision
    page = decision_view(record)
    assert (page.reason, page.summary, page.next_step) == (story.reason, story.summary, story.next_step)
    if story.reason in CONDITIONS and decision.desired == decision.current:
        kind, reason = CONDITIONS[story.reason]
        found = decision.status.condition(kind)
        assert (found.reason if found else None) == reason, story.reason
    if decision.desired == decision.current or story.reason == Code.SCALE_NOT_WRITTEN:
        return
    said = change_reason(seen, decision)
    assert story.summary.endswith(f": {said}")
    for event in decision.events:
        if event.reason == "SuccessfulRescale" and seen.rules.ours:
            assert event.message == f"New size: {decision.desired}; reason: {decision.because}"
            assert _is_same_reason(decision.because, said)


def _is_same_reason(upstream, said):
    """Return whether two texts give the same reason; where upstream's words are not true, the needs are told."""
    if upstream.endswith("below target or activation"):
        return "not above its activation" in said
    for end in ("above target", "below target"):
        if said.endswith(end):
            return upstream.endswith(end)
        if upstream.endswith(end):
            return any(word in said for word in (" set", "wakes it", "within its tolerance"))
    return "asks for" in upstream or upstream == said


def check_words(decision, story):
    """Check that "above" and "below" are true of the values, whichever way the replicas go."""
    trace = decision.trace
    found = [one for one in trace.proposals if isinstance(one, Proposal)]
    if story.summary.endswith("above target"):
        winner = trace.proposals[trace.winner]
        assert decision.current
        assert winner.value > winner.target
    if story.summary.endswith("below target"):
        assert all(one.value < one.target for one in found)
    if decision.desired != decision.current and trace.is_measured:
        assert bool(story.partly_held) == (trace.recommended != decision.desired)


def check_edges(decision, story):
    """Check that each metric asks for what its printed edges say of its present value."""
    current, trace = decision.current, decision.trace
    if not trace.is_measured:
        return
    for one, told in zip(trace.proposals, story.metrics, strict=True):
        if not isinstance(one, Proposal) or one.outcome in {
            ProposalOutcome.NO_READY_PODS,
            ProposalOutcome.DIRECTION_UNSURE,
            ProposalOutcome.MEASURED_BEFORE,
        }:
            continue
        if one.counts is None and one.total is None and not one.pods:
            continue  # a value without ready pods names no edges
        edges = edges_of(one, trace.tolerance, current)
        assert any(note.startswith("more replicas also") for note in told.notes) == bool(edges.more_between)
        assert any(note.startswith("fewer replicas also") for note in told.notes) == bool(edges.fewer_between)
        # A share of a total is rounded up to thousandths, so the value itself does not tell within one of them.
        slack = 1 if one.total is not None else 0
        if one.replicas > current:
            assert one.value + slack > edges.up or _lies_in(one.value, edges.more_between, slack), (
                one,
                edges,
            )
        else:
            assert one.value <= edges.up, (one, edges)
            assert not _lies_in(one.value, edges.more_between, -slack), (one, edges)
        is_below = one.value < edges.down or (edges.includes_down and one.value <= edges.down)
        if one.replicas < current:
            is_near = abs(one.value - edges.down) <= slack
            assert is_below or is_near or _lies_in(one.value, edges.fewer_between, slack), (one, edges)
        else:
            assert not is_below, (one, edges)
            assert not _lies_in(one.value, edges.fewer_between, -slack), (one, edges)


def _lies_in(value, ends, slack):
    return ends is not None and ends[0] - slack < value <= ends[1] + slack


def check_afterwards(seen, decision, story):
    """Check that nothing is said to follow a change that is not made, nor from pods that are gone."""
    follows = story.next_step.split("; or ")[0]
    is_scaled = decision.desired != decision.current and story.reason != Code.SCALE_NOT_WRITTEN
    if not is_scaled or must_not_scale(seen.hpa, seen.gates):
        assert "measured" not in follows
    elif not decision.desired:
        assert "remaining" not in follows


def check_policies(seen, decision, story):
    """Check that a replica policy that decides the number is named, and that the metrics are not said to ask for it."""
    winner = decision.trace.winning_policy
    if winner is None:
        return
    page = decision_view(Record(observation=seen, decision=decision))
    said = f"{story.partly_held} {story.next_step} {page.more} {page.less}"
    assert "metrics ask for" not in said
    assert "the metrics must ask" not in said
    if (
        story.reason == Code.REPLICA_POLICY and seen.rules.ours
    ):  # by upstream's, a percentage never leaves zero
        asked = {(one.act, one.value) for advice in story.advice for one in advice.changes}
        assert asked & {(act, seen.policy_answers[winner].plugin) for act in POLICY_ACTS}, story.next_step


def check_advice(seen, decision, reason, advice):
    """Apply the advice, decide again, and check that it did what it promised."""
    if advice.direction == Direction.EITHER:
        check_cause_goes(seen, decision, reason, advice)
        return
    want = 1 if advice.direction == Direction.UP else -1
    if reason in ASKING:
        assert want == (1 if reason in GROWING else -1)
    assert any(_sign(one.desired - decision.current) == want for one in outcomes(seen, decision, advice)), (
        reason,
        advice,
    )


def check_cause_goes(seen, decision, reason, advice):
    """Check advice that promises no direction: once it is followed, the reason is another one."""
    mended = seen
    for change in advice.changes:
        found = _mended(mended, decision, change)
        if found is None:
            return  # a spec is at fault, and only its author knows the right one
        mended = found
    again = decide(mended, _moment(decision.now))
    if advice.changes[-1].field == "spec.selectionStrategy":
        assert not again.trace.extra_pods
        assert advice.outcome in {None, again.trace.recommended}
        return
    if advice.changes[0].act == Act.READ_METRIC:
        # Each has its own trouble; another one may show behind it.
        for index in (change.metric for change in advice.changes):
            assert again.trace.proposals[index] != decision.trace.proposals[index]
        return
    assert again.reason.code != reason, (reason, advice)


def _mended(seen, decision, change):
    """Return the observation with the cause of trouble removed; None where there is no one way to do it."""
    ready = tuple(
        replace(pod, phase="Running", ready="True", is_deleted=False, started=0.0) for pod in seen.pods
    )
    match change.act:
        case Act.SET | Act.OPEN_GATE:
            return applied(seen, decision, change)
        case Act.RESUME:
            return replace(seen, scale=replace(seen.scale, spec=replace(seen.scale.spec, replicas=1)))
        case Act.REMOVE_CONFLICTING_HPA:
            return replace(seen, conflicting_hpas=())
        case Act.READ_OWNERS:
            return replace(seen, owners={key: OwnerNotFound() for key in seen.owners})
        case Act.REPAIR_PLUGIN:
            working = tuple(replace(answer, failure="") for answer in seen.policy_answers)
            chosen = seen.filter_answer and replace(seen.filter_answer, failure="")
            return replace(seen, policy_answers=working, filter_answer=chosen)
        case Act.COUNT_PODS:
            spec = replace(seen.hpa.spec, selection_strategy=None)
            return replace(seen, hpa=replace(seen.hpa, spec=spec))
        case Act.REFRESH_CACHES:
            return replace(seen, stale_inputs=())
        case Act.END_ROLLOUT:
            settled = replace(seen.scale.status, replicas=decision.current)
            return replace(seen, scale=replace(seen.scale, status=settled))
        case Act.READ_SCALE:
            return replace(seen, scale=Scale(), scale_failure=None)
        case Act.REPORT_SELECTOR:
            return replace(
                seen, scale=replace(seen.scale, status=replace(seen.scale.status, selector="app=web"))
            )
        case Act.READY_POD:
            return replace(seen, pods=ready) if decision.trace.counted_pods else None
        case Act.REMOVE_RIVAL:
            return replace(seen, rivals=NO_RIVALS)
        case Act.LATER_SAMPLES:
            return replace(seen, memory=replace(seen.memory, scale_down=()))
        case Act.SAMPLES | Act.FIRST_SAMPLES:
            return replace(
                seen, pods=ready, samples=tuple(_complete(one, ready, decision.now) for one in seen.samples)
            )
        case Act.READ_METRIC:
            readings = list(seen.samples)
            result = decision.trace.proposals[change.metric]
            failure = getattr(result, "failure", result)
            is_author = failure.is_misconfigured or failure.is_spec_error
            if (
                is_author
                or change.metric >= len(readings)
                or not isinstance(readings[change.metric], FetchFailure)
            ):
                return None
            is_one = (spec := seen.hpa.spec.metrics[change.metric]).external or spec.object
            fresh = Sample(0, decision.now)
            readings[change.metric] = Series(samples=(fresh,)) if is_one else None
            return replace(seen, samples=tuple(readings)) if is_one else None
    raise AssertionError(change)


def _complete(reading, pods, now):
    """Return a reading that has a sample of every pod: the highest there is, taken now."""
    if not isinstance(reading, PodSamples):
        return reading
    most = max([0, *(one.value for one in reading.samples.values())])
    return replace(reading, samples={pod.name: Sample(most, now, 15.0) for pod in pods}, timestamp=now)


def outcomes(seen, decision, advice):
    """Yield the decisions that follow once the advice is carried out: at once, and after its waits."""
    later = [decision.now]
    for change in advice.changes:
        seen = applied(seen, decision, change)
        later += [decision.now + change.seconds] if change.act == Act.KEEP else []
        later += [change.until] if change.act == Act.WAIT else []
    first = decide(seen, _moment(decision.now))
    yield first
    at = max(later) + 1
    yield decide(replace(_moved(seen, at - decision.now), memory=first.memory), _moment(at))


def applied(seen, decision, change):
    """Return the observation with one change made."""
    hpa, spec = seen.hpa, seen.hpa.spec
    match change.act:
        case Act.SET:
            return replace(seen, hpa=replace(hpa, spec=_set(spec, change)))
        case Act.OPEN_GATE:
            attribute = {
                "HPAScaleToZero": "hpa_scale_to_zero",
                "HPASelectionStrategy": "hpa_selection_strategy",
            }[change.value]
            return replace(seen, gates=replaced(seen.gates, **{attribute: True}))
        case Act.METRIC_ABOVE | Act.METRIC_BELOW | Act.METRIC_AT_MOST:
            readings = list(seen.samples)
            readings[change.metric] = _measured(seen, decision, change)
            return replace(seen, samples=tuple(readings))
        case Act.POLICY_ABOVE | Act.POLICY_BELOW:
            asked = int(change.amount) + (1 if change.act == Act.POLICY_ABOVE else -1)
            answers = tuple(
                replace(answer, replicas=asked) if answer.plugin == change.value else answer
                for answer in seen.policy_answers
            )
            return replace(seen, policy_answers=answers)
        case Act.KEEP | Act.WAIT:
            return seen
    raise AssertionError(change)


def _set(spec, change):
    simple = {"spec.maxReplicas": "max_replicas", "spec.minReplicas": "min_replicas"}
    if change.field in simple:
        return replace(spec, **{simple[change.field]: int(change.value)})
    if change.field == "spec.selectionStrategy":
        return replace(spec, selection_strategy=change.value)
    side = {
        "spec.behavior.scaleUp.selectPolicy": "scale_up",
        "spec.behavior.scaleDown.selectPolicy": "scale_down",
    }[change.field]
    rules = getattr(spec.behavior, side) or HPAScalingRules()
    changed = replace(spec.behavior, **{side: replace(rules, select_policy=change.value)})
    return replace(spec, behavior=changed)


def _measured(seen, decision, change):
    """Return the metric's reading with every measured pod, or the whole, at a value that fulfils the change."""
    proposal, reading = decision.trace.proposals[change.metric], seen.samples[change.metric]
    assert isinstance(proposal, Proposal)
    is_up = change.act == Act.METRIC_ABOVE
    value = {
        Act.METRIC_ABOVE: math.floor(change.amount) + 1,
        Act.METRIC_BELOW: math.ceil(change.amount) - 1,
        Act.METRIC_AT_MOST: math.floor(change.amount),
    }[change.act]
    if isinstance(reading, Series):
        total = value * max(proposal.pods, 1) if proposal.total is not None else value
        first, *rest = reading.samples
        return Series(samples=(replace(first, value=total), *(replace(one, value=0) for one in rest)))
    assert isinstance(reading, PodSamples)
    spec = seen.hpa.spec.metrics[change.metric]
    source = spec.resource or spec.container_resource
    container = spec.container_resource.container if spec.container_resource else ""
    pods = {pod.name: pod for pod in seen.pods}
    samples = {}
    for name, sample in reading.samples.items():
        amount = value
        if is_percent(proposal.status) and name in pods:
            # A pod that the strategy leaves out may lack the request.
            with suppress(MissingRequestError):
                share = pods[name].request_of(source.name, container) * value / 100
                amount = math.ceil(share) if is_up else math.floor(share)
        samples[name] = sample if sample.value < 0 else replace(sample, value=amount)
    return replace(reading, samples=samples)


def _moved(seen, seconds):
    """Return the observation some time later, with everything in it as old as it was."""
    pods = tuple(
        replace(
            pod,
            started=None if pod.started is None else pod.started + seconds,
            ready_since=pod.ready_since + seconds,
        )
        for pod in seen.pods
    )
    return replace(seen, pods=pods, samples=tuple(_later(one, seconds) for one in seen.samples))


def _later(reading, seconds):
    def moved(sample):
        return replace(sample, timestamp=sample.timestamp + seconds)

    if isinstance(reading, PodSamples):
        return replace(reading, samples={name: moved(one) for name, one in reading.samples.items()})
    return Series(samples=tuple(map(moved, reading.samples))) if isinstance(reading, Series) else reading


def _asked(decision):
    """Return what the metrics ask for, counted from the proposals; None if none was made."""
    if decision.trace.winning_policy is not None:
        return decision.trace.recommended
    asked = [one.replicas for one in decision.trace.proposals if getattr(one, "replicas", None) is not None]
    return max(asked, default=None)


def _sign(number):
    return (number > 0) - (number < 0)


def _moment(at):
    return datetime.fromtimestamp(at, UTC)


def checked(seen, now):
    """Decide, check the decision before and after its scale is written, and return it."""
    decision = decide(seen, now)
    check(seen, decision)
    if decision.scale_to is not None:
        check(seen, after_scale(seen, decision))
        check(seen, after_scale(seen, decision, "the server said no"))
    return decision


class Ledger:
    """Checks every decision that passes through, where the caller would swallow what a check raises."""

    def __init__(self):
        self.wrong = []
        self.number = 0

    def decide(self, seen, now):
        """Decide, and note whatever is wrong with the reason."""
        self.number += 1
        try:
            return checked(seen, now)
        except AssertionError as error:
            self.wrong.append(error)
            return decide(seen, now)
