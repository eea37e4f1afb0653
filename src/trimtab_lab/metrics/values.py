"""The custom and external metric values of a lab, set by loads, by tests or over HTTP."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import EVERYTHING, Selector
from trimtab.model.metrics_api import DescribedObject
from trimtab.model.quantity import Quantity
from trimtab.model.series_table import Metric, SeriesTable
from trimtab_lab.load.plan import MetricCurve

Number = int | float | str
_MILLIS = 1000
Identity = tuple[Metric, tuple[Any, ...]]
"""A metric, and the series of it."""


class SeriesValue(Wire, frozen=True):
    """A series with its latest value. Only custom metrics have an `object`."""

    name: str
    value: str
    timestamp: datetime
    namespace: str = ""
    labels: dict[str, str] = {}
    object: DescribedObject | None = None


class MetricValues:
    """The latest value of each series."""

    def __init__(self) -> None:
        self._values: SeriesTable[tuple[Any, ...], SeriesValue] = SeriesTable()
        self._of_pods: dict[tuple[str, tuple[str, str]], list[Identity]] = {}

    def set_external(
        self,
        name: str,
        value: Number,
        now: datetime,
        *,
        labels: Mapping[str, str] | None = None,
        namespace: str = "",
    ) -> None:
        quantity, labels = as_quantity(value), dict(labels or {})
        self.put(SeriesValue(name=name, value=quantity, timestamp=now, namespace=namespace, labels=labels))

    def set_custom(
        self,
        name: str,
        value: Number,
        now: datetime,
        *,
        described: DescribedObject,
        labels: Mapping[str, str] | None = None,
    ) -> Identity:
        """Set a metric of an object, such as a pod or an ingress, and return the identity of its series."""
        return self.put(
            SeriesValue(
                name=name,
                value=as_quantity(value),
                timestamp=now,
                namespace=described.namespace,
                labels=dict(labels or {}),
                object=described,
            )
        )

    def set_of_pods(
        self, name: str, workload: tuple[str, str], values: Mapping[str, float], now: datetime
    ) -> None:
        """Set a metric of all pods of a workload. Pods that are gone have no value any more."""
        before = self._of_pods.get((name, workload), ())
        for key in before:
            self._values.remove(*key)
        described = [
            (DescribedObject(kind="Pod", api_version="v1", namespace=workload[0], name=pod), value)
            for pod, value in values.items()
        ]
        self._of_pods[name, workload] = [
            self.set_custom(name, value, now, described=pod) for pod, value in described
        ]

    def set_series(self, series: MetricCurve, value: float, now: datetime) -> None:
        """Set the value of a series of a load plan."""
        if series.object is not None:
            self.set_custom(series.name, value, now, described=series.object, labels=series.labels)
        else:
            self.set_external(series.name, value, now, labels=series.labels, namespace=series.namespace)

    def put(self, value: SeriesValue) -> Identity:
        """Replace the value of a series, and return its identity."""
        identity = _identity(value)
        self._values.put(*identity, value)
        return identity

    def remove(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Remove all series of a metric, or only the series with these labels."""
        for value in list(self._values):
            if value.name == name and (labels is None or value.labels == dict(labels)):
                self._values.remove(*_identity(value))

    def all(self) -> list[SeriesValue]:
        """Return the values of all series, in a fixed order."""
        return sorted(self._values, key=_identity)

    def external(self, namespace: str, name: str, selector: Selector = EVERYTHING) -> list[SeriesValue]:
        return [value for place in sorted({"", namespace}) for value in self._of((name, "", place), selector)]

    def custom(
        self, namespace: str, kind: str, name: str, selector: Selector = EVERYTHING
    ) -> list[SeriesValue]:
        return self._of((name, kind.lower(), namespace), selector)

    def _of(self, metric: Metric, selector: Selector) -> list[SeriesValue]:
        found = sorted(self._values.of(metric).values(), key=_identity)
        return [value for value in found if selector.matches(value.labels)]


def as_quantity(value: Number) -> str:
    if isinstance(value, str):
        return str(Quantity.parse(value))
    return str(Quantity.from_milli(round(value * _MILLIS)))


def _identity(value: SeriesValue) -> Identity:
    described = value.object or DescribedObject()
    where = (described.api_version, described.kind, described.namespace, described.name)
    metric = value.name, described.kind.lower(), value.namespace
    return metric, (where, tuple(sorted(value.labels.items())))
