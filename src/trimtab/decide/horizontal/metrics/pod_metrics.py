"""Metrics that are measured on each pod: Resource, ContainerResource and Pods."""

from trimtab.decide.horizontal.arithmetic import finite
from trimtab.decide.horizontal.metrics.pod_groups import Groups, group_pods, stray_values
from trimtab.decide.horizontal.metrics.proposal import (
    Misconfigured,
    PodCounts,
    Proposal,
    ProposalContext,
    Rejected,
    Unmeasured,
    UnusableMetric,
    replicas_from_ratio,
)
from trimtab.decide.horizontal.metrics.utilization import (
    NO_PODS,
    NO_SAMPLES,
    Average,
    Utilization,
    requests_of,
)
from trimtab.decide.horizontal.observation.samples import (
    FetchFailure,
    MetricSamples,
    PodSamples,
    failure_of,
)
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.hpa.types import (
    ContainerResourceMetricStatus,
    MetricSourceType,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    PodsMetricSource,
    PodsMetricStatus,
    ResourceMetricStatus,
)
from trimtab.model.quantity import Quantity
from trimtab.model.readable import counted

NO_RESOURCE_TARGET = "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
NO_PODS_TARGET = "invalid pods metric source: no average value target was set"


def propose_resource(
    resource: str,
    container: str | None,
    target: MetricTarget,
    samples: MetricSamples,
    context: ProposalContext,
) -> Proposal:
    """Propose replicas for a resource of the pods or of one container."""
    try:
        if target.average_value is not None:
            return propose_usage(resource, container, target.average_value.milli_value(), samples, context)
    except UnusableMetric as cause:
        raise cause.reworded(f"failed to get {resource} usage: {cause}") from cause
    if target.average_utilization is None:
        raise Misconfigured(NO_RESOURCE_TARGET)
    try:
        return propose_utilization(resource, container, target.average_utilization, samples, context)
    except UnusableMetric as cause:
        raise cause.reworded(f"failed to get {resource} utilization: {cause}") from cause


def propose_utilization(
    resource: str, container: str | None, target: int, samples: MetricSamples, context: ProposalContext
) -> Proposal:
    """Propose replicas for usage as a percentage of requests."""
    found = _resource_samples(resource, samples)
    groups = group_counted(found, context, is_cpu=resource == CPU)
    requests = requests_of(context.pods, resource, container or "", context.rules)
    usage = Utilization(groups, requests, target)
    current = MetricValueStatus(
        average_utilization=usage.percent, average_value=resource_quantity(resource, usage.average)
    )
    kind = "resource" if container is None else "container resource"
    name = f"{resource} {kind} utilization (percentage of request)"
    return _proposal(name, usage, usage.percent, found, _status(resource, container, current), context)


def propose_usage(
    resource: str, container: str | None, target: int, samples: MetricSamples, context: ProposalContext
) -> Proposal:
    """Propose replicas for usage as an amount per pod."""
    found = _resource_samples(resource, samples)
    usage = Average(group_counted(found, context, is_cpu=resource == CPU), target)
    current = MetricValueStatus(average_value=resource_quantity(resource, usage.average))
    status = _status(resource, container, current)
    return _proposal(f"{resource} resource", usage, usage.average, found, status, context)


def propose_pods(source: PodsMetricSource, samples: MetricSamples, context: ProposalContext) -> Proposal:
    """Propose replicas for the average of a custom metric over the pods, ready or not."""
    if source.target.average_value is None:
        raise Misconfigured(NO_PODS_TARGET)
    if not isinstance(samples, PodSamples):
        raise UnusableMetric(f"unable to get metric {source.metric.name}: {failure_of(samples)}")
    target = source.target.average_value.milli_value()
    usage = Average(group_counted(samples, context, is_cpu=False), target)
    current = MetricValueStatus(average_value=Quantity.from_milli(usage.average))
    status = MetricStatus(
        type=MetricSourceType.PODS, pods=PodsMetricStatus(metric=source.metric, current=current)
    )
    return _proposal(f"pods metric {source.metric.name}", usage, usage.average, samples, status, context)


def _proposal(
    name: str,
    usage: Utilization | Average,
    value: int,
    samples: PodSamples,
    status: MetricStatus,
    context: ProposalContext,
) -> Proposal:
    groups = usage.groups
    result = replicas_from_ratio(
        usage.ratio, context.current, groups, context.tolerance, usage.with_missing_pods
    )
    return Proposal(
        type=status.type,
        name=name,
        replicas=result.replicas,
        outcome=result.outcome,
        ratio=finite(usage.ratio),
        value=value,
        target=usage.target,
        status=status,
        timestamp=samples.timestamp,
        filled_ratio=result.filled_ratio,
        counts=PodCounts(
            ready=len(groups.ready),
            unready=len(groups.unready),
            missing=len(groups.missing),
            ignored=len(groups.ignored),
        ),
        rejected_samples=tuple(groups.rejected),
        pods=len(groups.ready),
        gaps=usage.gaps() if groups.unready or groups.missing else None,
    )


def _resource_samples(resource: str, samples: MetricSamples) -> PodSamples:
    if isinstance(samples, PodSamples):
        return samples
    is_empty = isinstance(samples, FetchFailure) and samples.is_empty
    kind = Unmeasured if is_empty else UnusableMetric
    raise kind(f"unable to get metrics for resource {resource}: {failure_of(samples)}")


def group_counted(samples: PodSamples, context: ProposalContext, *, is_cpu: bool) -> Groups:
    """Group the counted pods, or raise UnusableMetric if no sample is left."""
    if not context.has_pods:
        raise Unmeasured(NO_PODS)
    groups = group_pods(
        context.pods, samples.samples, context.now, context.settings, is_cpu=is_cpu, limits=context.limits
    )
    if context.averages_strays:
        groups.stray = stray_values(context.pods, samples.samples)
    if not groups.ready and not groups.stray:
        if groups.rejected:
            name, rule = min(groups.rejected)
            raise Rejected(
                f"refused the samples of {counted(len(groups.rejected), 'pod')}, first {name}: {rule}"
            )
        if context.all_left_out:
            raise UnusableMetric(context.all_left_out)
        raise Unmeasured(NO_SAMPLES)
    return groups


def resource_quantity(resource: str, milli: int) -> Quantity:
    """Return an amount of a resource as metrics-server writes it: memory in binary units."""
    return Quantity.from_milli(milli, "BinarySI" if resource == MEMORY else "DecimalSI")


def _status(resource: str, container: str | None, current: MetricValueStatus) -> MetricStatus:
    if container is None:
        return MetricStatus(
            type=MetricSourceType.RESOURCE, resource=ResourceMetricStatus(name=resource, current=current)
        )
    return MetricStatus(
        type=MetricSourceType.CONTAINER_RESOURCE,
        container_resource=ContainerResourceMetricStatus(name=resource, container=container, current=current),
    )
