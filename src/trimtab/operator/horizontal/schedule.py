"""Whose turn it is: everybody once per period, all at once or, where that would be many, some at a time.

A thousand statuses that are written in one go keep the API server busy for seconds, every period, and whoever is last
waits for all of them. So many HPAs take turns over the period, by namespace: those of one namespace share their
questions, and are asked about together. The first round is about all of them, so nobody waits for a turn at the start.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from zlib import crc32

from trimtab.operator.horizontal.inputs.hpa_cache import HpaState


@dataclass(frozen=True, slots=True)
class SyncPeriods:
    """Two periods, in seconds; a look that would not come before the next sync is none."""

    sync: float
    look: float

    @property
    def has_looks(self) -> bool:
        """Return whether anybody looks between two syncs."""
        return 0 < self.look < self.sync


FEW = 200
"""So many are decided and written in a fraction of a second: they need no turns."""


class SyncSchedule:
    """Divides the sync period into turns no longer than the time between two looks; without looks there is one."""

    def __init__(self, pace: SyncPeriods, now: float) -> None:
        self._period = pace.sync
        self._count = ceil(pace.sync / pace.look) if pace.has_looks else 1
        self._turn = 0
        self._is_divided = False
        self.next_at = now
        """When the next turn begins, on the monotonic clock."""

    @property
    def is_divided(self) -> bool:
        """Return whether not everybody had a turn in the last one."""
        return self._is_divided

    def start_over(self, at: float) -> None:
        """Let everybody have a turn at once, at that moment."""
        self._turn, self._is_divided, self.next_at = 0, False, at

    def take(self, everyone: Iterable[HpaState], now: float) -> list[HpaState]:
        """Return those whose turn it is now, and move on to the next turn."""
        waiting = list(everyone)
        if self._turn == 0 and not self._goes_on_divided(len(waiting)):
            due = waiting
        else:
            due = [one for one in waiting if self._turn_of(one) == self._turn]
        self._move_on(now)
        return due

    def _goes_on_divided(self, many: int) -> bool:
        """Return whether the period before was divided and this one is too; decide about this one."""
        was_divided, self._is_divided = self._is_divided, many > FEW and self._count > 1
        return was_divided and self._is_divided

    def _turn_of(self, one: HpaState) -> int:
        return crc32(one.hpa.metadata.namespace.encode()) % self._count

    def _move_on(self, now: float) -> None:
        turns = self._count if self._is_divided else 1
        self._turn = (self._turn + 1) % turns
        # The grid is kept: a late turn does not move all later ones.
        self.next_at = max(self.next_at + self._period / turns, now)
