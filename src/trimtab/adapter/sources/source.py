"""The protocol of sources, the values they return, and how several series of one object become one value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from trimtab.adapter.api.health import Health
from trimtab.adapter.api.requests import CustomMetricQuery, ExternalMetricQuery, MetricQuery
from trimtab.model.quantity import Quantity
from trimtab.model.status import StatusError


@dataclass(frozen=True, slots=True)
class CustomSample:
    """The value of a custom metric for one object. A rate has a window."""

    name: str
    value: Quantity
    timestamp: datetime
    window_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class ExternalSample:
    """The value of one series of an external metric."""

    labels: Mapping[str, str]
    value: Quantity
    timestamp: datetime
    window_seconds: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Offer:
    """A custom metric that can be queried."""

    resource: str
    metric: str
    is_namespaced: bool = True


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The metrics that a source serves at the moment, for discovery."""

    custom: frozenset[Offer] = field(default_factory=frozenset)
    external: frozenset[str] = field(default_factory=frozenset)

    def __or__(self, other: "Catalogue") -> "Catalogue":
        return Catalogue(self.custom | other.custom, self.external | other.external)


class Source(Protocol):
    """Returns values, or raises a StatusError."""

    @property
    def name(self) -> str:
        """Return the name of the source in the configuration."""
        ...

    def serves(self, query: MetricQuery) -> bool:
        """Return whether this source serves the metric of the query."""
        ...

    def catalogue(self) -> Catalogue:
        """Return the metrics that can be queried at the moment."""
        ...

    def health(self) -> Iterable[Health]:
        """Return the state of the source and of each of its rules."""
        ...

    async def custom(self, query: CustomMetricQuery) -> Sequence[CustomSample]:
        """Return at most one value per object."""
        ...

    async def external(self, query: ExternalMetricQuery) -> Sequence[ExternalSample]:
        """Return the series that match."""
        ...

    async def run(self) -> None:
        """Keep rules, files and discovery up to date until cancelled."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


class Collapse(StrEnum):
    """How several series of one object are reduced to one value."""

    SUM = "sum"
    AVERAGE = "average"
    MAX = "max"
    MIN = "min"
    REFUSE = "refuse"


def collapse(samples: Sequence[CustomSample], how: Collapse) -> list[CustomSample]:
    """Return one sample per object, sorted by name. Its time is that of the oldest series."""
    by_name: dict[str, list[CustomSample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    return [_reduce(by_name[name], how) for name in sorted(by_name)]


def _reduce(samples: Sequence[CustomSample], how: Collapse) -> CustomSample:
    first = samples[0]
    if len(samples) == 1:
        return first
    if how is Collapse.REFUSE:
        raise StatusError(
            503,
            f"{len(samples)} series match {first.name}; narrow the selector or let the rule collapse them",
        )
    windows = [sample.window_seconds for sample in samples if sample.window_seconds is not None]
    return CustomSample(
        first.name,
        _value([sample.value for sample in samples], how),
        min(sample.timestamp for sample in samples),
        max(windows, default=None),
    )


def _value(values: Sequence[Quantity], how: Collapse) -> Quantity:
    match how:
        case Collapse.MAX:
            return max(values)
        case Collapse.MIN:
            return min(values)
        case _:
            total = sum(value.nanos for value in values)
            return Quantity(total if how is Collapse.SUM else total // len(values), values[0].format)
