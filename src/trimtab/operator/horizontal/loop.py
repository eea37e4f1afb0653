"""Schedules reconciles: all HPAs once per sync period, changed HPAs immediately."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from trimtab.clock import Clock
from trimtab.operator.horizontal.batches import Batches
from trimtab.operator.horizontal.early_scaling import UsageMonitor
from trimtab.operator.horizontal.inputs.hpa_cache import HpaCache
from trimtab.operator.horizontal.inputs.hpa_state import HpaState
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
        self._wake = asyncio.Event()
        usage.on_finished = self._wake.set

    def enqueue_now(self, *uids: str) -> None:
        """Enqueue these HPAs for immediate reconcile and wake the loop."""
        self._queue.update(uids)
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
                self._start_usage_check()
            self._wake.clear()
            await before_waiting()
            await self._wait(min(schedule.next_at, self._usage.next_at) - self._clock.monotonic())

    def start_sync(self, due: Iterable[HpaState], also_queried: Iterable[HpaState] = ()) -> None:
        """Start to reconcile these HPAs, except those that were just scaled between syncs."""
        now = self._clock.monotonic()
        self._batches.reconcile_all(
            [hpa_state for hpa_state in due if hpa_state.next_sync_at <= now], also_queried
        )

    def _start_due(self, schedule: SyncSchedule, now: float) -> None:
        due = schedule.next_due(self.owned_hpas(), now)
        if self._queue:
            self._queue.difference_update([hpa_state.uid for hpa_state in due])
        if self._periods.slots == 1:
            self.start_sync(due)
            return
        # The sync and the usage check send a query that both need once.
        is_check_due = self._usage.is_nearly_due()
        slot = {hpa_state.uid: hpa_state for hpa_state in self._usage.defer_just_scaled(due)}
        slot |= {hpa_state.uid: hpa_state for hpa_state in self._usage.due_again(self._hpas)}
        self.start_sync(slot.values(), self._hpas if is_check_due else ())
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

    def _start_usage_check(self) -> None:
        self._batches.reconcile_all(self._usage.due_again(self._hpas))
        self._usage.start(self._hpas)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._wake.wait()
        except TimeoutError:
            return
