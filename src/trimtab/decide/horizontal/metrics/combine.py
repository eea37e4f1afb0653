"""What all metrics and replica policies ask for together.

The largest proposal wins. If every metric fails, or some fail while the others would shrink the workload, the result has no
replicas, because the metric that cannot be read might need the pods. Only a loss policy says otherwise. It never replaces a metric
whose spec is wrong, and never brings a workload to zero (docs/decisions/each-metric-sets-its-own-loss-policy.md).
"""

from typing import Any, Literal

import msgspec

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.memory import LastGood, Memory
from trimtab.decide.horizontal.metrics.kinds import Failure, Proposal, metric_key, propose_replicas
from trimtab.decide.horizontal.metrics.pods import Context, ProposalOutcome, tolerance_of
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.plugin_answers import INVALID_POLICIES, PolicyAnswer
from trimtab.decide.horizontal.observation.samples import FetchFailure
from trimtab.decide.horizontal.observation.staleness import SampleLimits, limits_at
from trimtab.decide.horizontal.reasons import (
    Asked,
    AskedByPolicy,
    AskedInstead,
    Code,
    Count,
    LeftOutAll,
    Reason,
)
from trimtab.decide.horizontal.rules import Rules
from trimtab.decide.horizontal.selection.selection import Selection
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.metric_fields import DEFAULT_LAST_GOOD_SECONDS
from trimtab.model.hpa.metric_kinds import WAKING, label_of
from trimtab.model.hpa.types import LossPolicy, MetricSpec, MetricStatus, SelectionStrategy
from trimtab.model.json.wire import Wire
from trimtab.model.plugin_names import is_plugin_name
from trimtab.model.times import format_time

WARM_UP_SECONDS = 120.0
"""How long the first sample of a pod may take: two periods of metrics-server, whose period is 15 to 60 s."""
LEAVES_OUT_ALL = "leaves out every pod that matches the selector"
"""What a selection strategy does if no pod counts; `trimtab top` recognises it in the status."""
UNREAD = FetchFailure(message="nothing was read for this metric")
FAILED_METRIC = MetricStatus()
NO_METRICS = Failure(
    type="",
    reason="InvalidMetricSourceType",
    message="the spec names no metric",
    error="the spec names no metric",
)
"""Admission adds a CPU metric to a spec without any; an object that got past it must not scale on nothing."""

Action = Literal["scale_up", "scale_down", "none"]
ErrorLabel = Literal["spec", "internal", "none"]


class Computation(Wire):
    """Labels of the Prometheus metric that counts computations, one per metric of the spec."""

    type: str
    action: Action = "none"
    error: ErrorLabel = "none"


class LossFallback(Wire, tag="fallback", tag_field="result"):
    """What a lost metric counts as, by its loss policy."""

    type: str
    label: str
    policy: str
    failure: Failure
    replicas: int | None = None
    """What counts in its place; None: nothing."""
    at: float | None = None
    """LastGood: when the metric was last read."""
    until: float | None = None
    """LastGood: how long that counts."""

    @property
    def name(self) -> str:
        """Return the fallback as conditions and events call it."""
        kind = "the last good value" if self.policy == LossPolicy.LAST_GOOD else "the fall-back"
        return f"{kind} of {self.type} metric {self.label}"

    @property
    def holds(self) -> bool:
        """Return whether the replicas may not be lowered, because the policy gives no replicas."""
        return self.replicas is None and self.policy != LossPolicy.IGNORE


Result = Proposal | Failure | LossFallback
"""The result of one metric."""


class MetricsResult(Wire):
    """What the metrics ask for together."""

    replicas: int | None = None
    """None when the replicas must stay as they are."""
    winner: int | None = None
    """Index of the proposal that asks for the most."""
    name: str = ""
    """The winner as conditions and events call it."""
    proposals: tuple[Result, ...] = ()
    """What each metric of the spec asks for."""
    statuses: tuple[MetricStatus, ...] = ()
    computations: tuple[Computation, ...] = ()
    failures: tuple[Failure, ...] = ()
    """Of the metrics that could not be read, those with a loss policy included."""
    fallbacks: tuple[LossFallback, ...] = ()
    """What lost metrics count as, by their loss policies."""
    blocked_by: Failure | None = None
    """The failure that the condition names when there are no replicas."""
    error: str = ""
    """What the reconcile reports; there may be replicas nevertheless."""
    is_warming_up: bool = False
    """Whether there are no replicas only because the pods are too young for samples."""
    last_good: tuple[LastGood, ...] = ()
    """The last good proposals to remember."""
    winning_policy: int | None = None
    """Index of the replica policy that asks for the most, if no metric asks for as many."""


def proposal_context(
    observation: Observation, scale: Scale, selection: Selection, memory: Memory, now: float
) -> Context:
    """Return the state of the target that every proposal is computed from."""
    settings, rules = observation.settings, observation.rules
    return Context(
        namespace=observation.hpa.metadata.namespace,
        now=now,
        current=scale.spec.replicas,
        status_replicas=scale.status.replicas,
        pods=selection.pods,
        has_pods=bool(observation.pods),
        tolerance=tolerance_of(observation.hpa.spec.behavior, settings, observation.gates),
        settings=settings,
        rules=rules,
        limits=limits_at(now, settings, rules),
        memory=memory,
        # A pod that the strategy leaves out, or that cannot be shown to be owned, is not averaged in as a stray.
        averages_strays=not rules.ours and selection.strategy == SelectionStrategy.LABEL_SELECTOR,
        may_sleep=observation.hpa.spec.min_replicas == 0 and observation.gates.hpa_scale_to_zero,
        all_left_out="" if selection.pods else _describe_left_out(selection, rules),
    )


def _describe_left_out(selection: Selection, rules: Rules) -> str:
    """Return that a strategy leaves out every pod, with the first reason, or an empty text if there is none."""
    if not selection.left_out or not rules.ours:
        return ""
    text = f"did not receive metrics for targeted pods: {selection.strategy} {LEAVES_OUT_ALL}"
    # Pods that the target does not own must change no status, so the texts of our own strategies name none.
    first = selection.left_out[0]
    return f"{text}, first {first.pod}: {first.reason}" if is_plugin_name(selection.strategy) else text


def compute_replicas(observation: Observation, context: Context) -> MetricsResult:
    """Let every metric propose replicas, and combine the proposals."""
    memory = context.memory
    proposals: list[Result] = []
    failures: list[Failure] = []
    statuses: list[MetricStatus] = []
    computations: list[Computation] = []
    last_good: list[LastGood] = []
    before = observation.hpa.status.current_replicas
    readings = iter(observation.samples)
    for spec in observation.hpa.spec.metrics:
        limits = _limits_for(spec, context.limits)
        at = context if limits is context.limits else msgspec.structs.replace(context, limits=limits)
        result = propose_replicas(spec, next(readings, UNREAD), at)
        computations.append(_computation(result, before))
        if isinstance(result, Proposal):
            statuses.append(result.status)
        else:
            if result.is_unmeasured and _is_warming_up(observation, context):
                result = msgspec.structs.replace(result, is_warming_up=True)
            failures.append(result)
            # It keeps its place: kubectl pairs metrics with their statuses by position.
            statuses.append(FAILED_METRIC)
        if spec.on_loss is not None and observation.rules.ours:
            known = next((good for good in memory.last_good if good.key == metric_key(spec)), None)
            counted, good = _apply_loss_policy(spec, result, known, context.now)
            proposals.append(counted)
            last_good += [] if good is None else [good]
        else:
            proposals.append(result)
    winner, replicas, name = _largest(proposals)
    combined = MetricsResult(
        replicas=replicas,
        winner=winner,
        name=name,
        proposals=tuple(proposals),
        failures=tuple(failures),
        fallbacks=tuple([result for result in proposals if isinstance(result, LossFallback)])
        if failures
        else (),
        statuses=tuple(statuses),
        computations=tuple(computations),
        last_good=tuple(last_good),
    )
    return combined if winner is not None and not failures else _weigh_failures(combined, context.current)


def _is_warming_up(observation: Observation, context: Context) -> bool:
    """Return whether all pods, or an HPA without any that started, are too young for a first sample."""
    if not context.current:
        return False
    created = observation.hpa.metadata.creation_timestamp
    started = [pod.started for pod in context.pods if pod.started is not None]
    began = started or ([] if created is None else [created.timestamp()])
    return bool(began) and context.now < min(began) + WARM_UP_SECONDS


def _apply_loss_policy(
    spec: MetricSpec, result: Proposal | Failure, known: LastGood | None, now: float
) -> tuple[Result, LastGood | None]:
    """Return what a metric with a loss policy counts as, and the last good proposal to remember."""
    loss = spec.on_loss
    assert loss is not None
    if isinstance(result, Proposal):
        is_remembered = loss.policy == LossPolicy.LAST_GOOD
        return result, LastGood(metric_key(spec), result.replicas, now) if is_remembered else None
    is_lost = not result.is_misconfigured and not result.is_spec_error
    if not is_lost or loss.policy not in {LossPolicy.IGNORE, LossPolicy.LAST_GOOD, LossPolicy.REPLICAS}:
        return result, None
    fallback = LossFallback(type=spec.type, label=label_of(spec), policy=loss.policy, failure=result)
    if loss.policy == LossPolicy.REPLICAS:
        return msgspec.structs.replace(fallback, replicas=loss.replicas), None
    if loss.policy == LossPolicy.IGNORE or known is None:
        return fallback, None
    # The last replicas are repeated. The last value would multiply the replicas that it brought about.
    age = DEFAULT_LAST_GOOD_SECONDS if loss.max_age_seconds is None else loss.max_age_seconds
    until = known.at + age
    replicas = known.replicas if now <= until else None
    fallback = msgspec.structs.replace(fallback, replicas=replicas, at=known.at, until=until)
    return fallback, msgspec.structs.replace(known, is_lost=True)


def describe_fallback(fallback: LossFallback) -> str:
    """Return what a lost metric counts as, in words that do not change per sync."""
    if fallback.policy == LossPolicy.IGNORE:
        return "it is ignored, and the other metrics decide"
    if fallback.policy == LossPolicy.REPLICAS:
        return f"its fall-back of {fallback.replicas} replicas counts"
    if fallback.at is None or fallback.until is None:
        return "no good value of it is known, so nothing is lowered"
    at, until = format_time(wire_time(fallback.at)), format_time(wire_time(fallback.until))
    if fallback.replicas is None:
        return f"its last good value, of {at}, is too old since {until}, so nothing is lowered"
    return f"its last good value, of {at}, counts until {until} and asks for {fallback.replicas}"


def _weigh_failures(result: MetricsResult, current: int) -> MetricsResult:
    """Return the result without replicas if a metric that failed might need those that there are."""
    replicas = result.replicas or 0
    if result.fallbacks and current:
        replicas = max(replicas, 1)  # only metrics that were read may bring a workload to zero
    holding = [failure for failure in map(_holding_failure, result.proposals) if failure is not None]
    error = ""
    if holding:
        count, total = len(holding), len(result.proposals)
        error = f"invalid metrics ({count} invalid out of {total}), first error is: {holding[0].error}"
    if result.winner is not None and not (holding and replicas < current):
        return msgspec.structs.replace(result, replicas=replicas, error=error)
    first = (*holding, *result.failures, NO_METRICS)[0]
    return msgspec.structs.replace(
        result,
        replicas=None,
        winner=None,
        name="",
        blocked_by=first,
        error=error or first.error,
        is_warming_up=all(failure.is_warming_up for failure in holding or (first,)),
    )


def _holding_failure(result: Result) -> Failure | None:
    if isinstance(result, LossFallback):
        return result.failure if result.holds else None
    return result if isinstance(result, Failure) else None


def _largest(proposals: list[Result]) -> tuple[int | None, int, str]:
    """Return index, replicas and name of the first of the largest proposals."""
    winner, replicas, name = None, 0, ""
    for index, proposal in enumerate(proposals):
        if isinstance(proposal, Failure) or proposal.replicas is None:
            continue
        if replicas == 0 or proposal.replicas > replicas:
            winner, replicas, name = index, proposal.replicas, proposal.name
    return winner, replicas, name


def _limits_for(spec: MetricSpec, limits: SampleLimits) -> SampleLimits:
    """Return the limits of one metric, which may have a maximum age of its own."""
    return limits if spec.max_age_seconds is None else limits.with_max_age(spec.max_age_seconds)


def _computation(result: Proposal | Failure, before: int) -> Computation:
    # Upstream compares with the replicas of the status, not of the scale.
    if isinstance(result, Failure):
        return Computation(type=result.type, error="spec" if result.is_spec_error else "internal")
    action: Action = "none"
    if result.replicas != before:
        action = "scale_up" if result.replicas > before else "scale_down"
    return Computation(type=result.type, action=action)


def add_policies(result: MetricsResult, answers: tuple[PolicyAnswer, ...], current: int) -> MetricsResult:
    """Return what metrics and policies ask for together.

    A metric that cannot be read, and a policy that failed, might need the pods that there are. Then another policy may only ask
    for more.
    """
    winner, most = _largest_answer(answers)
    if winner is None:
        return result
    least = current if result.replicas is None else result.replicas + 1
    if result.replicas is not None and any(answer.failure for answer in answers):
        least = max(least, current + 1)
    if most < least:
        return result
    return msgspec.structs.replace(
        result,
        replicas=most,
        winner=None,
        winning_policy=winner,
        name=f"{answers[winner].name}: {answers[winner].reason}",
        blocked_by=None,
    )


def asked_by(
    result: MetricsResult, answers: tuple[PolicyAnswer, ...], selection: Selection, current: int
) -> Count | Reason:
    """Return what metrics and replica policies ask for and why, or why nothing can be asked for."""
    if result.replicas is None:
        return _failure(result, selection)
    replicas = max(result.replicas, 0)
    if replicas == current:
        return Count(replicas, _standstill(result, answers, selection, current))
    code = Code.SCALES_UP if replicas > current else Code.SCALES_DOWN
    if result.winning_policy is not None:
        return Count(replicas, Reason(code=code, facts=_policy(answers[result.winning_policy], replicas)))
    if isinstance(_winner(result), LossFallback):
        return Count(replicas, Reason(code=code, facts=AskedInstead(name=result.name, replicas=replicas)))
    is_inactive = any(
        isinstance(found, Proposal) and found.outcome is ProposalOutcome.BELOW_ACTIVATION
        for found in result.proposals
    )
    asked = Asked(name=result.name, others_lost=bool(result.fallbacks), is_inactive=is_inactive)
    return Count(replicas, Reason(code=code, facts=asked))


def _failure(result: MetricsResult, selection: Selection) -> Reason:
    needs_pods = any(isinstance(failed, Failure) and failed.type not in WAKING for failed in result.proposals)
    if needs_pods and (nobody := _left_out_all(selection)):
        return Reason(code=Code.ALL_LEFT_OUT, facts=nobody)
    if result.is_warming_up:
        return Reason(code=Code.WARMING_UP)
    is_any_read = any(isinstance(read, Proposal) for read in result.proposals)
    return Reason(code=Code.METRICS_INCOMPLETE if is_any_read else Code.METRICS_FAILED)


def _standstill(
    result: MetricsResult, answers: tuple[PolicyAnswer, ...], selection: Selection, current: int
) -> Reason:
    """Return why neither a metric nor a policy asks for other replicas."""
    if result.winning_policy is not None:
        return Reason(code=Code.REPLICA_POLICY, facts=_policy(answers[result.winning_policy], current))
    winner = _winner(result)
    if not isinstance(winner, Proposal) or (winner.replicas < current and result.fallbacks):
        return Reason(code=Code.LOSS_POLICY)
    if winner.outcome is ProposalOutcome.NO_READY_PODS and (nobody := _left_out_all(selection)):
        return Reason(code=Code.ALL_LEFT_OUT, facts=nobody)
    return Reason(code=_OUTCOMES[winner.outcome])


_OUTCOMES = {
    ProposalOutcome.WITHIN_TOLERANCE: Code.WITHIN_TOLERANCE,
    ProposalOutcome.WITHIN_AFTER_FILLING: Code.WITHIN_AFTER_FILLING,
    ProposalOutcome.DIRECTION_UNSURE: Code.DIRECTION_UNSURE,
    ProposalOutcome.NO_READY_PODS: Code.NO_READY_PODS,
    ProposalOutcome.MEASURED_BEFORE: Code.MEASURED_BEFORE,
    ProposalOutcome.FROM_ZERO: Code.IDLE_AT_ZERO,
    ProposalOutcome.BELOW_ACTIVATION: Code.IDLE_AT_ZERO,
    ProposalOutcome.PROPOSED: Code.ENOUGH,
}


def _winner(result: MetricsResult) -> Result | None:
    return None if result.winner is None else result.proposals[result.winner]


def _left_out_all(selection: Selection) -> LeftOutAll | None:
    if selection.pods or not selection.left_out:
        return None
    first = selection.left_out[0]
    return LeftOutAll(strategy=selection.strategy, pod=first.pod, reason=first.reason)


def _policy(answer: PolicyAnswer, replicas: int) -> AskedByPolicy:
    return AskedByPolicy(name=answer.name, replicas=replicas, reason=answer.reason)


def policy_memory(answers: tuple[PolicyAnswer, ...], before: dict[str, Any]) -> dict[str, Any]:
    """Return what the policies remember. A policy that failed keeps its memory."""
    if any(answer.reason == INVALID_POLICIES and answer.failure for answer in answers):
        return before  # which policies there are is unknown
    remembered = {
        answer.plugin: before.get(answer.plugin) if answer.failure else answer.memory for answer in answers
    }
    return {plugin: memory for plugin, memory in remembered.items() if memory is not None}


def _largest_answer(answers: tuple[PolicyAnswer, ...]) -> tuple[int | None, int]:
    """Return index and replicas of the first of the largest proposals."""
    winner, most = None, -1
    for index, answer in enumerate(answers):
        if answer.replicas is not None and answer.replicas > most:
            winner, most = index, answer.replicas
    return winner, most
