"""External metrics: the sum of series that belong to no Kubernetes object."""

from trimtab.decide.horizontal.arithmetic import INT64_MAX, finite, ratio_of, saturated
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
    summed,
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
    source: ExternalMetricSource, reading: MetricSamples, scene: ProposalContext
) -> Proposal:
    """Propose replicas for an external metric; an average value wins, whatever the target's type says."""
    if source.target.average_value is not None:
        return _average(source, source.target.average_value.milli_value(), reading, scene)
    if source.target.value is not None:
        return _value(source, source.target.value.milli_value(), reading, scene)
    raise Misconfigured(NO_TARGET)


def _value(
    source: ExternalMetricSource, target: int, reading: MetricSamples, scene: ProposalContext
) -> Proposal:
    total, timestamp = _total(source, reading, scene, guards_running_sum=False)
    settled = settle_value(total, target, scene)
    return Proposal(
        type=MetricSourceType.EXTERNAL,
        name=_name(source),
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
    source: ExternalMetricSource, target: int, reading: MetricSamples, scene: ProposalContext
) -> Proposal:
    total, timestamp = _total(source, reading, scene, guards_running_sum=True)
    settled = settle_average(total, target, scene, is_capped=True)
    # Upstream leaves a sum at the very limit undivided, since its float could not be told from one beyond it.
    at_limit = not scene.compat.saturate and float(total) >= float(INT64_MAX)
    share = INT64_MAX if at_limit else share_of(total, scene)
    return Proposal(
        type=MetricSourceType.EXTERNAL,
        name=_name(source),
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


def _total(
    source: ExternalMetricSource, reading: MetricSamples, scene: ProposalContext, *, guards_running_sum: bool
) -> tuple[int, float]:
    try:
        series = checked(reading, scene)
        total = summed(series, scene, guards_running_sum=guards_running_sum)
        return checked_total(total, scene), series.samples[0].timestamp
    except UnusableMetric as cause:
        metric = f"{scene.namespace}/{source.metric.name}/{go_string(source.metric.selector)}"
        raise cause.reworded(f"unable to get external metric {metric}: {cause}") from cause


def _name(source: ExternalMetricSource) -> str:
    return f"external metric {source.metric.name}({go_string(source.metric.selector)})"


def _status(source: ExternalMetricSource, current: MetricValueStatus) -> MetricStatus:
    return MetricStatus(
        type=MetricSourceType.EXTERNAL, external=ExternalMetricStatus(metric=source.metric, current=current)
    )
