"""The current rows of the overview, and their changes since an earlier version."""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from trimtab.dashboard.auth.rights import (
    AUTOSCALERS,
    HPAS,
    NATIVE_HPAS,
    NATIVE_VPAS,
    VPAS,
    Kind,
    KindInNamespace,
    Visible,
)
from trimtab.dashboard.pages.views import (
    Changes,
    HorizontalRow,
    KindView,
    Notice,
    Overview,
    ProgramView,
    Row,
    VerticalRow,
)
from trimtab.dashboard.sources import Sources

_MAX_REMOVED: Final = 10_000
_SOME_PROBLEM: Final = Notice(
    text="This program cannot read a part of the cluster. Autoscalers may be missing or old.", is_problem=True
)
"""Replaces problems for viewers of some namespaces, because a problem may name other namespaces."""
_UNREACHABLE: Final = Notice(text="The cluster cannot be reached.", is_problem=True)


class _Entry(NamedTuple):
    version: int
    """When the row last changed."""
    added_at: int
    listing: KindInNamespace
    row: Row


class _Removed(NamedTuple):
    version: int
    added_at: int
    listing: KindInNamespace


class OverviewCache:
    """Rows by id, each with the version at which it last changed."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._program: tuple[int, ProgramView] = (0, ProgramView())
        self._entries: dict[str, _Entry] = {}
        self._removed: dict[str, _Removed] = {}
        self._changed_at = 0
        self._refreshed = asyncio.Event()
        self.version = 0
        """The number of refreshes so far."""

    def refresh(self) -> None:
        """Read the rows and notices again, and wake waiting streams."""
        self.version += 1
        program = self._sources.program()
        if program != self._program[1]:
            self._program = (self.version, program)
        listed: list[Row] = [*self._sources.horizontal.rows(), *self._sources.vertical.rows()]
        before, self._entries = self._entries, {}
        for row in listed:
            known = before.get(row.id)
            if known is None or known.row != row:
                added_at = self.version if known is None else known.added_at
                known = _Entry(self.version, added_at, listing_of(row), row)
                self._changed_at = self.version
            self._entries[row.id] = known
        for identity in sorted(before.keys() - self._entries.keys()):
            self._remove(identity, before[identity])
        self._refreshed.set()
        self._refreshed = asyncio.Event()

    def _remove(self, identity: str, entry: _Entry) -> None:
        earlier = self._removed.pop(identity, None)
        added_at = entry.added_at if earlier is None else earlier.added_at
        self._removed[identity] = _Removed(self.version, added_at, entry.listing)
        self._changed_at = self.version
        if len(self._removed) > _MAX_REMOVED:
            self._removed.pop(next(iter(self._removed)))

    async def wait(self) -> None:
        """Wait for the next refresh."""
        await self._refreshed.wait()

    def listings(self) -> set[KindInNamespace]:
        """Return every kind and namespace with an autoscaler."""
        return {entry.listing for entry in self._entries.values()}

    def overview(self, visible: Visible) -> Overview:
        """Return the rows that a viewer may see."""
        rows = [entry.row for entry in self._entries.values() if visible.covers(entry.listing)]
        horizontal, vertical = _divide(rows)
        return Overview(
            program=_for_viewer(self._program[1], visible),
            horizontal=horizontal,
            vertical=vertical,
            horizontal_limit=_limit(visible, HPAS, NATIVE_HPAS),
            vertical_limit=_limit(visible, VPAS, NATIVE_VPAS),
        )

    def changes_since(self, version: int, before: Visible, now: Visible) -> Changes:
        """Return the rows that changed after a version, and the ids of those that are gone.

        A right that was granted or revoked since changes what the viewer sees, too. Only ids that the viewer has seen are
        named. An id can be gone and new at once.
        """
        changed_at, program = self._program
        is_told = changed_at > version or bool(before.everywhere) != bool(now.everywhere)
        changes = Changes(program=_for_viewer(program, now) if is_told else None)
        if version >= self._changed_at and before == now:
            return changes
        changed: list[Row] = []
        removed = [
            identity
            for identity, (at, added_at, listing) in self._removed.items()
            if added_at <= version < at and before.covers(listing)
        ]
        for identity, (at, added_at, listing, row) in self._entries.items():
            was_shown = added_at <= version and before.covers(listing)
            is_shown = now.covers(listing)
            if is_shown and (at > version or not was_shown):
                changed.append(row)
            elif was_shown and not is_shown:
                removed.append(identity)
        horizontal, vertical = _divide(changed)
        return msgspec.structs.replace(
            changes, horizontal=horizontal, vertical=vertical, removed=tuple(sorted(removed))
        )


def listing_of(row: Row) -> KindInNamespace:
    """Return the kind and namespace of a row."""
    return KindInNamespace(AUTOSCALERS[row.id.partition("/")[0]], row.namespace)


def _divide(rows: Iterable[Row]) -> tuple[tuple[HorizontalRow, ...], tuple[VerticalRow, ...]]:
    ordered = sorted(rows, key=lambda row: row.id)
    return (
        tuple(row for row in ordered if isinstance(row, HorizontalRow)),
        tuple(row for row in ordered if isinstance(row, VerticalRow)),
    )


def _for_viewer(program: ProgramView, visible: Visible) -> ProgramView:
    """Return the parts that a viewer may see. Problems and hints may name other namespaces."""
    if visible.everywhere:
        return program
    notices = [notice for notice in program.notices if not notice.is_problem]
    if program.data_at is not None:
        notices.append(_UNREACHABLE)
    elif len(notices) < len(program.notices):
        notices.append(_SOME_PROBLEM)
    return ProgramView(
        notices=tuple(notices),
        data_at=program.data_at,
        horizontal=KindView(is_read=program.horizontal.is_read),
        vertical=KindView(is_read=program.vertical.is_read),
    )


def _limit(visible: Visible, *kinds: Kind) -> str:
    """Return why not all autoscalers are shown, or an empty text."""
    missing = [str(kind) for kind in kinds if kind not in visible.everywhere]
    if not missing:
        return ""
    return f"Shown are the namespaces in which you may list {' or '.join(missing)}."
