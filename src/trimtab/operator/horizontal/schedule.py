"""Which HPAs are due: each once per sync period, spread over it from the first HPA on.

A thousand statuses that are written at once keep the API server busy for seconds, every period, and HPAs that share
one phase are all late together. So the period is divided into slots, and a namespace belongs to a slot by its name:
the HPAs of one namespace share their metric queries. The first sync reconciles all HPAs. Upstream's controller has a
timer for each HPA instead (`TimerSchedule`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Protocol

from trimtab.operator.horizontal.hpa_state import HpaState

SLOT_SECONDS = 2.0
"""The longest slot where usage is not checked between syncs. With checks, a slot is as long as their period."""

TIMER_SECONDS = 0.1
"""Timers that end within this time are one sync, so that their HPAs share queries."""


@dataclass(frozen=True, slots=True)
class SyncPeriods:
    """The sync period, and the time between two usage checks, in seconds."""

    sync: float
    usage_check: float
    has_timers: bool = False
    """Whether each HPA has a timer of its own, as upstream's do."""

    @property
    def has_usage_checks(self) -> bool:
        """Return whether usage is checked between two syncs."""
        return 0 < self.usage_check < self.sync

    @property
    def slots(self) -> int:
        """Return into how many slots the sync period is divided."""
        if self.has_timers:
            return 1
        return ceil(self.sync / (self.usage_check if self.has_usage_checks else SLOT_SECONDS))

    @property
    def slot(self) -> float:
        """Return the length of a slot in seconds."""
        return self.sync / self.slots


class SyncSchedule(Protocol):
    """Says which HPAs are due, and when the next ones are."""

    @property
    def next_at(self) -> float:
        """Return when to ask for due HPAs again, on the monotonic clock."""
        ...

    def start_over(self, at: float) -> None:
        """Make all HPAs due at that time."""
        ...

    def next_due(self, hpa_states: Iterable[HpaState], now: float) -> list[HpaState]:
        """Return those of these HPAs that are due, and advance."""
        ...

    def note_reconciled(self, hpa_states: Iterable[HpaState], now: float) -> None:
        """Note HPAs that are reconciled now because they are new or changed."""
        ...


def make_schedule(periods: SyncPeriods, now: float) -> SyncSchedule:
    """Return the schedule for these periods, with all HPAs due now."""
    return TimerSchedule(periods.sync, now) if periods.has_timers else SlotSchedule(periods, now)


class SlotSchedule:
    """Divides the sync period into slots. A slot is not longer than the time between two usage checks."""

    def __init__(self, periods: SyncPeriods, now: float) -> None:
        self._slots = periods.slots
        self._seconds = periods.slot
        self._slot = 0
        self._covers_all = True
        self.next_at = now
        """When the next slot starts, on the monotonic clock."""

    def start_over(self, at: float) -> None:
        """Make all HPAs due at that time."""
        self._slot, self._covers_all, self.next_at = 0, True, at

    def next_due(self, hpa_states: Iterable[HpaState], now: float) -> list[HpaState]:
        """Return the HPAs of this slot, and advance to the next."""
        slot, covers_all = self._slot, self._covers_all
        self._slot, self._covers_all = (slot + 1) % self._slots, False
        # The grid stays: a late slot does not delay the later ones.
        self.next_at = max(self.next_at + self._seconds, now)
        return [
            hpa_state for hpa_state in hpa_states if covers_all or slot_of(hpa_state, self._slots) == slot
        ]

    def note_reconciled(self, hpa_states: Iterable[HpaState], now: float) -> None:
        """Do nothing: the slot of an HPA follows from its namespace."""


def slot_of(hpa_state: HpaState, slots: int) -> int:
    """Return the slot of an HPA, which is that of its namespace."""
    return hpa_state.phase % slots


class TimerSchedule:
    """Makes each HPA due one sync period after the end of its last sync, as upstream's queue does.

    An HPA that changed in between is reconciled at once and keeps its timer.
    """

    def __init__(self, period: float, now: float) -> None:
        self._period = period
        self._timers: dict[str, float] = {}
        """When the timer of each HPA ends, by uid."""
        self.next_at = now
        """When the next timers end, on the monotonic clock. At most one period from the last call."""

    def start_over(self, at: float) -> None:
        """Make all HPAs due at that time."""
        self._timers, self.next_at = {}, at

    def next_due(self, hpa_states: Iterable[HpaState], now: float) -> list[HpaState]:
        """Return the HPAs whose timers ended or that have none, and start their next timers."""
        due: list[HpaState] = []
        timers: dict[str, float] = {}
        for hpa_state in hpa_states:
            # The next sync is queued when the last one has ended.
            ends_at = max(self._timers.get(hpa_state.uid, now), hpa_state.synced_at + self._period)
            if ends_at <= now:
                due.append(hpa_state)
                ends_at += self._period * (1 + (now - ends_at) // self._period)
            timers[hpa_state.uid] = ends_at
        self._timers = timers
        first = min(timers.values(), default=now + self._period)
        self.next_at = min(first + TIMER_SECONDS, now + self._period)
        return due

    def note_reconciled(self, hpa_states: Iterable[HpaState], now: float) -> None:
        """Start the timers of HPAs that have none."""
        for hpa_state in hpa_states:
            self._timers.setdefault(hpa_state.uid, now + self._period)
