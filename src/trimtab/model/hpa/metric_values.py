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
    statuses = hpa.status.current_metrics
    return tuple(
        _reading(metric, statuses[index] if index < len(statuses) else MetricStatus())
        for index, metric in enumerate(hpa.spec.metrics)
    )


def _reading(metric: MetricSpec, status: MetricStatus) -> MetricReading:
    name, target, current = label_of(metric), _target_of(metric), _current_of(status)
    if target.average_utilization is not None:
        value = UNKNOWN if current.average_utilization is None else f"{current.average_utilization}%"
        return MetricReading(name=name, current=value, target=f"{target.average_utilization}%")
    if target.average_value is not None:
        return MetricReading(
            name=name, current=_text(current.average_value), target=f"{target.average_value} (avg)"
        )
    return MetricReading(name=name, current=_text(current.value), target=_text(target.value))


def _target_of(metric: MetricSpec) -> MetricTarget:
    source = metric.resource or metric.container_resource or metric.pods or metric.object or metric.external
    return MetricTarget() if source is None else source.target


def _current_of(status: MetricStatus) -> MetricValueStatus:
    read = status.resource or status.container_resource or status.pods or status.object or status.external
    return MetricValueStatus() if read is None else read.current


def _text(value: Quantity | None) -> str:
    return UNKNOWN if value is None else str(value)
