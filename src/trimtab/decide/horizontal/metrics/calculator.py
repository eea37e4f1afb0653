"""From metric samples to the replicas that all metrics together ask for.

The largest proposal wins. If every metric fails, or some fail while the others would shrink the workload, the result has no
replicas, because the metric that cannot be read might need the pods. Only a loss policy says otherwise.
"""

from collections.abc import Callable

import msgspec

from trimtab.decide.horizontal.memory import LastGood, Memory
from trimtab.decide.horizontal.metrics.external import NO_TARGET, propose_external
from trimtab.decide.horizontal.metrics.object import is_average, propose_object
from trimtab.decide.horizontal.metrics.on_loss import LossPolicies
from trimtab.decide.horizontal.metrics.pod_metrics import propose_pods, propose_resource
from trimtab.decide.horizontal.metrics.proposal import (
    Action,
    Computation,
    Failure,
    LossFallback,
    Misconfigured,
    Proposal,
    ProposalContext,
    Result,
    UnusableMetric,
    metric_key,
)
from trimtab.decide.horizontal.metrics.tolerance import tolerance_of
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.samples import FetchFailure, MetricSamples
from trimtab.decide.horizontal.observation.staleness import SampleAgeLimits, limits_at
from trimtab.decide.horizontal.rules import Rules
from trimtab.decide.horizontal.selection.selection import Selection
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.types import MetricSourceType, MetricSpec, MetricStatus, SelectionStrategy
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError
from trimtab.model.plugin_names import is_plugin_name

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
    stopped_by: str = ""
    """Why there are no replicas: `Metrics`, or the reason of a selector problem."""
    last_good: tuple[LastGood, ...] = ()
    """The last good proposals to remember."""
    rejected_since: dict[str, float] = {}
    """When samples of a metric were first rejected, to remember."""
    winning_policy: int | None = None
    """Index of the replica policy that asks for the most, if no metric asks for as many."""
    policy_hold: str = ""
    """Why replica policies failed, so that the replicas are not lowered; empty if none did."""


def proposal_context(
    observation: Observation, scale: Scale, selection: Selection, strategy: str, now: float
) -> ProposalContext:
    """Return the state of the target that every proposal is computed from."""
    settings, rules = observation.settings, observation.rules
    return ProposalContext(
        namespace=observation.hpa.metadata.namespace,
        now=now,
        current=scale.spec.replicas,
        status_replicas=scale.status.replicas,
        pods=selection.pods,
        has_pods=bool(observation.pods),
        tolerance=tolerance_of(observation.hpa.spec.behavior, settings, observation.gates),
        settings=settings,
        rules=rules,
        limits=limits_at(now, settings, rules, observation.clock_offset),
        # A pod that the strategy leaves out, or that cannot be shown to be owned, is not averaged in as a stray.
        averages_strays=not rules.ours and strategy == SelectionStrategy.LABEL_SELECTOR,
        all_left_out="" if selection.pods else _describe_left_out(selection, strategy, rules),
    )


def _describe_left_out(selection: Selection, strategy: str, rules: Rules) -> str:
    """Return that a strategy leaves out every pod, with the first reason, or an empty text if there is none."""
    if not selection.left_out or not rules.ours:
        return ""
    text = f"did not receive metrics for targeted pods: {strategy} {LEAVES_OUT_ALL}"
    # Pods that the target does not own must change no status, so the texts of our own strategies name none.
    first = selection.left_out[0]
    return f"{text}, first {first.pod}: {first.reason}" if is_plugin_name(strategy) else text


def compute_replicas(observation: Observation, context: ProposalContext, memory: Memory) -> MetricsResult:
    """Let every metric propose replicas, and combine the proposals."""
    rules, before = observation.rules, observation.hpa.status.current_replicas
    policies = LossPolicies(memory.last_good, context.now)
    proposals: list[Result] = []
    failures: list[Failure] = []
    statuses: list[MetricStatus] = []
    computations: list[Computation] = []
    rejected_since: dict[str, float] = {}
    for index, spec in enumerate(observation.hpa.spec.metrics):
        limits = _limits_for(spec, context.limits, memory)
        at = context if limits is context.limits else msgspec.structs.replace(context, limits=limits)
        result = propose_replicas(spec, _samples_of(observation, index), at)
        computations.append(_computation(result, before))
        if isinstance(result, Proposal):
            statuses.append(result.status)
        else:
            if result.is_unmeasured and _is_warming_up(observation, context):
                result = msgspec.structs.replace(result, is_warming_up=True)
            failures.append(result)
            # It keeps its place: kubectl pairs metrics with their statuses by position.
            statuses.append(FAILED_METRIC)
        if result.is_rejected if isinstance(result, Failure) else result.rejected_samples:
            rejected_since[metric_key(spec)] = limits.since
        if spec.on_loss is None or not rules.ours:
            proposals.append(result)
        else:
            proposals.append(policies.apply(spec, spec.on_loss, result))
    winner, replicas, name = _largest(proposals)
    combined = MetricsResult(
        replicas=replicas,
        winner=winner,
        name=name,
        proposals=tuple(proposals),
        failures=tuple(failures),
        fallbacks=tuple(policies.fallbacks),
        statuses=tuple(statuses),
        computations=tuple(computations),
        last_good=tuple(policies.last_good),
        rejected_since=rejected_since,
    )
    return combined if winner is not None and not failures else _weigh_failures(combined, context.current)


def _is_warming_up(observation: Observation, context: ProposalContext) -> bool:
    """Return whether all pods, or an HPA without any that started, are too young for a first sample."""
    if not context.current:
        return False
    created = observation.hpa.metadata.creation_timestamp
    started = [pod.started for pod in context.pods if pod.started is not None]
    began = started or ([] if created is None else [created.timestamp()])
    return bool(began) and context.now < min(began) + WARM_UP_SECONDS


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
        stopped_by="Metrics",
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


def _limits_for(spec: MetricSpec, limits: SampleAgeLimits, memory: Memory) -> SampleAgeLimits:
    """Return the limits of one metric: its own maximum age, and since when its samples are rejected.

    A text with an age in it would change in every sync and cost a status write and an event each time. So every text names
    the moment of the first rejection, which the memory keeps.
    """
    if spec.max_age_seconds is not None:
        limits = limits.with_max_age(spec.max_age_seconds)
    if memory.rejected_since and (since := memory.rejected_since.get(metric_key(spec))) is not None:
        limits = msgspec.structs.replace(limits, since=since)
    return limits


def _samples_of(observation: Observation, index: int) -> MetricSamples:
    return observation.samples[index] if index < len(observation.samples) else UNREAD


def _computation(result: Proposal | Failure, before: int) -> Computation:
    # Upstream compares with the replicas of the status, not of the scale.
    if isinstance(result, Failure):
        return Computation(type=result.type, error="spec" if result.is_spec_error else "internal")
    action: Action = "none"
    if result.replicas != before:
        action = "scale_up" if result.replicas > before else "scale_down"
    return Computation(type=result.type, action=action)


_NO_SOURCE = "must populate information for the given metric source"


def propose_replicas(
    spec: MetricSpec, samples: MetricSamples, context: ProposalContext
) -> Proposal | Failure:
    """Return the replicas that one metric asks for, or why it cannot be used."""
    propose = _KINDS.get(spec.type)
    if propose is None:
        message = f'unknown metric source type "{spec.type}"'
        return Failure(
            type=spec.type,
            reason="InvalidMetricSourceType",
            message=message,
            error=message,
            is_spec_error=True,
        )
    try:
        return propose(spec, samples, context)
    except UnusableMetric as cause:
        return Failure(
            type=spec.type,
            reason=f"FailedGet{spec.type}Metric",
            message=str(cause),
            error=f"{_prefix(spec)}{cause.detail}{cause}",
            is_misconfigured=cause.is_misconfigured,
            is_rejected=cause.is_rejected,
            is_unmeasured=cause.is_unmeasured and context.rules.ours,
        )


def _resource(spec: MetricSpec, samples: MetricSamples, context: ProposalContext) -> Proposal:
    if spec.resource is None:
        raise Misconfigured(_NO_SOURCE)
    return propose_resource(spec.resource.name, None, spec.resource.target, samples, context)


def _container_resource(spec: MetricSpec, samples: MetricSamples, context: ProposalContext) -> Proposal:
    source = spec.container_resource
    if source is None:
        raise Misconfigured(_NO_SOURCE)
    return propose_resource(source.name, source.container, source.target, samples, context)


def _pods(spec: MetricSpec, samples: MetricSamples, context: ProposalContext) -> Proposal:
    if spec.pods is None:
        raise Misconfigured(_NO_SOURCE)
    _check_metric_selector(spec.pods.metric.selector)
    return propose_pods(spec.pods, samples, context)


def _object(spec: MetricSpec, samples: MetricSamples, context: ProposalContext) -> Proposal:
    if spec.object is None:
        raise Misconfigured(_NO_SOURCE)
    _check_metric_selector(spec.object.metric.selector)
    try:
        return propose_object(spec.object, samples, context)
    except UnusableMetric as cause:
        detail = f"failed to get {spec.object.metric.name} object metric: " if is_average(spec.object) else ""
        raise cause.reworded(str(cause), detail) from cause


def _external(spec: MetricSpec, samples: MetricSamples, context: ProposalContext) -> Proposal:
    source = spec.external
    if source is None:
        raise Misconfigured(_NO_SOURCE)
    if source.target.average_value is None and source.target.value is None:
        raise Misconfigured(NO_TARGET)
    try:
        _check_metric_selector(source.metric.selector)
        return propose_external(source, samples, context)
    except UnusableMetric as cause:
        is_average_value = source.target.average_value is not None
        metric = (
            f"{source.metric.name} external metric"
            if is_average_value
            else f"external metric {source.metric.name}"
        )
        raise cause.reworded(str(cause), f"failed to get {metric}: ") from cause


def _check_metric_selector(selector: LabelSelector | None) -> None:
    # Admission does not validate metric selectors, so a broken selector first fails here.
    if selector is None:
        return
    try:
        Selector.from_label_selector(selector)
    except SelectorError as error:
        raise Misconfigured(str(error)) from error


_KINDS: dict[str, Callable[[MetricSpec, MetricSamples, ProposalContext], Proposal]] = {
    MetricSourceType.RESOURCE: _resource,
    MetricSourceType.CONTAINER_RESOURCE: _container_resource,
    MetricSourceType.PODS: _pods,
    MetricSourceType.OBJECT: _object,
    MetricSourceType.EXTERNAL: _external,
}


def _prefix(spec: MetricSpec) -> str:
    # Upstream begins the error of each kind a little differently.
    if spec.resource and spec.type == MetricSourceType.RESOURCE:
        return f"failed to get {spec.resource.name} resource metric value: "
    if spec.container_resource and spec.type == MetricSourceType.CONTAINER_RESOURCE:
        return f"failed to get {spec.container_resource.container} container metric value: "
    if spec.pods and spec.type == MetricSourceType.PODS:
        return "failed to get pods metric value: "
    if spec.object and spec.type == MetricSourceType.OBJECT:
        return "failed to get object metric value: "
    if spec.external and spec.type == MetricSourceType.EXTERNAL:
        return f"failed to get {spec.external.metric.name} external metric value: "
    return f"failed to get {spec.type} metric value: "
