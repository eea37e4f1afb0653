"""Current values and targets of an HPA's metrics as text, as `kubectl get hpa` writes them: `cpu 45%/50%`."""

from trimtab.model.hpa.metric_names import label_of
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
)
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity

UNKNOWN = "<unknown>"
"""The value of a metric that was not read yet, or cannot be read."""


class MetricReading(Wire, frozen=True):
    """The last value of one metric beside its target, in the same unit."""

    name: str
    current: str
    target: str

    def __str__(self) -> str:
        return f"{self.name} {self.current}/{self.target}"


def metric_readings(hpa: HorizontalPodAutoscaler) -> tuple[MetricReading, ...]:
    """Return a reading per metric of the spec, in its order."""
    return tuple(
        _reading(metric, _status_of(metric, index, hpa.status.current_metrics))
        for index, metric in enumerate(hpa.spec.metrics)
    )


def identity_of(metric: MetricSpec | MetricStatus) -> tuple[object, ...]:
    """Return what identifies a metric beside its value and its target."""
    named = metric.pods or metric.object or metric.external
    measured = metric.resource or metric.container_resource
    return (
        metric.type,
        named and named.metric,
        metric.object and metric.object.described_object,
        measured and measured.name,
        metric.container_resource and metric.container_resource.container,
    )


def _status_of(metric: MetricSpec, index: int, statuses: tuple[MetricStatus, ...]) -> MetricStatus:
    """Return the entry of this metric, preferably at its place, or an empty one.

    The places may differ: an entry may be missing, or the status may be older than the spec.
    """
    wanted = identity_of(metric)
    candidates = (*statuses[index : index + 1], *statuses)
    return next((status for status in candidates if identity_of(status) == wanted), MetricStatus())


def _reading(metric: MetricSpec, status: MetricStatus) -> MetricReading:
    name, target, current = label_of(metric), target_of(metric), current_of(status)
    if target.average_utilization is not None:
        value = UNKNOWN if current.average_utilization is None else f"{current.average_utilization}%"
        return MetricReading(name=name, current=value, target=f"{target.average_utilization}%")
    if target.average_value is not None:
        return MetricReading(
            name=name, current=_text(current.average_value), target=f"{target.average_value} (avg)"
        )
    return MetricReading(name=name, current=_text(current.value), target=_text(target.value))


def target_of(metric: MetricSpec) -> MetricTarget:
    """Return the target of a metric, which is empty if the spec names no source."""
    source = metric.resource or metric.container_resource or metric.pods or metric.object or metric.external
    return MetricTarget() if source is None else source.target


def current_of(status: MetricStatus) -> MetricValueStatus:
    """Return the value of a metric, which is empty if it could not be read."""
    read = status.resource or status.container_resource or status.pods or status.object or status.external
    return MetricValueStatus() if read is None else read.current


def _text(value: Quantity | None) -> str:
    return UNKNOWN if value is None else str(value)
