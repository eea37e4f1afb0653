"""What the dashboard shows, read from a running operator or from the cluster.

This module declares the protocols that `web` uses. Reading order: `horizontal` (HPAs) with `history` (their past),
`vertical` (VPAs), `remote` (state of loops in other processes), `operator_settings` (their settings),
`operator_presence` (whether they run), `cluster_health`
(what can be read), `lab_load`.

What does not belong here: words and layout of pages (`pages`) and HTTP (`web`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.dashboard.auth.rights import NamespaceRights
from trimtab.dashboard.pages.views import (
    HorizontalPage,
    HorizontalRow,
    LoadView,
    ProgramView,
    VerticalPage,
    VerticalRow,
)
from trimtab.decide.horizontal import Record


class HorizontalSource(Protocol):
    """Returns the HPAs and their decisions."""

    def refresh(self) -> None:
        """Record the decisions since the last call. The app calls it once a second."""
        ...

    def rows(self) -> Sequence[HorizontalRow]:
        """Return every HPA, sorted by id."""
        ...

    async def page(self, identity: str, rights: NamespaceRights) -> HorizontalPage | None:
        """Return the parts of an HPA's page that a viewer may see, or None if there is no such HPA."""
        ...

    async def record(self, identity: str) -> Record | None:
        """Return the last decision with its observation and the owners of its pods, for the what-if."""
        ...


class VerticalSource(Protocol):
    """Returns the VPAs."""

    def rows(self) -> Sequence[VerticalRow]:
        """Return every VPA, sorted by id."""
        ...

    async def page(self, identity: str, rights: NamespaceRights) -> VerticalPage | None:
        """Return the parts of a VPA's page that a viewer may see, or None if there is no such VPA."""
        ...


class Controls(Protocol):
    """Loads that a viewer can change."""

    def loads(self) -> Sequence[LoadView]:
        """Return every load with its current factor."""
        ...

    async def set_factor(self, name: str, factor: float) -> None:
        """Multiply a load by `factor` from now on. Raise KeyError if there is no such load."""
        ...


class NoVertical:
    """A program without VPAs."""

    def rows(self) -> Sequence[VerticalRow]:
        """Return nothing."""
        return ()

    async def page(self, identity: str, rights: NamespaceRights) -> VerticalPage | None:
        """Return nothing."""
        del identity, rights
        return None


@dataclass(frozen=True)
class Sources:
    """All sources of one dashboard."""

    horizontal: HorizontalSource
    vertical: VerticalSource = field(default_factory=NoVertical)
    program: Callable[[], ProgramView] = ProgramView
    """Returns what the program can read."""
