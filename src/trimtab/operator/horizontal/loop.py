"""When which HPAs are decided: everybody in turn once per period, who changed at once, and looks in between."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from trimtab.clock import Clock
from trimtab.operator.horizontal.batches import Batches
from trimtab.operator.horizontal.early_scaling import UsageMonitor
from trimtab.operator.horizontal.inputs.hpa_cache import HpaCache, HpaState
from trimtab.operator.horizontal.schedule import SyncPeriods, SyncSchedule
from trimtab.operator.ownership import Ownership


class Loop:
    """Begins rounds and looks; what they do goes on beside it."""

    def __init__(
        self, clock: Clock, autoscalers: HpaCache, ownership: Ownership, batches: Batches, pace: SyncPeriods
    ) -> None:
        self._clock = clock
        self._autoscalers = autoscalers
        self._ownership = ownership
        self._batches = batches
        self._pace = pace
        self._news = asyncio.Event()
        self._lookout = UsageMonitor(clock, batches, ownership.owns, self._news.set, pace)
        self._urgent: set[str] = set()

    def hurry(self, *uids: str) -> None:
        """Have these decided at once, and everything looked at that may have changed for the loop itself."""
        self._urgent.update(uids)
        self._news.set()

    def all_owned(self) -> list[HpaState]:
        """Return those that we decide about, and take notice of where the others aim."""
        owned = [one for one in self._autoscalers if self._ownership.owns(one.key)]
        if len(owned) < len(self._autoscalers):
            mine = {one.uid for one in owned}
            self._batches.register_foreign_targets(one for one in self._autoscalers if one.uid not in mine)
        return owned

    async def run(
        self, may_decide: Callable[[], bool], before_waiting: Callable[[], Awaitable[None]]
    ) -> None:
        """Go on until cancelled; while nothing `may_decide`, see every now and then whether it may again."""
        turns = SyncSchedule(self._pace, self._clock.monotonic())
        while True:
            now = self._clock.monotonic()
            if not may_decide():
                turns.start_over(now + min(self._pace.sync, 1.0))
                self._lookout.rest()
            elif now >= turns.next_at:
                self._begin_turn(turns, now)
                self._begin_urgent()
            elif self._urgent:
                self._begin_urgent()
            elif now >= self._lookout.next_at:
                self._look()
            self._news.clear()
            await before_waiting()
            await self._wait(min(turns.next_at, self._lookout.next_at) - self._clock.monotonic())

    def begin_round(self, due: Iterable[HpaState], beside: Iterable[HpaState] = ()) -> None:
        """Begin a round over these, except those that were just scaled; others are looked at `beside` it."""
        now = self._clock.monotonic()
        self._batches.begin((one for one in due if one.not_before <= now), beside)

    def _begin_turn(self, turns: SyncSchedule, now: float) -> None:
        due = turns.take(self.all_owned(), now)
        self._urgent.difference_update(one.uid for one in due)
        if not turns.is_divided:
            self.begin_round(due)
            self._lookout.rest()
            return
        # What those in turn ask for is asked once, for those as well who are only looked at.
        is_look_due = self._lookout.is_nearly_due()
        self.begin_round(self._lookout.not_too_soon(due), self._autoscalers if is_look_due else ())
        if is_look_due:
            self._look()

    def _begin_urgent(self) -> None:
        changed = [self._autoscalers.get(uid) for uid in sorted(self._urgent)]
        self._urgent.clear()
        self._batches.begin(one for one in changed if one is not None and self._ownership.owns(one.key))

    def _look(self) -> None:
        self._batches.begin(self._lookout.waited(self._autoscalers))
        self._lookout.begin(self._autoscalers)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._news.wait()
        except TimeoutError:
            return
