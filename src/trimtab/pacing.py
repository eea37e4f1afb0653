"""When to try again, and how often: back-off, token bucket and breaker, each once for all programs.

They take a clock and never sleep. Their users wait.
"""

import asyncio
import random
from math import inf

from trimtab.clock import Clock

_ROUNDING_SECONDS = 1e-9


class Backoff:
    """Delays that double with each failure. A success, or a long time without failures, resets them.

    With `jitter` a delay is up to twice as long, so that clients that failed together do not return together.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        first: float,
        longest: float,
        jitter: random.Random | None = None,
        reset_after: float = inf,
    ) -> None:
        self._clock = clock
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._reset_after = reset_after
        self._next = first
        self._failed_at = inf
        self.seconds = 0.0
        """The last delay. It is 0 after a success."""
        self.until = -inf
        """When the last delay ends, on the monotonic clock."""

    @property
    def is_waiting(self) -> bool:
        """Return whether the last delay goes on."""
        return self._clock.monotonic() < self.until

    def failed(self) -> float:
        """Return the seconds until the next try."""
        now = self._clock.monotonic()
        if now - self._failed_at > self._reset_after + self._next:
            self._next = self._first
        base, self._next = self._next, min(self._next * 2, self._longest)
        extra = 0.0 if self._jitter is None else self._jitter.random()
        self.seconds = min(base * (1.0 + extra), max(self._longest, base))
        self._failed_at, self.until = now, now + self.seconds
        return self.seconds

    def succeeded(self) -> None:
        """End the delay, and begin with the first one after the next failure."""
        self._next, self.seconds, self.until = self._first, 0.0, -inf


class TokenBucket:
    """`burst` tokens at once, and one more after each `seconds`."""

    def __init__(self, clock: Clock, seconds: float, burst: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._burst = burst
        self._full_at = -inf

    @property
    def is_full(self) -> bool:
        """Return whether no token is missing."""
        return self._clock.monotonic() >= self._full_at

    def take(self) -> float:
        """Take a token, and return the seconds until it is there. It is 0 for a token that is there now."""
        now = self._clock.monotonic()
        self._full_at = max(self._full_at, now) + self._seconds
        wait = self._full_at - self._burst * self._seconds - now
        return wait if wait > _ROUNDING_SECONDS else 0.0

    def give_back(self) -> None:
        """Return a token that was not used."""
        self._full_at -= self._seconds

    def try_take(self) -> bool:
        """Take a token that is there now, and return whether there was one."""
        if self.take() == 0:
            return True
        self.give_back()
        return False


class Breaker:
    """Whether a server is reached. After `trips` failures in a row it opens, and one probe per back-off may go.

    The first request that passes closes it for all.
    """

    def __init__(self, backoff: Backoff, *, trips: int) -> None:
        self.backoff = backoff
        self.is_open = False
        """Whether the server is not reached."""
        self.closed = asyncio.Event()
        """Set while the breaker is closed, for those that wait."""
        self.closed.set()
        self.verdict: asyncio.Future[None] | None = None
        """Done when the probe under way ends. None without a probe."""
        self._trips = trips
        self._failures = 0

    def admit(self) -> bool:
        """Return whether a request may go. While the breaker is open it is a probe, and its sender says how it ended."""
        if self.is_open:
            if self.backoff.is_waiting:
                return False
            self.backoff.failed()  # until the next probe
            if self.verdict is None:
                self.verdict = asyncio.get_running_loop().create_future()
        return True

    def passed(self) -> None:
        """Close, because the server answered."""
        if self._failures:
            self._failures = 0
            self.is_open = False
            self.backoff.succeeded()
            self.closed.set()
            self._settle()

    def failed(self) -> None:
        """Count a failure."""
        self._failures += 1
        if self._failures >= self._trips:
            self.is_open = True
            self.closed.clear()
            if not self.backoff.is_waiting:
                self.backoff.failed()
        self._settle()

    def end_probe(self) -> None:
        """End a probe without a result, so that the next request may probe at once."""
        if self.verdict is not None:
            self.backoff.until = -inf
            self._settle()

    def _settle(self) -> None:
        verdict, self.verdict = self.verdict, None
        if verdict is not None and not verdict.done():
            verdict.set_result(None)
