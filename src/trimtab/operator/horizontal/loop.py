"""Schedules reconciles: all HPAs once per sync period, changed HPAs immediately."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from heapq import heappop, heappush
from math import inf

from trimtab.clock import Clock
from trimtab.operator.horizontal.batches import Batches
from trimtab.operator.horizontal.early_scaling import UsageMonitor
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.schedule import SyncPeriods, SyncSchedule, make_schedule


class Loop:
    """Starts reconcile batches and usage checks as background tasks."""

    def __init__(
        self,
        clock: Clock,
        hpas: HpaCache,
        owns: Callable[[str], bool],
        batches: Batches,
        usage: UsageMonitor,
        periods: SyncPeriods,
    ) -> None:
        self._clock = clock
        self._hpas = hpas
        self._owns = owns
        self._batches = batches
        self._usage = usage
        self._periods = periods
        self._queue: set[str] = set()
        self._later: list[tuple[float, str]] = []
        """The HPAs that were scaled, and when their next sync is due, soonest first."""
        self._wake = asyncio.Event()
        usage.on_finished = self._wake.set

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
                self._usage.reschedule()
                self._dequeue_deleted()
            elif now >= schedule.next_at:
                self._start_due(schedule, now)
                self._start_enqueued(schedule, now)
            elif self._queue:
                self._start_enqueued(schedule, now)
            elif now >= self._usage.next_at:
                self._usage.start(self._hpas)
            self._wake.clear()
            await before_waiting()
            later = self._later[0][0] if self._later else inf
            await self._wait(min(schedule.next_at, self._usage.next_at, later) - self._clock.monotonic())

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
        is_check_due = self._usage.is_nearly_due()
        self.start_sync(due, self._hpas if is_check_due else ())
        if is_check_due:
            self._usage.start(self._hpas)

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
