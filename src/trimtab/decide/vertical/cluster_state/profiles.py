"""Profiles: what a VPA knows about one container, merged from its aggregates and its loaded history."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import AggregateTable
from trimtab.decide.vertical.cluster_state.vpa import VPAState, sorted_aggregates
from trimtab.decide.vertical.histogram.buckets import Ints

_AT_ONCE: Final = 4096
"""Profiles merged in one step: enough for arrays to pay, few enough to keep copies small."""


@dataclass(frozen=True)
class Profile:
    """One container of one VPA and the aggregates whose history makes it."""

    vpa: str
    container: str
    members: tuple[int, ...]
    """Rows of the aggregate table, in the order in which they are merged."""


def profiles_of(vpa: VPAState) -> tuple[Profile, ...]:
    """Return the profiles of a VPA, by container; loaded history is merged last."""
    members: dict[str, list[int]] = {}
    for key, aggregate in sorted_aggregates(vpa.aggregates):
        members.setdefault(key.container, []).append(aggregate.row)
    for container, aggregate in sorted(vpa.initial.items()):
        members.setdefault(container, []).append(aggregate.row)
    return tuple(Profile(vpa.key, container, tuple(rows)) for container, rows in sorted(members.items()))


@contextmanager
def merged_rows(table: AggregateTable, profiles: Sequence[Profile], *, copy: bool = False) -> Iterator[Ints]:
    """Yield a row per profile that holds its merged history; rows made for it are given back afterwards.

    A profile of one aggregate is that aggregate's row itself, unless a copy is asked for. Merging moves reference times, so
    profiles that share an aggregate (two VPAs may match one pod) are merged one after the other.
    """
    rows = np.array([profile.members[0] for profile in profiles], dtype=np.int64)
    uses = Counter(row for profile in profiles for row in profile.members)
    together: list[tuple[int, tuple[int, ...]]] = []
    in_turn: list[tuple[int, tuple[int, ...]]] = []
    for place, profile in enumerate(profiles):
        is_shared = any(uses[row] > 1 for row in profile.members)
        if copy or is_shared or len(profile.members) > 1:
            rows[place] = table.allocate()
            (in_turn if is_shared else together).append((int(rows[place]), profile.members))
    try:
        for start in range(0, len(together), _AT_ONCE):
            merge_members(table, together[start : start + _AT_ONCE])
        for one in in_turn:
            merge_members(table, [one])
        yield rows
    finally:
        table.release_all([row for row, _ in (*together, *in_turn)])


def merge_members(table: AggregateTable, merges: Iterable[tuple[int, tuple[int, ...]]]) -> None:
    """Merge rows into others: the first members of all at once, then the second ones, and so on."""
    remaining = [(row, members) for row, members in merges if members]
    while remaining:
        into = np.array([row for row, _ in remaining], dtype=np.int64)
        other = np.array([members[0] for _, members in remaining], dtype=np.int64)
        table.merge(into, other)
        remaining = [(row, members[1:]) for row, members in remaining if len(members) > 1]
