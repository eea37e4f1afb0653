"""Which HPAs are due: all of them once per sync period, at once or spread over it.

A thousand statuses that are written at once keep the API server busy for seconds, every period. So the reconciles of
many HPAs are spread over the period, by namespace: the HPAs of one namespace share their metric queries. The first
sync reconciles all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from zlib import crc32

from trimtab.operator.horizontal.inputs.hpa_state import HpaState

FEW = 200
"""So many HPAs are reconciled and written in a fraction of a second, so they are not spread."""


@dataclass(frozen=True, slots=True)
class SyncPeriods:
    """The sync period, and the time between two usage checks, in seconds."""

    sync: float
    usage_check: float

    @property
    def has_usage_checks(self) -> bool:
        """Return whether usage is checked between two syncs."""
        return 0 < self.usage_check < self.sync


class SyncSchedule:
    """Divides the sync period into slots, each no longer than the time between two usage checks."""

    def __init__(self, periods: SyncPeriods, now: float) -> None:
        self._period = periods.sync
        self._slots = ceil(periods.sync / periods.usage_check) if periods.has_usage_checks else 1
        self._slot = 0
        self._is_divided = False
        self.next_at = now
        """When the next slot starts, on the monotonic clock."""

    @property
    def is_divided(self) -> bool:
        """Return whether the last slot covered only some HPAs."""
        return self._is_divided

    def start_over(self, at: float) -> None:
        """Make all HPAs due at that time."""
        self._slot, self._is_divided, self.next_at = 0, False, at

    def next_due(self, hpa_states: Iterable[HpaState], now: float) -> list[HpaState]:
        """Return the HPAs of this slot, and advance to the next."""
        owned = list(hpa_states)
        if self._slot == 0 and not self._stays_divided(len(owned)):
            due = owned
        else:
            due = [hpa_state for hpa_state in owned if self._slot_of(hpa_state) == self._slot]
        self._advance(now)
        return due

    def _stays_divided(self, count: int) -> bool:
        """Decide whether the new period is divided, and return whether the last one was too."""
        was_divided, self._is_divided = self._is_divided, count > FEW and self._slots > 1
        return was_divided and self._is_divided

    def _slot_of(self, hpa_state: HpaState) -> int:
        return crc32(hpa_state.hpa.metadata.namespace.encode()) % self._slots

    def _advance(self, now: float) -> None:
        slots = self._slots if self._is_divided else 1
        self._slot = (self._slot + 1) % slots
        # The grid stays: a late slot does not delay the later ones.
        self.next_at = max(self.next_at + self._period / slots, now)
