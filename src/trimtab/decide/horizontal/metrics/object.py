"""Object metrics: one number that describes a Kubernetes object."""

from trimtab.decide.horizontal.metrics.proposal import (
    Misconfigured,
    Proposal,
    ProposalContext,
    UnusableMetric,
)
from trimtab.decide.horizontal.metrics.totals import (
    Total,
    accepted_series,
    accepted_total,
    propose_average,
    propose_value,
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
    """Return whether the target's type and its field both ask for an average."""
    return source.target.type == MetricTargetType.AVERAGE_VALUE and source.target.average_value is not None


def propose_object(source: ObjectMetricSource, samples: MetricSamples, context: ProposalContext) -> Proposal:
    """Propose replicas for an object's metric, by the target's type."""
    name = f"{source.described_object.kind} metric {source.metric.name}"
    if source.target.type == MetricTargetType.VALUE and source.target.value is not None:
        total = _total(source, samples, context)
        status = _status(source, MetricValueStatus(value=Quantity.from_milli(total.value)))
        return propose_value(name, total, source.target.value.milli_value(), status, context)
    if source.target.average_value is None or not is_average(source):
        raise Misconfigured(NO_TARGET)
    total = _total(source, samples, context)
    share = share_of(total.value, context)
    status = _status(source, MetricValueStatus(average_value=Quantity.from_milli(share)))
    if not context.rules.ours:
        name = f"external metric {source.metric.name}({go_string(source.metric.selector)})"
    target = source.target.average_value.milli_value()
    return propose_average(name, total, target, share, status, context)


def _total(source: ObjectMetricSource, samples: MetricSamples, context: ProposalContext) -> Total:
    try:
        sample = accepted_series(samples, context).samples[0]
        return Total(accepted_total(sample.value, context), sample.timestamp)
    except UnusableMetric as cause:
        metric, described = source.metric.name, source.described_object
        if context.rules.minor >= 37:
            text = f"unable to get metric {metric} on {described.kind} {context.namespace}/{described.name}: {cause}"
        else:
            text = f"unable to get metric {metric}: {described.kind} on {context.namespace} {described.name}/{cause}"
        raise cause.reworded(text) from cause


def _status(source: ObjectMetricSource, current: MetricValueStatus) -> MetricStatus:
    return MetricStatus(
        type=MetricSourceType.OBJECT,
        object=ObjectMetricStatus(
            metric=source.metric, current=current, described_object=source.described_object
        ),
    )
