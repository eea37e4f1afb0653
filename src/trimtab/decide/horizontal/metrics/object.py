"""Object metrics: one number that describes a Kubernetes object."""

from trimtab.decide.horizontal.arithmetic import finite, fold64, ratio_of, saturated
from trimtab.decide.horizontal.metrics.proposal import (
    Misconfigured,
    Proposal,
    ProposalContext,
    UnusableMetric,
)
from trimtab.decide.horizontal.metrics.totals import (
    average_ratio,
    checked,
    checked_total,
    settle_average,
    settle_value,
    share_of,
)
from trimtab.decide.horizontal.observation.samples import MetricSamples
from trimtab.model.hpa.types import (
    MetricSourceType,
    MetricStatus,
    MetricTargetType,
    MetricValueStatus,
    ObjectMetricSource,
    ObjectMetricStatus,
)
from trimtab.model.labels.selector import go_string
from trimtab.model.quantity import Quantity

NO_TARGET = "invalid object metric source: neither a value target nor an average value target was set"


def is_average(source: ObjectMetricSource) -> bool:
    """Return whether the metric is shared out over the replicas; both the type and its field must say so."""
    return source.target.type == MetricTargetType.AVERAGE_VALUE and source.target.average_value is not None


def propose_object(source: ObjectMetricSource, reading: MetricSamples, scene: ProposalContext) -> Proposal:
    """Propose replicas for an object's metric; the target's type decides, and must have its field."""
    if source.target.type == MetricTargetType.VALUE and source.target.value is not None:
        return _value(source, source.target.value.milli_value(), reading, scene)
    if source.target.average_value is not None and is_average(source):
        return _average(source, source.target.average_value.milli_value(), reading, scene)
    raise Misconfigured(NO_TARGET)


def _value(
    source: ObjectMetricSource, target: int, reading: MetricSamples, scene: ProposalContext
) -> Proposal:
    total, timestamp = _total(source, reading, scene)
    settled = settle_value(total, target, scene)
    return Proposal(
        type=MetricSourceType.OBJECT,
        name=f"{source.described_object.kind} metric {source.metric.name}",
        replicas=settled.replicas,
        outcome=settled.outcome,
        ratio=finite(ratio_of(total, target)),
        value=saturated(total),
        target=target,
        status=_status(source, MetricValueStatus(value=Quantity.from_milli(total))),
        timestamp=timestamp,
        pods=scene.ready_pods,
    )


def _average(
    source: ObjectMetricSource, target: int, reading: MetricSamples, scene: ProposalContext
) -> Proposal:
    total, timestamp = _total(source, reading, scene)
    settled = settle_average(total, target, scene, is_capped=scene.compat.saturate)
    share = share_of(total, scene)
    if scene.compat.clear_messages:
        name = f"{source.described_object.kind} metric {source.metric.name}"
    else:
        name = f"external metric {source.metric.name}({go_string(source.metric.selector)})"
    return Proposal(
        type=MetricSourceType.OBJECT,
        name=name,
        replicas=settled.replicas,
        outcome=settled.outcome,
        ratio=finite(average_ratio(total, target, scene)),
        value=saturated(share),
        target=target,
        status=_status(source, MetricValueStatus(average_value=Quantity.from_milli(share))),
        timestamp=timestamp,
        pods=scene.status_replicas,
        total=saturated(total),
    )


def _total(source: ObjectMetricSource, reading: MetricSamples, scene: ProposalContext) -> tuple[int, float]:
    try:
        sample = checked(reading, scene).samples[0]
        return checked_total(fold64(sample.value, saturate=scene.compat.saturate), scene), sample.timestamp
    except UnusableMetric as cause:
        metric, described = source.metric.name, source.described_object
        if scene.compat.clear_messages:
            text = f"unable to get metric {metric}: {cause} on {described.kind} {scene.namespace}/{described.name}"
        else:
            text = f"unable to get metric {metric}: {described.kind} on {scene.namespace} {described.name}/{cause}"
        raise cause.reworded(text) from cause


def _status(source: ObjectMetricSource, current: MetricValueStatus) -> MetricStatus:
    return MetricStatus(
        type=MetricSourceType.OBJECT,
        object=ObjectMetricStatus(
            metric=source.metric, current=current, described_object=source.described_object
        ),
    )
