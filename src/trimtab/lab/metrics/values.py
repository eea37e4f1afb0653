"""Custom and external metric values of a lab: series with labels, set by load models, by people or over HTTP."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import EVERYTHING, Selector
from trimtab.model.metrics_api import DescribedObject
from trimtab.model.quantity import Quantity

Number = int | float | str
_MILLIS = 1000


class SeriesName(Protocol):
    """The part of a series that does not change with time."""

    @property
    def name(self) -> str:
        """Return the metric's name."""
        ...

    @property
    def namespace(self) -> str:
        """Return where it can be asked for; empty means everywhere."""
        ...

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels."""
        ...

    @property
    def object(self) -> DescribedObject | None:
        """Return the object that it describes; None for an external metric."""
        ...


class SeriesValue(Wire, frozen=True):
    """One series with its latest value; `object` is set for custom metrics only."""

    name: str
    value: str
    timestamp: datetime
    namespace: str = ""
    labels: dict[str, str] = {}
    object: DescribedObject | None = None


class MetricValues:
    """The latest value of each series."""

    def __init__(self) -> None:
        self._samples: dict[tuple[Any, ...], SeriesValue] = {}

    def set_external(
        self,
        name: str,
        value: Number,
        now: datetime,
        *,
        labels: Mapping[str, str] | None = None,
        namespace: str = "",
    ) -> None:
        """Set one series of an external metric."""
        self.put(
            SeriesValue(
                name=name,
                value=as_quantity(value),
                timestamp=now,
                namespace=namespace,
                labels=dict(labels or {}),
            )
        )

    def set_custom(
        self,
        name: str,
        value: Number,
        now: datetime,
        *,
        described: DescribedObject,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Set the value of a metric of one object, such as a pod or an ingress."""
        self.put(
            SeriesValue(
                name=name,
                value=as_quantity(value),
                timestamp=now,
                namespace=described.namespace,
                labels=dict(labels or {}),
                object=described,
            )
        )

    def set_series(self, series: SeriesName, value: float, now: datetime) -> None:
        """Set the value of a series of a load plan."""
        if series.object is not None:
            self.set_custom(series.name, value, now, described=series.object, labels=series.labels)
        else:
            self.set_external(series.name, value, now, labels=series.labels, namespace=series.namespace)

    def put(self, sample: SeriesValue) -> None:
        """Keep a sample in place of the last one of its series."""
        self._samples[_identity(sample)] = sample

    def remove(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Forget the series of a metric, or only the one with these labels."""
        self._samples = {
            key: one
            for key, one in self._samples.items()
            if one.name != name or (labels is not None and one.labels != dict(labels))
        }

    def all(self) -> list[SeriesValue]:
        """Return every sample, in a fixed order."""
        return [self._samples[key] for key in sorted(self._samples)]

    def external(self, namespace: str, name: str, selector: Selector = EVERYTHING) -> list[SeriesValue]:
        """Return the series of an external metric that a namespace can see."""
        return [
            one
            for one in self.all()
            if one.object is None
            and one.name == name
            and one.namespace in ("", namespace)
            and selector.matches(one.labels)
        ]

    def custom(
        self, namespace: str, kind: str, name: str, selector: Selector = EVERYTHING
    ) -> list[SeriesValue]:
        """Return the values of a custom metric for all objects of a kind."""
        return [
            one
            for one in self.all()
            if one.object is not None
            and one.object.kind.lower() == kind.lower()
            and one.name == name
            and one.namespace == namespace
            and selector.matches(one.labels)
        ]


def as_quantity(value: Number) -> str:
    """Return a number as a quantity; fractions are kept to the thousandth."""
    if isinstance(value, str):
        return str(Quantity.parse(value))
    return str(Quantity.from_milli(round(value * _MILLIS)))


def _identity(one: SeriesValue) -> tuple[Any, ...]:
    described = one.object or DescribedObject()
    where = (described.api_version, described.kind, described.namespace, described.name)
    return (one.name, one.namespace, where, tuple(sorted(one.labels.items())))
