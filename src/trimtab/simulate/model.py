"""How the simulated workload behaves, and what each metric of an HPA means for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    MetricIdentifier,
    MetricSourceType,
    MetricSpec,
    MetricTarget,
)
from trimtab.model.labels.selector import Selector
from trimtab.simulate.trace import Trace


class ModelError(ValueError):
    """The HPA, the trace and the model do not go together; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is assumed about the workload and about the way its metrics reach the autoscaler."""

    requests: Mapping[str, int] = field(default_factory=dict)
    """What one pod asks for, by resource, in thousandths."""
    capacity: Mapping[str, int] = field(default_factory=dict)
    """The most that one pod can carry of a metric, in thousandths; for a resource also the most that it can show."""
    replicas: int | None = None
    """Replicas at the beginning; None: as many as the first row needs, within the HPA's bounds."""
    start_seconds: float = 30.0
    """From the creation of a pod until it is ready."""
    metrics_period: float = 15.0
    """How often usage is measured."""
    metrics_delay: float = 15.0
    """How long a measurement takes to reach the autoscaler."""
    sync_period: float = 15.0
    """How often the autoscaler decides."""


@dataclass(frozen=True, slots=True)
class Metered:
    """One metric of the HPA: the column of the trace that feeds it, and what one pod stands for."""

    column: str
    is_per_pod: bool
    """Whether the metric is measured at the pods, so that they share the load; else it is one number."""
    target: int | None
    """What one pod should carry, in thousandths; None where the target says nothing about one pod."""
    capacity: int | None
    """What one pod can carry, in thousandths, if that is known."""
    most_shown: int | None
    """The most that one pod can show, however much there is to do."""


def metered(hpa: HorizontalPodAutoscaler, trace: Trace, model: Model) -> tuple[Metered, ...]:
    """Return what feeds each metric of the HPA; raise ModelError if something is not known."""
    return tuple(
        _metered(spec, f"{hpa.key}: spec.metrics[{index}]", trace, model)
        for index, spec in enumerate(hpa.spec.metrics)
    )


def _metered(spec: MetricSpec, where: str, trace: Trace, model: Model) -> Metered:
    column = _column(spec, where, trace)
    target, resource = _target(spec), _resource(spec)
    request = model.requests.get(resource) if resource else None
    if target.average_utilization is not None and request is None:
        raise ModelError(
            f"{where}: a utilization needs to know what one pod requests: add --request {resource}=QUANTITY"
        )
    known = model.capacity.get(column, model.capacity.get(resource or column))
    return Metered(
        column,
        is_per_pod=spec.type not in {MetricSourceType.OBJECT, MetricSourceType.EXTERNAL},
        target=_per_pod(target, request),
        capacity=request if known is None else known,
        most_shown=known if resource else None,
    )


def _column(spec: MetricSpec, where: str, trace: Trace) -> str:
    wanted = tuple(_names(spec))
    for name in wanted:
        if name in trace.columns:
            return name
    raise ModelError(
        f"{where}: the trace has no column {' or '.join(wanted)}; its columns are {', '.join(trace.columns)}"
    )


def _names(spec: MetricSpec) -> list[str]:
    """Return the columns that may feed a metric, the most exact first."""
    if spec.container_resource is not None:
        source = spec.container_resource
        return [f"{source.container}/{source.name}", source.name]
    if spec.resource is not None:
        return [spec.resource.name]
    metric = _identifier(spec)
    if metric.selector is None:
        return [metric.name]
    return [f"{metric.name}{{{Selector.from_label_selector(metric.selector)}}}", metric.name]


def _identifier(spec: MetricSpec) -> MetricIdentifier:
    source = spec.pods or spec.object or spec.external
    return MetricIdentifier() if source is None else source.metric


def _resource(spec: MetricSpec) -> str:
    source = spec.resource or spec.container_resource
    return source.name if source else ""


def _target(spec: MetricSpec) -> MetricTarget:
    source = spec.resource or spec.container_resource or spec.pods or spec.object or spec.external
    return source.target if source else MetricTarget()


def _per_pod(target: MetricTarget, request: int | None) -> int | None:
    if target.average_utilization is not None and request is not None:
        return request * target.average_utilization // 100
    return None if target.average_value is None else target.average_value.milli_value()


def replicas_for(metrics: tuple[Metered, ...], trace: Trace, moment: float) -> int:
    """Return how many pods the load needs for each to be at its target; 0 if no target tells."""
    needs = map(partial(_need, trace, moment), metrics)
    return max(needs, default=0)


def _need(trace: Trace, moment: float, metric: Metered) -> int:
    load = trace.at(metric.column, moment)
    return -(-load // metric.target) if load and metric.target else 0
