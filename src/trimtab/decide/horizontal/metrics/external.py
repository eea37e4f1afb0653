"""External metrics: the sum of series that belong to no Kubernetes object."""

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
    sum_series,
)
from trimtab.decide.horizontal.observation.samples import MetricSamples
from trimtab.model.hpa.types import (
    ExternalMetricSource,
    ExternalMetricStatus,
    MetricSourceType,
    MetricStatus,
    MetricValueStatus,
)
from trimtab.model.labels.selector import go_string
from trimtab.model.quantity import Quantity

NO_TARGET = "invalid external metric source: neither a value target nor an average value target was set"


def propose_external(
    source: ExternalMetricSource, samples: MetricSamples, context: ProposalContext
) -> Proposal:
    """Propose replicas for an external metric."""
    name = f"external metric {source.metric.name}({go_string(source.metric.selector)})"
    if source.target.average_value is not None:  # it wins, whatever the target's type says
        total = _total(source, samples, context, is_average=True)
        share = share_of(total.value, context)
        status = _status(source, MetricValueStatus(average_value=Quantity.from_milli(share)))
        target = source.target.average_value.milli_value()
        return propose_average(name, total, target, share, status, context)
    if source.target.value is not None:
        total = _total(source, samples, context, is_average=False)
        status = _status(source, MetricValueStatus(value=Quantity.from_milli(total.value)))
        return propose_value(name, total, source.target.value.milli_value(), status, context)
    raise Misconfigured(NO_TARGET)


def _total(
    source: ExternalMetricSource,
    samples: MetricSamples,
    context: ProposalContext,
    *,
    is_average: bool,
) -> Total:
    try:
        series = accepted_series(samples, context)
        total = sum_series(series, context, is_average=is_average)
        return Total(accepted_total(total, context), series.samples[0].timestamp)
    except UnusableMetric as cause:
        metric = f"{context.namespace}/{source.metric.name}/{go_string(source.metric.selector)}"
        raise cause.reworded(f"unable to get external metric {metric}: {cause}") from cause


def _status(source: ExternalMetricSource, current: MetricValueStatus) -> MetricStatus:
    return MetricStatus(
        type=MetricSourceType.EXTERNAL, external=ExternalMetricStatus(metric=source.metric, current=current)
    )
