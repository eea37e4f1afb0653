"""Resource and ContainerResource metrics: CPU or memory of the pods, against requests or against a value."""

from trimtab.decide.horizontal.arithmetic import finite
from trimtab.decide.horizontal.metrics.pod_groups import Groups, group_pods, stray_values
from trimtab.decide.horizontal.metrics.proposal import (
    Misconfigured,
    PodCounts,
    Proposal,
    ProposalContext,
    Refused,
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

NO_RESOURCE_TARGET = "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"


def propose_resource(
    resource: str, container: str | None, target: MetricTarget, reading: MetricSamples, scene: ProposalContext
) -> Proposal:
    """Propose replicas for a resource of the pods, or of one container of them; an average value wins."""
    try:
        if target.average_value is not None:
            return propose_usage(resource, container, target.average_value.milli_value(), reading, scene)
    except UnusableMetric as cause:
        raise cause.reworded(f"failed to get {resource} usage: {cause}") from cause
    if target.average_utilization is None:
        raise Misconfigured(NO_RESOURCE_TARGET)
    try:
        return propose_utilization(resource, container, target.average_utilization, reading, scene)
    except UnusableMetric as cause:
        raise cause.reworded(f"failed to get {resource} utilization: {cause}") from cause


def propose_utilization(
    resource: str, container: str | None, target: int, reading: MetricSamples, scene: ProposalContext
) -> Proposal:
    """Propose replicas for usage as a percentage of requests."""
    samples = _samples(resource, reading)
    groups = grouped(samples, scene, is_cpu=resource == CPU)
    requests = requests_of(scene.pods, resource, container or "", scene.compat)
    usage = Utilization(groups, requests, target, scene.compat)
    settled = replicas_from_ratio(
        usage.ratio, scene.current, groups, scene.tolerance, usage.fill, scene.compat
    )
    current = MetricValueStatus(
        average_utilization=usage.percent, average_value=resource_quantity(resource, usage.average)
    )
    kind = "resource" if container is None else "container resource"
    return Proposal(
        type=_type(container),
        name=f"{resource} {kind} utilization (percentage of request)",
        replicas=settled.replicas,
        outcome=settled.outcome,
        ratio=finite(usage.ratio),
        value=usage.percent,
        target=target,
        status=_status(resource, container, current),
        timestamp=samples.timestamp,
        filled_ratio=settled.filled_ratio,
        counts=counts_of(groups),
        rejected_samples=tuple(groups.rejected),
        pods=len(groups.ready),
        gaps=usage.gaps() if groups.unready or groups.missing else None,
    )


def propose_usage(
    resource: str, container: str | None, target: int, reading: MetricSamples, scene: ProposalContext
) -> Proposal:
    """Propose replicas for usage as an amount per pod."""
    samples = _samples(resource, reading)
    groups = grouped(samples, scene, is_cpu=resource == CPU)
    usage = Average(groups, target, scene.compat)
    settled = replicas_from_ratio(
        usage.ratio, scene.current, groups, scene.tolerance, usage.fill, scene.compat
    )
    current = MetricValueStatus(average_value=resource_quantity(resource, usage.average))
    return Proposal(
        type=_type(container),
        name=f"{resource} resource",
        replicas=settled.replicas,
        outcome=settled.outcome,
        ratio=finite(usage.ratio),
        value=usage.average,
        target=target,
        status=_status(resource, container, current),
        timestamp=samples.timestamp,
        filled_ratio=settled.filled_ratio,
        counts=counts_of(groups),
        rejected_samples=tuple(groups.rejected),
        pods=len(groups.ready),
        gaps=usage.gaps() if groups.unready or groups.missing else None,
    )


def _samples(resource: str, reading: MetricSamples) -> PodSamples:
    if isinstance(reading, PodSamples):
        return reading
    raise UnusableMetric(f"unable to get metrics for resource {resource}: {failure_of(reading)}")


def grouped(samples: PodSamples, scene: ProposalContext, *, is_cpu: bool) -> Groups:
    """Group the counted pods; raise Unusable if no sample is left to go by."""
    if not scene.has_pods:
        raise UnusableMetric(NO_PODS)
    found = samples.samples
    groups = group_pods(scene.pods, found, scene.now, scene.settings, is_cpu=is_cpu, limits=scene.limits)
    if scene.averages_strays:
        groups.stray = stray_values(scene.pods, found)
    if not groups.ready and not groups.stray:
        if groups.rejected:
            name, rule = min(groups.rejected)
            raise Refused(f"refused the samples of {len(groups.rejected)} pods, first {name}: {rule}")
        raise UnusableMetric(NO_SAMPLES)
    return groups


def counts_of(groups: Groups) -> PodCounts:
    """Count the groups."""
    return PodCounts(
        ready=len(groups.ready),
        unready=len(groups.unready),
        missing=len(groups.missing),
        ignored=len(groups.ignored),
    )


def resource_quantity(resource: str, milli: int) -> Quantity:
    """Return an amount of a resource as metrics-server writes it: memory in binary units."""
    return Quantity.from_milli(milli, "BinarySI" if resource == MEMORY else "DecimalSI")


def _type(container: str | None) -> str:
    return MetricSourceType.RESOURCE if container is None else MetricSourceType.CONTAINER_RESOURCE


def _status(resource: str, container: str | None, current: MetricValueStatus) -> MetricStatus:
    if container is None:
        return MetricStatus(
            type=MetricSourceType.RESOURCE, resource=ResourceMetricStatus(name=resource, current=current)
        )
    return MetricStatus(
        type=MetricSourceType.CONTAINER_RESOURCE,
        container_resource=ContainerResourceMetricStatus(name=resource, container=container, current=current),
    )


NO_PODS_TARGET = "invalid pods metric source: no average value target was set"


def propose_pods(source: PodsMetricSource, reading: MetricSamples, scene: ProposalContext) -> Proposal:
    """Propose replicas for the average of a custom metric over the pods; readiness plays no part."""
    if source.target.average_value is None:
        raise Misconfigured(NO_PODS_TARGET)
    if not isinstance(reading, PodSamples):
        raise UnusableMetric(f"unable to get metric {source.metric.name}: {failure_of(reading)}")
    target = source.target.average_value.milli_value()
    groups = grouped(reading, scene, is_cpu=False)
    usage = Average(groups, target, scene.compat)
    settled = replicas_from_ratio(
        usage.ratio, scene.current, groups, scene.tolerance, usage.fill, scene.compat
    )
    current = MetricValueStatus(average_value=Quantity.from_milli(usage.average))
    return Proposal(
        type=MetricSourceType.PODS,
        name=f"pods metric {source.metric.name}",
        replicas=settled.replicas,
        outcome=settled.outcome,
        ratio=finite(usage.ratio),
        value=usage.average,
        target=target,
        status=MetricStatus(
            type=MetricSourceType.PODS, pods=PodsMetricStatus(metric=source.metric, current=current)
        ),
        timestamp=reading.timestamp,
        filled_ratio=settled.filled_ratio,
        counts=counts_of(groups),
        rejected_samples=tuple(groups.rejected),
        pods=len(groups.ready),
        gaps=usage.gaps() if groups.unready or groups.missing else None,
    )
