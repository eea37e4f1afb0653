"""The current rows of the overview, and their changes since an earlier version."""

import asyncio
from collections.abc import Iterable

from trimtab.dashboard.pages.views import HorizontalRow, Notice, Overview, Row, VerticalRow
from trimtab.dashboard.sources import Sources

_MAX_REMOVED = 10_000


class OverviewCache:
    """Rows by id, each with the version at which it last changed."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._notices: tuple[int, tuple[Notice, ...]] = (0, ())
        self._rows: dict[str, tuple[int, Row]] = {}
        self._removed: dict[str, int] = {}
        self._refreshed = asyncio.Event()
        self.version = 0
        """The number of refreshes so far."""

    def refresh(self) -> None:
        """Read the rows and notices again, and wake waiting streams."""
        self.version += 1
        notices = self._sources.notices()
        if notices != self._notices[1]:
            self._notices = (self.version, notices)
        listed: list[Row] = [*self._sources.horizontal.rows(), *self._sources.vertical.rows()]
        rows = {row.id: row for row in listed}
        for identity in self._rows.keys() - rows.keys():
            self._removed[identity] = self.version
        before, self._rows = self._rows, {}
        for identity, row in rows.items():
            known = before.get(identity)
            self._rows[identity] = known if known is not None and known[1] == row else (self.version, row)
            self._removed.pop(identity, None)
        while len(self._removed) > _MAX_REMOVED:
            self._removed.pop(next(iter(self._removed)))
        self._refreshed.set()
        self._refreshed = asyncio.Event()

    async def wait(self) -> None:
        """Wait for the next refresh."""
        await self._refreshed.wait()

    def namespaces(self) -> frozenset[str]:
        """Return every namespace with an autoscaler."""
        return frozenset(row.namespace for _, row in self._rows.values())

    def overview(self, namespaces: frozenset[str]) -> Overview:
        """Return all rows of some namespaces."""
        rows = (row for _, row in self._rows.values() if row.namespace in namespaces)
        return _sorted(rows, self._notices[1])

    def notices_since(self, version: int) -> tuple[Notice, ...] | None:
        """Return the notices, or None if they did not change after a version."""
        changed_at, notices = self._notices
        return notices if changed_at > version else None

    def changes_since(self, version: int, namespaces: frozenset[str]) -> tuple[Overview, tuple[str, ...]]:
        """Return the rows that changed after a version, and the ids removed since."""
        changed = (row for at, row in self._rows.values() if at > version and row.namespace in namespaces)
        removed = tuple(identity for identity, at in self._removed.items() if at > version)
        return _sorted(changed, ()), removed


def _sorted(rows: Iterable[Row], notices: tuple[Notice, ...]) -> Overview:
    ordered = sorted(rows, key=lambda row: row.id)
    return Overview(
        notices=notices,
        horizontal=tuple(row for row in ordered if isinstance(row, HorizontalRow)),
        vertical=tuple(row for row in ordered if isinstance(row, VerticalRow)),
    )
