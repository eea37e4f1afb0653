"""Says when HPAs are reconciled: changed HPAs at once, and each HPA once per sync period, spread over it from the first HPA on.

A thousand statuses that are written at once keep the API server busy for seconds, every period, and HPAs that share one phase are
all late together. So the period is divided into slots, and a namespace belongs to a slot by its name: the HPAs of one namespace
share their metric queries. The first sync reconciles all HPAs. Upstream's controller has a timer for each HPA instead
(`TimerSchedule`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from heapq import heappop, heappush
from math import inf

from trimtab.clock import Clock
from trimtab.operator.horizontal.batches import Batches
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.look import Looks, SyncPeriods

TIMER_SECONDS = 0.1
"""Timers that end within this time are one sync, so that their HPAs share queries."""


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
        """Return the HPAs of this slot and those with a window or rate that ended, and advance to the next."""
        slot, covers_all = self._slot, self._covers_all
        self._slot, self._covers_all = (slot + 1) % self._slots, False
        # The grid stays: a late slot does not delay the later ones.
        self.next_at = max(self.next_at + self._seconds, now)
        return [
            hpa_state
            for hpa_state in hpa_states
            if covers_all or slot_of(hpa_state, self._slots) == slot or hpa_state.edge_at <= now
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


SyncSchedule = SlotSchedule | TimerSchedule
"""Says which HPAs are due, and when the next ones are."""


def make_schedule(periods: SyncPeriods, now: float) -> SyncSchedule:
    """Return the schedule for these periods, with all HPAs due now."""
    return TimerSchedule(periods.sync, now) if periods.has_timers else SlotSchedule(periods, now)


class Loop:
    """Starts batches of reconciles, and looks, as background tasks."""

    def __init__(
        self,
        clock: Clock,
        hpas: HpaCache,
        owns: Callable[[str], bool],
        batches: Batches,
        looks: Looks,
        periods: SyncPeriods,
    ) -> None:
        self._clock = clock
        self._hpas = hpas
        self._owns = owns
        self._batches = batches
        self._looks = looks
        self._periods = periods
        self._queue: set[str] = set()
        self._later: list[tuple[float, str]] = []
        """The HPAs that were scaled, and when their next sync is due, soonest first."""
        self._wake = asyncio.Event()
        looks.on_finished = self._wake.set

    def enqueue_now(self, *uids: str) -> None:
        """Enqueue these HPAs for immediate reconcile and wake the loop."""
        self._queue.update(uids)
        self._wake.set()

    def note_scaled(self, hpa_state: HpaState) -> None:
        """Make the next sync of an HPA due one sync period after the answer to its scale.

        A policy's period that is as long ends with it. Rules of Kubernetes count from the end of each sync.
        """
        if self._periods.has_timers:
            return
        at = self._clock.monotonic() + self._periods.sync
        hpa_state.schedule_next(at)
        heappush(self._later, (at, hpa_state.uid))
        self._wake.set()

    def owned_hpas(self) -> list[HpaState]:
        """Return the HPAs that this replica reconciles, and register the targets of the other HPAs."""
        owned = [hpa_state for hpa_state in self._hpas if self._owns(hpa_state.key)]
        if len(owned) < len(self._hpas):
            uids = {hpa_state.uid for hpa_state in owned}
            self._batches.register_foreign_targets(
                hpa_state for hpa_state in self._hpas if hpa_state.uid not in uids
            )
        return owned

    async def run(
        self, may_decide: Callable[[], bool], before_waiting: Callable[[], Awaitable[None]]
    ) -> None:
        """Run until cancelled, and reconcile while `may_decide` allows it."""
        schedule = make_schedule(self._periods, self._clock.monotonic())
        while True:
            now = self._clock.monotonic()
            self._enqueue_later(now)
            if not may_decide():
                schedule.start_over(now + min(self._periods.sync, 1.0))
                self._looks.reschedule()
                self._dequeue_deleted()
            elif now >= schedule.next_at:
                self._start_due(schedule, now)
                self._start_enqueued(schedule, now)
            elif self._queue:
                self._start_enqueued(schedule, now)
            elif now >= self._looks.next_at:
                self._looks.start(self._hpas)
            self._wake.clear()
            await before_waiting()
            later = self._later[0][0] if self._later else inf
            await self._wait(min(schedule.next_at, self._looks.next_at, later) - self._clock.monotonic())

    def start_sync(self, due: Iterable[HpaState], also_queried: Iterable[HpaState] = ()) -> None:
        """Start to reconcile these HPAs, except those that were scaled less than a sync period ago."""
        now = self._clock.monotonic()
        self._batches.reconcile_all(
            [hpa_state for hpa_state in due if hpa_state.next_sync_at <= now], also_queried, is_sync=True
        )

    def _enqueue_later(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            hpa_state = self._hpas.get(heappop(self._later)[1])
            if hpa_state is not None and hpa_state.next_sync_at <= now:
                self._queue.add(hpa_state.uid)

    def _start_due(self, schedule: SyncSchedule, now: float) -> None:
        due = schedule.next_due(self.owned_hpas(), now)
        if self._queue:
            self._queue.difference_update([hpa_state.uid for hpa_state in due])
        if self._periods.slots == 1:
            self.start_sync(due)
            return
        # The sync and the usage check send a query that both need once.
        is_check_due = self._looks.is_nearly_due()
        self.start_sync(due, self._hpas if is_check_due else ())
        if is_check_due:
            self._looks.start(self._hpas)

    def _start_enqueued(self, schedule: SyncSchedule, now: float) -> None:
        enqueued = [self._hpas.get(uid) for uid in sorted(self._queue)]
        self._queue.clear()
        changed = [hpa_state for hpa_state in enqueued if hpa_state is not None and self._owns(hpa_state.key)]
        self._batches.reconcile_all(changed)
        schedule.note_reconciled(changed, now)

    def _dequeue_deleted(self) -> None:
        """Keep no names of deleted HPAs in a replica that stands by for months."""
        self._queue = {uid for uid in self._queue if self._hpas.get(uid) is not None}

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._wake.wait()
        except TimeoutError:
            return
