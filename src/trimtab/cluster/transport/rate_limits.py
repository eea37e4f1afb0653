"""Back-off after failures, waiting after a 429, and an optional rate limit."""

import asyncio
import random
from contextlib import suppress

from trimtab.clock import Clock


class Backoff:
    """Delays that double with each failure and reset after a time without failures.

    The defaults are client-go's for lists and watches: 0.8 s doubling to 30 s, up to as much again as jitter, and a reset
    after 2 minutes.
    """

    def __init__(
        self,
        clock: Clock,
        jitter: random.Random,
        *,
        first: float = 0.8,
        longest: float = 30.0,
        reset_after: float = 120.0,
    ) -> None:
        self._clock = clock
        self._random = jitter
        self._first = first
        self._longest = longest
        self._reset_after = reset_after
        self._next = first
        self._last: float | None = None

    def delay(self) -> float:
        """Return the delay after this failure."""
        now = self._clock.monotonic()
        if self._last is not None and now - self._last > self._reset_after + self._next:
            self._next = self._first
        self._last = now
        base, self._next = self._next, min(self._next * 2, self._longest)
        return min(base * (1.0 + self._random.random()), max(self._longest, base))

    def reset(self) -> None:
        """Reset the delay."""
        self._next = self._first


_SPACING_SECONDS = 1.0
"""Time between two requests to a server that answered 429, until it answers otherwise."""


class RateLimiter:
    """Admits requests to the server.

    Without a 429 every request goes at once, unless `qps` limits them. After a 429 one request goes per second, after the
    server's Retry-After. The first other response lifts the limit for all that wait. An overloaded server therefore
    receives one request per Retry-After, however many callers wait. A request that hangs delays no other: what is limited
    is how often requests go, not how many are in flight.
    """

    def __init__(
        self,
        clock: Clock,
        jitter: random.Random,
        *,
        qps: float | None = None,
        burst: int = 10,
        longest_wait: float = 10.0,
    ) -> None:
        self._clock = clock
        self._random = jitter
        self._longest_wait = longest_wait
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._filled = clock.monotonic()
        self._throttled = False
        self._not_before = 0.0
        self._one_at_a_time = asyncio.Lock()
        self._opened = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Return whether requests go at once: no limit is set and the server did not answer 429."""
        return self._qps is None and not self._throttled

    async def admit(self) -> None:
        """Wait until a request may go."""
        await self._take_token()
        if not self._throttled:
            return
        async with self._one_at_a_time:
            await self._wait_until_due()
            self._not_before = max(self._not_before, self._clock.monotonic() + _SPACING_SECONDS)

    def throttle(self, retry_after: float | None) -> None:
        """Record a 429."""
        # A proxy or a webhook may name any time. A longer one would stop all requests of the process.
        wait = 1.0 if retry_after is None else min(max(retry_after, 0.1), self._longest_wait)
        self._throttled = True
        self._opened.clear()
        # Up to 25 % more, so that clients with the same Retry-After do not return at the same time.
        self._not_before = self._clock.monotonic() + wait * (1.0 + 0.25 * self._random.random())

    def served(self) -> None:
        """Record any other response, which lifts the limit."""
        if self._throttled:
            self._throttled = False
            self._opened.set()

    async def _take_token(self) -> None:
        if self._qps is None:
            return
        now = self._clock.monotonic()
        self._tokens = min(self._tokens + (now - self._filled) * self._qps, float(self._burst))
        self._filled = now
        self._tokens -= 1.0  # below zero is a place in the queue
        if self._tokens < 0:
            await self._clock.sleep(-self._tokens / self._qps)

    async def _wait_until_due(self) -> None:
        """Wait for the time that the server named. A response to another request ends the wait."""
        while self._throttled and (wait := self._not_before - self._clock.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._opened.wait()
