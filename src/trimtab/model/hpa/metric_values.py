"""Current values and targets of an HPA's metrics as text, as `kubectl get hpa` writes them: `cpu 45%/50%`."""

from collections import Counter
from collections.abc import Sequence

from trimtab.model.core.pod import MEMORY
from trimtab.model.hpa.metric_names import label_of, name_of
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
)
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity
from trimtab.model.readable import quantity_of_bytes

MOST_IN_A_COLUMN = 2
"""How many metrics `kubectl get hpa` shows of an HPA."""
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
    return _readings(hpa.spec.metrics, hpa.status.current_metrics)


def targets_text(metrics: Sequence[MetricSpec], statuses: tuple[MetricStatus, ...]) -> str:
    """Return the values beside their targets for a column of `kubectl get`, as `cpu: 45%/50%, jobs: 3/10 + 1 more...`."""
    shown, left = metrics[:MOST_IN_A_COLUMN], len(metrics) - MOST_IN_A_COLUMN
    names = Counter(map(name_of, shown))
    text = ", ".join(
        f"{reading.name if names[name_of(metric)] > 1 else name_of(metric)}: {reading.current}/{reading.target}"
        for metric, reading in zip(shown, _readings(metrics, statuses), strict=False)
    )
    return f"{text} + {left} more..." if left > 0 else text


def _readings(metrics: Sequence[MetricSpec], statuses: tuple[MetricStatus, ...]) -> tuple[MetricReading, ...]:
    return tuple(_reading(metric, status_of(metric, index, statuses)) for index, metric in enumerate(metrics))


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


def status_of(metric: MetricSpec, index: int, statuses: tuple[MetricStatus, ...]) -> MetricStatus:
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
            name=name,
            current=_text(metric, current.average_value, target.average_value),
            target=f"{_text(metric, target.average_value, target.average_value)} (avg)",
        )
    return MetricReading(
        name=name,
        current=_text(metric, current.value, target.value),
        target=_text(metric, target.value, target.value),
    )


def target_of(metric: MetricSpec) -> MetricTarget:
    """Return the target of a metric, which is empty if the spec names no source."""
    source = metric.resource or metric.container_resource or metric.pods or metric.object or metric.external
    return MetricTarget() if source is None else source.target


def current_of(status: MetricStatus) -> MetricValueStatus:
    """Return the value of a metric, which is empty if it could not be read."""
    read = status.resource or status.container_resource or status.pods or status.object or status.external
    return MetricValueStatus() if read is None else read.current


def _text(metric: MetricSpec, value: Quantity | None, target: Quantity | None) -> str:
    """Return a value in the notation of its target. Memory is written in binary units in any case."""
    if value is None:
        return UNKNOWN
    is_binary = target is not None and target.format == "BinarySI"
    return quantity_of_bytes(value) if is_binary or name_of(metric) == MEMORY else str(value)
