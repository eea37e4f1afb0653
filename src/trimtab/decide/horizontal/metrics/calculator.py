"""From readings to the number that the metrics together ask for.

The largest proposal wins. If every metric fails, or some fail while the others would shrink the workload, nothing
is asked for: a metric that cannot be read might be the one that needs the pods. Only a loss policy says otherwise.
"""

from collections.abc import Callable

import msgspec

from trimtab.decide.horizontal.behavior.scale_to_zero import ceiling_of
from trimtab.decide.horizontal.behavior.tolerance import tolerance_of
from trimtab.decide.horizontal.decision import Action, Computation, DecisionTrace
from trimtab.decide.horizontal.metrics.external import NO_TARGET, propose_external
from trimtab.decide.horizontal.metrics.object import is_average, propose_object
from trimtab.decide.horizontal.metrics.on_loss import LossPolicies
from trimtab.decide.horizontal.metrics.pod_metrics import propose_pods, propose_resource
from trimtab.decide.horizontal.metrics.proposal import (
    Failure,
    LossFallback,
    Misconfigured,
    Proposal,
    ProposalContext,
    Result,
    UnusableMetric,
)
from trimtab.decide.horizontal.metrics.rejected_samples import Refusals
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.observation.samples import FetchFailure, MetricSamples
from trimtab.decide.horizontal.selection.ambiguity import (
    ambiguity_message,
    parsed,
    rivals_of,
)
from trimtab.decide.horizontal.selection.extra_pods import tell_extra_pods, tell_fallback
from trimtab.decide.horizontal.selection.selection import (
    Selection,
    effective_strategy,
    select,
)
from trimtab.decide.horizontal.status.builder import DecisionBuilder
from trimtab.decide.horizontal.status.conditions import SCALING_ACTIVE
from trimtab.decide.horizontal.status.ignored_fields import tell_wrong_annotations
from trimtab.model.core.workloads import Scale
from trimtab.model.hpa.types import MetricSourceType, MetricSpec, MetricStatus, SelectionStrategy
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError

_NO_SOURCE = "must populate information for the given metric source"


def propose_replicas(spec: MetricSpec, reading: MetricSamples, scene: ProposalContext) -> Proposal | Failure:
    """Return what one metric asks for, or why it cannot be used."""
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
        return propose(spec, reading, scene)
    except UnusableMetric as cause:
        return Failure(
            type=spec.type,
            reason=f"FailedGet{spec.type}Metric",
            message=str(cause),
            error=f"{_prefix(spec)}{cause.detail}{cause}",
            is_misconfigured=cause.is_misconfigured,
            is_refused=cause.is_refused,
        )


def _resource(spec: MetricSpec, reading: MetricSamples, scene: ProposalContext) -> Proposal:
    if spec.resource is None:
        raise Misconfigured(_NO_SOURCE)
    return propose_resource(spec.resource.name, None, spec.resource.target, reading, scene)


def _container_resource(spec: MetricSpec, reading: MetricSamples, scene: ProposalContext) -> Proposal:
    source = spec.container_resource
    if source is None:
        raise Misconfigured(_NO_SOURCE)
    return propose_resource(source.name, source.container, source.target, reading, scene)


def _pods(spec: MetricSpec, reading: MetricSamples, scene: ProposalContext) -> Proposal:
    if spec.pods is None:
        raise Misconfigured(_NO_SOURCE)
    _check_metric_selector(spec.pods.metric.selector)
    return propose_pods(spec.pods, reading, scene)


def _object(spec: MetricSpec, reading: MetricSamples, scene: ProposalContext) -> Proposal:
    if spec.object is None:
        raise Misconfigured(_NO_SOURCE)
    _check_metric_selector(spec.object.metric.selector)
    try:
        return propose_object(spec.object, reading, scene)
    except UnusableMetric as cause:
        detail = f"failed to get {spec.object.metric.name} object metric: " if is_average(spec.object) else ""
        raise cause.reworded(str(cause), detail) from cause


def _external(spec: MetricSpec, reading: MetricSamples, scene: ProposalContext) -> Proposal:
    source = spec.external
    if source is None:
        raise Misconfigured(_NO_SOURCE)
    if source.target.average_value is None and source.target.value is None:
        raise Misconfigured(NO_TARGET)
    try:
        _check_metric_selector(source.metric.selector)
        return propose_external(source, reading, scene)
    except UnusableMetric as cause:
        is_average_value = source.target.average_value is not None
        metric = (
            f"{source.metric.name} external metric"
            if is_average_value
            else f"external metric {source.metric.name}"
        )
        raise cause.reworded(str(cause), f"failed to get {metric}: ") from cause


def _check_metric_selector(selector: LabelSelector | None) -> None:
    """Admission does not look into metric selectors, so a broken one first shows here."""
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
    """Return how upstream begins the error of a metric, which is a little different for every kind."""
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
    """What the metrics ask for together; `replicas` is None when nothing may be done."""

    replicas: int | None = None
    winner: int | None = None
    name: str = ""
    is_stand_in: bool = False
    error: str = ""
    stop: str = ""


def compute_replicas(draft: DecisionBuilder, scale: Scale, lowest: int) -> MetricsResult:
    """Check the selector, choose the pods, ask every metric and combine the answers."""
    seen = draft.seen
    strategy = effective_strategy(seen.hpa.spec.selection_strategy, seen.gates)
    selection = select(seen.pods, strategy, seen.target, seen.owners)
    tolerance = tolerance_of(seen.hpa.spec.behavior, seen.settings, seen.gates)
    draft.trail = DecisionTrace(
        lowest=lowest,
        highest=ceiling_of(seen.hpa.spec),
        strategy=strategy,
        counted=len(selection.pods),
        left_out=selection.left_out,
        extra=tell_extra_pods(draft, scale, selection, strategy),
        surge=max(scale.status.replicas - scale.spec.replicas, 0),
        fallback=selection.fallback,
        tolerance=tolerance,
    )
    tell_fallback(draft, selection)
    refused = _check_selector(draft, scale.status.selector, selection)
    if refused is not None:
        return refused
    refusals = Refusals(draft)
    scene = ProposalContext(
        namespace=seen.hpa.metadata.namespace,
        now=draft.now,
        current=scale.spec.replicas,
        status_replicas=scale.status.replicas,
        pods=selection.pods,
        has_pods=bool(seen.pods),
        tolerance=tolerance,
        settings=seen.settings,
        compat=seen.compat,
        limits=refusals.usual,
        # A pod that the strategy rejects, or that cannot be shown to be owned, is no stray: it does not count.
        averages_strays=not seen.compat.ignore_foreign_samples
        and strategy != SelectionStrategy.OWNER_REFERENCE,
    )
    tell_wrong_annotations(draft)
    return _combine(draft, scene, refusals)


def _check_selector(draft: DecisionBuilder, selector: str, selection: Selection) -> MetricsResult | None:
    if not selector.strip():
        message = "selector is required"
        draft.warn("SelectorRequired", message)
        return _stopped(draft, "InvalidSelector", "the HPA target's scale is missing a selector", message)
    problem = parsed(selector)
    if isinstance(problem, str):
        message = f"couldn't convert selector into a corresponding internal selector object: {problem}"
        draft.warn("InvalidSelector", message)
        return _stopped(draft, "InvalidSelector", message, message)
    if draft.seen.rivals:
        return _check_ambiguity(draft, selector, selection)
    return None


def _check_ambiguity(draft: DecisionBuilder, selector: str, selection: Selection) -> MetricsResult | None:
    seen, effective = draft.seen, draft.seen.compat.effective_ambiguity
    pods = selection.pods if effective else seen.pods
    rivals = rivals_of(pods, seen.rivals, seen.owners, effective=effective)
    if not rivals:
        return None
    message = ambiguity_message(selector, sorted([*rivals, seen.hpa.key]), short=effective)
    if draft.may_repeat("AmbiguousSelector"):
        draft.warn("AmbiguousSelector", message)
    return _stopped(draft, "AmbiguousSelector", message, message)


def _stopped(draft: DecisionBuilder, reason: str, message: str, error: str) -> MetricsResult:
    draft.conditions.set(SCALING_ACTIVE, "False", reason, message)
    return MetricsResult(error=error, stop=reason)


def _combine(draft: DecisionBuilder, scene: ProposalContext, refusals: Refusals) -> MetricsResult:
    specs = draft.seen.hpa.spec.metrics
    failures = _ask_every_metric(draft, scene, refusals)
    winner, replicas, name = _largest(draft.proposals)
    lost = [one for one in draft.proposals if isinstance(one, LossFallback)]
    if lost and scene.current:
        replicas = max(replicas, 1)  # only metrics that were read may bring a workload to zero
    error = ""
    if failures:
        error = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {failures[0].error}"
    if winner is None or (failures and replicas < scene.current):
        first = next(iter([*failures, *(one.failure for one in lost)]), NO_METRICS)
        message = f"the HPA was unable to compute the replica count: {first.message}"
        draft.conditions.set(SCALING_ACTIVE, "False", first.reason, message)
        return MetricsResult(error=error or first.error, stop="Metrics")
    message = f"the HPA was able to successfully calculate a replica count from {name}"
    draft.conditions.set(SCALING_ACTIVE, "True", "ValidMetricFound", message)
    is_stand_in = isinstance(draft.proposals[winner], LossFallback)
    return MetricsResult(replicas=replicas, winner=winner, name=name, is_stand_in=is_stand_in, error=error)


def _ask_every_metric(draft: DecisionBuilder, scene: ProposalContext, refusals: Refusals) -> list[Failure]:
    """Let every metric propose, or its loss policy; tell those that cannot, and return those that hold."""
    failures: list[Failure] = []
    statuses: list[MetricStatus] = []
    before = draft.seen.hpa.status.current_replicas
    losses = LossPolicies(draft)
    # kubectl pairs the metrics of Kubernetes' own kind with their readings by position.
    omits_failed = draft.seen.compat.omit_failed_metrics and not draft.seen.is_native
    for index, spec in enumerate(draft.seen.hpa.spec.metrics):
        limits = refusals.limits_of(spec)
        at = scene if limits is scene.limits else msgspec.structs.replace(scene, limits=limits)
        found = propose_replicas(spec, _reading(draft.seen, index), at)
        refusals.take(spec, found, limits)
        result = losses.take(spec, found)
        draft.proposals.append(result)
        draft.computations.append(_computation(found, before))
        if isinstance(found, Proposal):
            statuses.append(found.status)
            continue
        draft.warn(found.reason, found.message)
        if not omits_failed:
            statuses.append(FAILED_METRIC)
        if isinstance(result, Failure) or (isinstance(result, LossFallback) and result.holds):
            failures.append(found)
    losses.finish()
    refusals.finish()
    draft.metrics = tuple(statuses)
    return failures


def _largest(proposals: list[Result]) -> tuple[int | None, int, str]:
    """Return the index, replicas and name of the proposal that asks for the most; the first of equals wins."""
    winner, replicas, name = None, 0, ""
    for index, one in enumerate(proposals):
        if isinstance(one, Failure) or one.replicas is None:
            continue
        if replicas == 0 or one.replicas > replicas:
            winner, replicas, name = index, one.replicas, one.name
    return winner, replicas, name


def _reading(seen: Observation, index: int) -> MetricSamples:
    return seen.readings[index] if index < len(seen.readings) else UNREAD


def _computation(result: Proposal | Failure, before: int) -> Computation:
    """Label one computation; upstream compares with the replicas of the status, not of the scale."""
    if isinstance(result, Failure):
        return Computation(type=result.type, error="spec" if result.is_spec_error else "internal")
    action: Action = "none"
    if result.replicas != before:
        action = "scale_up" if result.replicas > before else "scale_down"
    return Computation(type=result.type, action=action)
