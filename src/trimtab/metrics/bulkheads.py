"""Limits how many requests each metrics source may hold, so that a hanging source delays only itself.

A source is an API group of metrics, because the API server forwards each group to one server: metrics-server, a custom
metrics adapter, an external metrics adapter. Each source has its own slots. Within a source, a query that is not
answered promptly moves to the few slots of slow queries and frees its own, so that one hanging metric delays no other
metric of the same adapter for longer than that. Waiting is bounded too: an HPA with a second, healthy metric is
decided without the hanging one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, TypeVar

from trimtab.clock import Clock

SLOTS = 16
"""Queries of a source in flight that are not slow. An adapter that answers in 50 ms serves 320 per second."""

SLOW_SLOTS = 8
"""Slow queries of a source in flight, besides `SLOTS`."""

FAILING_SLOTS = 4
"""How many of them may be queries that failed last time. The rest stays free for slow queries that are answered."""

PATIENCE_SECONDS = 1.0
"""How long a query may take before it counts as slow. Healthy adapters take some 100 ms."""

SHORT_PATIENCE_SECONDS = 0.25
"""The same while all slots of slow queries are taken, because then the source itself is slow, and for failures while
all ordinary slots are taken."""

_FORGET_SECONDS = 600.0
"""When a slow query that is not sent any more is forgotten."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SourceBusyError(Exception):
    """All slots of slow queries of a source stayed taken, so the query was not sent."""


@dataclass(slots=True)
class _Slow:
    """How a slow query behaved."""

    failures: int
    """Slow failures in a row."""
    seen_at: float


class _SlowSlots:
    """Slots that go to the waiting query with the fewest failures in a row."""

    def __init__(self) -> None:
        self.free = SLOW_SLOTS
        self._free_for_failing = FAILING_SLOTS
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._number = 0

    def try_acquire(self, failures: int = 0) -> bool:
        """Take a free slot, if there is one for a query with so many failures."""
        if not self.free or (failures and not self._free_for_failing):
            return False
        self.free -= 1
        self._free_for_failing -= 1 if failures else 0
        return True

    async def acquire(self, failures: int) -> None:
        """Wait for a slot."""
        if self.try_acquire(failures):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number += 1
        heappush(self._waiting, (failures, self._number, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release(failures)  # the slot was granted at the same time
            raise

    def release(self, failures: int = 0) -> None:
        """Return a slot, and grant those that are free."""
        self.free += 1
        self._free_for_failing += 1 if failures else 0
        while self._waiting:
            failures, _, granted = self._waiting[0]
            if not granted.done():
                if not self.try_acquire(failures):
                    return
                granted.set_result(None)
            heappop(self._waiting)


class _Attempt:
    """A query in flight on a slot of its source."""

    def __init__(self, slots: asyncio.Semaphore, slow_slots: _SlowSlots) -> None:
        self._slots = slots
        self._slow_slots = slow_slots
        self._is_slow = False
        self.is_given_up = False

    def overstay(self, timeout: asyncio.Timeout) -> None:
        """Continue on a slot of slow queries. Without a free one, end the attempt."""
        if self._slow_slots.try_acquire():
            self._is_slow = True
            self._slots.release()
        else:
            self.is_given_up = True
            timeout.reschedule(0.0)

    def end(self) -> None:
        """Free the slot."""
        (self._slow_slots if self._is_slow else self._slots).release()


class Bulkhead(Generic[K]):
    """The slots of one source."""

    def __init__(self, clock: Clock, deadline: float) -> None:
        self._clock = clock
        self._deadline = deadline
        self._slots = asyncio.Semaphore(SLOTS)
        self._slow_slots = _SlowSlots()
        self._slow: dict[K, _Slow] = {}
        """The queries that were slow last time, the latest last."""

    @property
    def slow_queries(self) -> int:
        """Return how many queries were slow last time."""
        return len(self._slow)

    async def run(self, key: K, fetch: Callable[[], Awaitable[T]]) -> T:
        """Fetch on a slot. Raise TimeoutError after the deadline, SourceBusyError if no slot became free."""
        if key not in self._slow:
            result = await self._run_promptly(key, fetch)
            if result is not None:
                return result
            # Also if it gets no slot now: the next sync is not to try it on an ordinary one again.
            self._slow[key] = _Slow(1, self._clock.monotonic())
        failures = self._slow[key].failures
        try:
            async with asyncio.timeout(self._deadline / 2):
                await self._slow_slots.acquire(failures)
        except TimeoutError:
            raise SourceBusyError from None
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._deadline):
                result = await fetch()
        except Exception:
            self._note(key, began, failures + 1)
            raise
        finally:
            self._slow_slots.release(failures)
        self._note(key, began, 0)
        return result

    async def _run_promptly(self, key: K, fetch: Callable[[], Awaitable[T]]) -> T | None:
        """Fetch on an ordinary slot.

        Return None if the query turned out to be slow and no slow slot was free.
        """
        await self._slots.acquire()
        attempt = _Attempt(self._slots, self._slow_slots)
        patience = PATIENCE_SECONDS if self._slow_slots.free else SHORT_PATIENCE_SECONDS
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._deadline) as timeout:
                timer = asyncio.get_running_loop().call_later(patience, attempt.overstay, timeout)
                try:
                    result = await fetch()
                finally:
                    timer.cancel()
        except Exception as error:
            if attempt.is_given_up and isinstance(error, TimeoutError):
                return None
            self._note(key, began, 1)
            raise
        finally:
            attempt.end()
        self._note(key, began, 0)
        return result

    def _note(self, key: K, began: float, failures: int) -> None:
        """Remember whether a query was slow. A prompt answer, also a failure, ends that.

        A failure that takes a slot from others, or took one of the slow slots, is slow after the short patience.
        """
        now = self._clock.monotonic()
        was_slow = self._slow.pop(key, None) is not None
        is_costly = failures > 0 and (was_slow or self._slots.locked())
        if now - began >= (SHORT_PATIENCE_SECONDS if is_costly else PATIENCE_SECONDS):
            self._slow[key] = _Slow(failures, now)
        while self._slow:
            oldest = next(iter(self._slow))
            if now - self._slow[oldest].seen_at < _FORGET_SECONDS:
                break
            del self._slow[oldest]
