"""The loop of a controller: a queue of keys, retries with back-off, one worker.

One worker keeps runs under the virtual clock repeatable, and a lab needs no more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab_lab.controllers.objects import Key

FIRST_RETRY, LONGEST_RETRY = 0.1, 60.0
log = logging.getLogger("trimtab.lab.controllers.work_queue")


class WorkQueue:
    """Keys to reconcile now or later. A key that is added during its reconcile is reconciled again."""

    def __init__(self, name: str, clock: Clock, reconcile: Callable[[Key], Awaitable[None]]) -> None:
        self.name = name
        self._clock = clock
        self._reconcile = reconcile
        self._keys: dict[Key, None] = {}
        self._timers: dict[Key, tuple[float, asyncio.TimerHandle, bool]] = {}
        self._failures: dict[Key, int] = {}
        self._wake = asyncio.Event()
        self._is_working = False

    @property
    def is_idle(self) -> bool:
        """Return whether the queue waits for nothing but changes and deadlines."""
        waits = any(counts for _, _, counts in self._timers.values())
        return not self._keys and not self._is_working and not waits

    def add(self, key: Key) -> None:
        self._keys[key] = None
        self._wake.set()

    def add_after(self, key: Key, seconds: float, *, is_deadline: bool = False) -> None:
        """Enqueue a key in some seconds, or at the time already set if that is sooner.

        A deadline is a time at which something may have gone wrong. Unlike a wait for work in progress, it leaves the
        queue idle.
        """
        moment = self._clock.monotonic() + seconds
        if key in self._timers:
            due, timer, counts = self._timers[key]
            if due <= moment:
                return
            timer.cancel()
            is_deadline = is_deadline and not counts
        timer = asyncio.get_running_loop().call_later(seconds, self._fire, key)
        self._timers[key] = (moment, timer, not is_deadline)

    async def run(self) -> None:
        """Reconcile keys until cancelled."""
        while True:
            while not self._keys:
                self._wake.clear()
                await self._wake.wait()
            key = next(iter(self._keys))
            del self._keys[key]
            self._is_working = True
            try:
                await self._work(key)
            finally:
                self._is_working = False

    def close(self) -> None:
        """Cancel all timers."""
        for _, timer, _ in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def _work(self, key: Key) -> None:
        try:
            await self._reconcile(key)
        except (errors.Conflict, errors.NotFound) as problem:
            log.debug("%s %s/%s: %s", self.name, *key, problem)
            self._retry(key)
        except errors.ClusterError as problem:
            log.warning("%s %s/%s: %s", self.name, *key, problem)
            self._retry(key)
        except Exception:  # the border of the loop: one bad object must not block the rest
            log.exception("%s %s/%s", self.name, *key)
            self._retry(key)
        else:
            self._failures.pop(key, None)

    def _retry(self, key: Key) -> None:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(FIRST_RETRY * 2**failures, LONGEST_RETRY))

    def _fire(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)
