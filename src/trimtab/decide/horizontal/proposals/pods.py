"""Pods metrics: a custom metric of each pod, averaged."""

from trimtab.decide.horizontal.arithmetic import finite
from trimtab.decide.horizontal.proposals.podwise import Average
from trimtab.decide.horizontal.proposals.proposal import Misconfigured, Proposal, Unusable, settle
from trimtab.decide.horizontal.proposals.resource import counts_of, grouped
from trimtab.decide.horizontal.proposals.scene import Scene
from trimtab.decide.horizontal.readings import PodSamples, Reading, failure_of
from trimtab.model.hpa.types import (
    MetricSourceType,
    MetricStatus,
    MetricValueStatus,
    PodsMetricSource,
    PodsMetricStatus,
)
from trimtab.model.quantity import Quantity

NO_PODS_TARGET = "invalid pods metric source: no average value target was set"


def propose_pods(source: PodsMetricSource, reading: Reading, scene: Scene) -> Proposal:
    """Propose replicas for the average of a custom metric over the pods; readiness plays no part."""
    if source.target.average_value is None:
        raise Misconfigured(NO_PODS_TARGET)
    if not isinstance(reading, PodSamples):
        raise Unusable(f"unable to get metric {source.metric.name}: {failure_of(reading)}")
    target = source.target.average_value.milli_value()
    groups = grouped(reading, scene, is_cpu=False)
    usage = Average(groups, target, scene.compat)
    settled = settle(usage.ratio, scene.current, groups, scene.tolerance, usage.fill, scene.compat)
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
        refused=tuple(groups.refused),
        pods=len(groups.ready),
        gaps=usage.gaps() if groups.unready or groups.missing else None,
    )
