"""What the dashboard asks of the program it shows: a source of autoscalers and, where there are any, load controls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.dashboard.pages.views import (
    HorizontalPage,
    HorizontalRow,
    LoadView,
    Notice,
    VerticalPage,
    VerticalRow,
)
from trimtab.decide.horizontal import Record


class HorizontalSource(Protocol):
    """Knows the HPAs."""

    def take(self) -> None:
        """Note what was decided since the last call; called about once a second."""
        ...

    def rows(self) -> Sequence[HorizontalRow]:
        """Return every HPA, by id."""
        ...

    async def page(self, identity: str) -> HorizontalPage | None:
        """Return everything about one HPA; None if there is none of that id."""
        ...

    async def record(self, identity: str) -> Record | None:
        """Return the last decision with its observation and the owners of its pods, for the what-if."""
        ...


class VerticalSource(Protocol):
    """Knows the VPAs."""

    def rows(self) -> Sequence[VerticalRow]:
        """Return every VPA, by id."""
        ...

    async def page(self, identity: str) -> VerticalPage | None:
        """Return everything about one VPA; None if there is none of that id."""
        ...


class Controls(Protocol):
    """Loads that a person can turn up and down."""

    def loads(self) -> Sequence[LoadView]:
        """Return every load with its present factor."""
        ...

    async def set_factor(self, name: str, factor: float) -> None:
        """Multiply a load by `factor` from now on; KeyError if there is none of that name."""
        ...


class NoVertical:
    """A program without VPAs."""

    def rows(self) -> Sequence[VerticalRow]:
        """Return nothing."""
        return ()

    async def page(self, identity: str) -> VerticalPage | None:
        """Return nothing."""
        del identity
        return None


@dataclass(frozen=True)
class Sources:
    """All that a dashboard shows."""

    horizontal: HorizontalSource
    vertical: VerticalSource = field(default_factory=NoVertical)
    notices: Callable[[], tuple[Notice, ...]] = tuple
    """What is told at the top of every page."""
