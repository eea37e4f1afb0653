"""The protocol of everything that gives values, and the values themselves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from trimtab.adapter.api.health import Health
from trimtab.adapter.api.requests import CustomQuestion, ExternalQuestion, Question
from trimtab.model.quantity import Quantity


@dataclass(frozen=True, slots=True)
class CustomSample:
    """The value of a custom metric for one object; of a rate, the window that it was taken over."""

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
    """A custom metric that can be asked for."""

    resource: str
    metric: str
    is_namespaced: bool = True


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What a source offers at the moment, for discovery."""

    custom: frozenset[Offer] = field(default_factory=frozenset)
    external: frozenset[str] = field(default_factory=frozenset)

    def __or__(self, other: "Catalogue") -> "Catalogue":
        return Catalogue(self.custom | other.custom, self.external | other.external)


class Source(Protocol):
    """Gives values; raises an AdapterError where it has none."""

    @property
    def name(self) -> str:
        """Return the name that the configuration gives it."""
        ...

    def serves(self, question: Question) -> bool:
        """Return whether this source is responsible for the question's metric."""
        ...

    def catalogue(self) -> Catalogue:
        """Return what can be asked for at the moment."""
        ...

    def health(self) -> Iterable[Health]:
        """Return the state of the source and of each of its rules."""
        ...

    async def custom(self, question: CustomQuestion) -> Sequence[CustomSample]:
        """Return at most one value per object."""
        ...

    async def external(self, question: ExternalQuestion) -> Sequence[ExternalSample]:
        """Return the series that match."""
        ...

    async def run(self) -> None:
        """Keep up to date until cancelled."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
