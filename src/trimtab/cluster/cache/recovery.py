"""Ends the back-off of all informers of a process when one of them reaches the server again.

While the server fails, each informer backs off to 30 s. Every 5 s one of them tries earlier, whichever waits. When it
succeeds the others end their waits too. A process therefore notices the end of an outage within 5 s, for one request
per 5 s, however many informers it has.
"""

import asyncio
import random

from trimtab.clock import Clock

PROBE_SECONDS = 5.0
"""The time between two early requests, of all informers together."""

SPREAD_SECONDS = 1.0
"""The time over which informers spread their requests after the server is back."""


class Recovery:
    """The waits of informers whose server failed."""

    def __init__(self, clock: Clock, jitter: random.Random) -> None:
        self._clock = clock
        self._random = jitter
        self._waiting: set[asyncio.Event] = set()
        self._next_probe_at = 0.0

    async def wait(self, seconds: float) -> None:
        """Wait, but at most until it is this informer's turn to try, or another one has reached the server."""
        until = self._clock.monotonic() + seconds
        if not self._waiting:
            self._next_probe_at = self._clock.monotonic() + PROBE_SECONDS
        is_back = asyncio.Event()
        self._waiting.add(is_back)
        try:
            while not is_back.is_set() and (now := self._clock.monotonic()) < until:
                if now >= self._next_probe_at:
                    self._next_probe_at = now + PROBE_SECONDS
                    return
                await self._wait_for(is_back, min(until, self._next_probe_at) - now)
        finally:
            self._waiting.discard(is_back)
        if is_back.is_set():
            await self._clock.sleep(SPREAD_SECONDS * self._random.random())

    def notify(self) -> None:
        """End the waits, because the server answers again."""
        for is_back in self._waiting:
            is_back.set()

    async def _wait_for(self, is_back: asyncio.Event, seconds: float) -> None:
        waits = [asyncio.ensure_future(is_back.wait()), asyncio.ensure_future(self._clock.sleep(seconds))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
