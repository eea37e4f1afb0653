"""How the simulated workload behaves, and what each metric of an HPA means for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from trimtab.library.trace import Trace
from trimtab.model.hpa.metric_kinds import WAKING, identifier_of, measured_by, name_of, target_of
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    MetricSpec,
    MetricTarget,
)
from trimtab.model.labels.selector import Selector


class ModelError(ValueError):
    """The HPA, the trace and the model do not fit together. The message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Assumptions about the workload and about the delay of its metrics."""

    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests of one pod, by resource, in thousandths."""
    capacity: Mapping[str, int] = field(default_factory=dict)
    """Maximum load of one pod by metric, in thousandths. For a resource also the maximum usage it reports."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Limits of one pod, or of a container as `CONTAINER/memory`, in thousandths. Only VPAs need them."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """The price of a core-hour (`cpu`) and of a GiB-hour (`memory`)."""
    replicas: int | None = None
    """Replicas at the start. None: as many as the first row needs, within the HPA's bounds."""
    start_seconds: float = 30.0
    """From the creation of a pod until it is ready."""
    metrics_period: float = 15.0
    """Seconds between two measurements of usage."""
    metrics_delay: float = 15.0
    """Seconds until a measurement reaches the HPA."""
    sync_period: float = 15.0
    """Seconds between two syncs."""

    def __post_init__(self) -> None:
        """Reject times and amounts that no cluster has."""
        for name, lowest in {
            "start_seconds": 0,
            "metrics_period": 1,
            "metrics_delay": 0,
            "sync_period": 1,
            "replicas": 0,
        }.items():
            given = getattr(self, name)
            if given is not None and not lowest <= given < inf:
                raise ModelError(f"{name}: {given} must be a number of at least {lowest}")
        for name in ("requests", "limits", "capacity"):
            for resource, amount in getattr(self, name).items():
                if amount <= 0:
                    raise ModelError(f"{name}: {resource}: {amount / 1000:g} must be more than nothing")


@dataclass(frozen=True, slots=True)
class MetricModel:
    """A metric of the HPA: its column of the trace, and the load of one pod."""

    column: str
    is_per_pod: bool
    """Whether ready pods share the load. Otherwise the metric is a single number."""
    target: int | None
    """Target load of one pod, in thousandths. None if the target does not define it."""
    capacity: int | None
    """Maximum load of one pod, in thousandths, if known."""
    max_reported: int | None
    """Maximum usage that one pod reports, whatever its load."""
    resource: str = ""
    """The resource, if it is one."""
    container: str = ""
    """The container, if it is one container's resource."""


def model_metrics(hpa: HorizontalPodAutoscaler, trace: Trace, model: Model) -> tuple[MetricModel, ...]:
    """Return the model of each metric of the HPA.

    Raise ModelError if a column or a request is missing.
    """
    return tuple(
        _model_metric(spec, f"{hpa.key}: spec.metrics[{index}]", trace, model)
        for index, spec in enumerate(hpa.spec.metrics)
    )


def _model_metric(spec: MetricSpec, where: str, trace: Trace, model: Model) -> MetricModel:
    column = _column(spec, where, trace)
    target, (resource, container) = target_of(spec), measured_by(spec)
    request = model.requests.get(resource) if resource else None
    if target.average_utilization is not None and request is None:
        raise ModelError(
            f"{where}: a utilization needs to know what one pod requests: add --request {resource}=QUANTITY, "
            f"in Python requests={{{resource!r}: QUANTITY}}"
        )
    known = model.capacity.get(column, model.capacity.get(resource or column))
    return MetricModel(
        column,
        is_per_pod=spec.type not in WAKING,
        target=_per_pod(target, request),
        capacity=request if known is None else known,
        max_reported=known if resource else None,
        resource=resource,
        container=container,
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
    """Return the columns that a metric may use, the most specific first."""
    name, container, identifier = name_of(spec), measured_by(spec).container, identifier_of(spec)
    if container:
        return [f"{container}/{name}", name]
    if identifier is None or identifier.selector is None:
        return [name]
    return [f"{name}{{{Selector.from_label_selector(identifier.selector)}}}", name]


def _per_pod(target: MetricTarget, request: int | None) -> int | None:
    if target.average_utilization is not None and request is not None:
        return request * target.average_utilization // 100
    return None if target.average_value is None else target.average_value.milli_value()


def replicas_for(metrics: tuple[MetricModel, ...], trace: Trace, moment: float) -> int:
    """Return the replicas at which every pod is at its target, or 0 without such a target."""
    needed = 0
    for metric in metrics:
        load = trace.at(metric.column, moment)
        if load and metric.target:
            needed = max(needed, -(-load // metric.target))
    return needed
