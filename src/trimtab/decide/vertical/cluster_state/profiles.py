"""Profiles: the history of a VPA's container, merged from its aggregates and its loaded history."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import AggregateTable
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.histogram.buckets import Ints

_BATCH: Final = 4096
"""Profiles per merge: enough to make arrays worthwhile, few enough to keep copies small."""


@dataclass(frozen=True)
class Profile:
    """A container of a VPA and the aggregates that make up its history."""

    vpa: str
    container: str
    members: tuple[int, ...]
    """Rows of the aggregate table, in merge order."""


def profiles_of(vpa: VPAState) -> tuple[Profile, ...]:
    """Return the profiles of a VPA, sorted by container. Loaded history is merged last."""
    members: dict[str, list[int]] = {}
    # Sorted, so that the same input gives the same bits.
    for key, aggregate in sorted(vpa.aggregates.items(), key=itemgetter(0)):
        members.setdefault(key.container, []).append(aggregate.row)
    for container, aggregate in sorted(vpa.initial.items()):
        members.setdefault(container, []).append(aggregate.row)
    return tuple(Profile(vpa.key, container, tuple(rows)) for container, rows in sorted(members.items()))


@contextmanager
def merged_rows(table: AggregateTable, profiles: Sequence[Profile], *, copy: bool = False) -> Iterator[Ints]:
    """Yield the row of each profile's merged history. Temporary rows are freed on exit.

    A profile of a single aggregate uses that aggregate's row, unless `copy` is set. Merging moves reference times, so
    profiles that share an aggregate (two VPAs may match one pod) are merged one after the other.
    """
    rows = np.array([profile.members[0] for profile in profiles], dtype=np.int64)
    uses = Counter(row for profile in profiles for row in profile.members)
    together: list[tuple[int, tuple[int, ...]]] = []
    in_turn: list[tuple[int, tuple[int, ...]]] = []
    for index, profile in enumerate(profiles):
        is_shared = any(uses[row] > 1 for row in profile.members)
        if copy or is_shared or len(profile.members) > 1:
            rows[index] = table.allocate()
            (in_turn if is_shared else together).append((int(rows[index]), profile.members))
    try:
        for start in range(0, len(together), _BATCH):
            _merge_members(table, together[start : start + _BATCH])
        for merge in in_turn:
            _merge_members(table, [merge])
        yield rows
    finally:
        table.release_all([row for row, _ in (*together, *in_turn)])


def _merge_members(table: AggregateTable, merges: Iterable[tuple[int, tuple[int, ...]]]) -> None:
    """Merge the first members of all profiles at once, then the second ones, and so on."""
    remaining = [(row, members) for row, members in merges if members]
    while remaining:
        into = np.array([row for row, _ in remaining], dtype=np.int64)
        other = np.array([members[0] for _, members in remaining], dtype=np.int64)
        table.merge(into, other)
        remaining = [(row, members[1:]) for row, members in remaining if len(members) > 1]
