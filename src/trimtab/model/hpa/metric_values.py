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
    source = metric.resource or metric.container_resource or metric.pods or metric.object or metric.external
    target = source.target if source is not None else MetricTarget()
    read = status.resource or status.container_resource or status.pods or status.object or status.external
    current = read.current if read is not None else MetricValueStatus()
    if target.average_utilization is not None:
        value = UNKNOWN if current.average_utilization is None else f"{current.average_utilization}%"
        return MetricReading(name=label_of(metric), current=value, target=f"{target.average_utilization}%")
    wanted, found = (
        (target.average_value, current.average_value)
        if target.average_value is not None
        else (target.value, current.value)
    )
    per_pod = " (avg)" if target.average_value is not None else ""
    return MetricReading(
        name=label_of(metric),
        current=UNKNOWN if found is None else str(found),
        target=f"{UNKNOWN if wanted is None else wanted}{per_pod}",
    )
