"""The overview as it is now, and what changed since a viewer last looked."""

import asyncio
from collections.abc import Iterable

from trimtab.dashboard.pages.views import (
    HorizontalRow,
    Notice,
    Overview,
    Row,
    VerticalRow,
)
from trimtab.dashboard.sources import Sources


class Board:
    """Rows by id, each with the number of the look at which it last changed."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._notices: tuple[int, tuple[Notice, ...]] = (0, ())
        self._rows: dict[str, tuple[int, Row]] = {}
        self._gone: dict[str, int] = {}
        self._looks = 0
        self._news = asyncio.Event()

    @property
    def looks(self) -> int:
        """Return how often the board was brought up to date."""
        return self._looks

    def look(self) -> None:
        """Bring the board up to date and wake those who wait."""
        self._looks += 1
        notices = self._sources.notices()
        if notices != self._notices[1]:
            self._notices = (self._looks, notices)
        rows: dict[str, Row] = {row.id: row for row in self._all()}
        for gone in self._rows.keys() - rows.keys():
            self._gone[gone] = self._looks
        before, self._rows = self._rows, {}
        for identity, row in rows.items():
            known = before.get(identity)
            self._rows[identity] = known if known is not None and known[1] == row else (self._looks, row)
            self._gone.pop(identity, None)
        while len(self._gone) > 10_000:
            self._gone.pop(next(iter(self._gone)))
        self._news.set()
        self._news = asyncio.Event()

    async def wait(self) -> None:
        """Wait for the next look."""
        await self._news.wait()

    def namespaces(self) -> frozenset[str]:
        """Return every namespace that has an autoscaler."""
        return frozenset(row.namespace for _, row in self._rows.values())

    def overview(self, namespaces: frozenset[str]) -> Overview:
        """Return everything in some namespaces."""
        rows = (row for _, row in self._rows.values() if row.namespace in namespaces)
        return _sorted(rows, self._notices[1])

    def notices_since(self, look: int) -> tuple[Notice, ...] | None:
        """Return what is to be known about the program; None if that did not change after a look."""
        at, notices = self._notices
        return notices if at > look else None

    def since(self, look: int, namespaces: frozenset[str]) -> tuple[Overview, tuple[str, ...]]:
        """Return the rows that changed after a look, and the ids that are gone since."""
        changed = (row for at, row in self._rows.values() if at > look and row.namespace in namespaces)
        gone = tuple(identity for identity, at in self._gone.items() if at > look)
        return _sorted(changed, ()), gone

    def _all(self) -> Iterable[Row]:
        yield from self._sources.horizontal.rows()
        yield from self._sources.vertical.rows()


def _sorted(rows: Iterable[Row], notices: tuple[Notice, ...]) -> Overview:
    ordered = sorted(rows, key=lambda row: row.id)
    return Overview(
        notices=notices,
        horizontal=tuple(row for row in ordered if isinstance(row, HorizontalRow)),
        vertical=tuple(row for row in ordered if isinstance(row, VerticalRow)),
    )
