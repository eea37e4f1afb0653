"""The protocol of sources, and the values they return."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from trimtab.adapter.api.health import Health
from trimtab.adapter.api.requests import CustomMetricQuery, ExternalMetricQuery, MetricQuery
from trimtab.model.quantity import Quantity


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
    """Returns values, or raises an AdapterError."""

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
