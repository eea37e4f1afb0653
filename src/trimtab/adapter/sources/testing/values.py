"""Values set by hand: their file format and the table that stores them.

A series is identified by its metric, its object (or namespace) and its labels. Setting it again replaces it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from trimtab.adapter.errors import ConfigurationError
from trimtab.adapter.files import ConfigSection, convert, read_document
from trimtab.model.quantity import Quantity, QuantityError

KIND = "MetricValues"
MAX_SERIES = 100_000


class ManualValue(ConfigSection):
    """The value of one series."""

    metric: str
    value: str | int | float
    labels: dict[str, str] = {}
    """Labels that metric selectors match."""
    timestamp: datetime | None = None
    """When it was measured. Default: the time of the query."""
    window_seconds: int | None = None


class CustomValue(ManualValue, kw_only=True):
    """The value of one series of a custom metric."""

    name: str
    resource: str = "pods"
    namespace: str = ""
    object_labels: dict[str, str] | None = None
    """The object's own labels, for queries of `*`. Default: its labels in the cluster."""


class ExternalValue(ManualValue, kw_only=True):
    """The value of one series of an external metric."""

    namespace: str


class MetricValueFile(ConfigSection):
    """The values of a file or of an HTTP body."""

    custom: tuple[CustomValue, ...] = ()
    external: tuple[ExternalValue, ...] = ()


Value = CustomValue | ExternalValue
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """A value that was set, with its quantity parsed."""

    labels: Mapping[str, str]
    value: Quantity
    setting: Value

    def timestamp(self, now: datetime) -> datetime:
        """Return when the value was measured."""
        return self.setting.timestamp or now


def object_labels(points: Mapping[Labels, MetricPoint]) -> Mapping[str, str] | None:
    """Return the object's labels that were set with its values, or None."""
    for point in points.values():
        if isinstance(point.setting, CustomValue) and point.setting.object_labels is not None:
            return point.setting.object_labels
    return None


@dataclass(slots=True)
class MetricTable:
    """All series, indexed by metric and namespace, then by object."""

    custom: dict[tuple[str, str, str], dict[str, dict[Labels, MetricPoint]]] = field(default_factory=dict)
    external: dict[tuple[str, str], dict[Labels, MetricPoint]] = field(default_factory=dict)
    count: int = 0

    def put(self, value: Value) -> None:
        """Set the value of one series."""
        point = MetricPoint(value.labels, _quantity(value), _in_utc(value))
        points = self._points(value, create=True)
        assert points is not None, "created if it was missing"
        key = _key(value)
        if key not in points:
            if self.count >= MAX_SERIES:
                raise ConfigurationError(f"more than {MAX_SERIES} series")
            self.count += 1
        points[key] = point

    def put_all(self, values: MetricValueFile) -> None:
        """Set all values of a file or HTTP body."""
        series: tuple[Value, ...] = (*values.custom, *values.external)
        for value in series:
            self.put(value)

    def remove(self, value: Value) -> bool:
        """Delete one series and return whether it existed. A metric without series is not served any more."""
        points = self._points(value, create=False)
        if points is None or points.pop(_key(value), None) is None:
            return False
        self.count -= 1
        if not points:
            self._remove_empty(value)
        return True

    def _remove_empty(self, value: Value) -> None:
        if isinstance(value, ExternalValue):
            del self.external[(value.metric, value.namespace)]
            return
        key = (value.metric, value.resource, value.namespace)
        del self.custom[key][value.name]
        if not self.custom[key]:
            del self.custom[key]

    def points(self) -> Iterator[MetricPoint]:
        """Yield every series."""
        for objects in self.custom.values():
            for points in objects.values():
                yield from points.values()
        for points in self.external.values():
            yield from points.values()

    def _points(self, value: Value, *, create: bool) -> dict[Labels, MetricPoint] | None:
        if isinstance(value, ExternalValue):
            metric = (value.metric, value.namespace)
            return self.external.setdefault(metric, {}) if create else self.external.get(metric)
        key = (value.metric, value.resource, value.namespace)
        objects = self.custom.setdefault(key, {}) if create else self.custom.get(key, {})
        return objects.setdefault(value.name, {}) if create else objects.get(value.name)


def load_table(path: Path) -> MetricTable:
    """Load a values file."""
    table = MetricTable()
    table.put_all(convert(read_document(path, KIND), MetricValueFile, str(path)))
    return table


def as_json(points: Sequence[MetricPoint]) -> dict[str, Any]:
    """Return values in the form of the file."""
    custom = [point.setting for point in points if isinstance(point.setting, CustomValue)]
    external = [point.setting for point in points if isinstance(point.setting, ExternalValue)]
    data: dict[str, Any] = msgspec.to_builtins(
        MetricValueFile(custom=tuple(custom), external=tuple(external))
    )
    return data


def _key(value: Value) -> Labels:
    return tuple(sorted(value.labels.items()))


def _quantity(value: Value) -> Quantity:
    try:
        return Quantity.parse(value.value if isinstance(value.value, str) else repr(value.value))
    except QuantityError as error:
        raise ConfigurationError(f"{value.metric}: value {value.value!r}: {error}") from error


def _in_utc(value: Value) -> Value:
    if value.timestamp is None or value.timestamp.tzinfo is not None:
        return value
    return msgspec.structs.replace(value, timestamp=value.timestamp.replace(tzinfo=UTC))
