"""Lanes: kinds of requests that cannot delay each other.

Each lane has connections, turns and a rate limiter of its own. A lane that is full, throttled or hanging delays no
request of another lane. See docs/decisions/isolate-leases-writes-watches-and-metrics-sources.md.
"""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass

from trimtab.clock import Clock
from trimtab.pacing import Backoff, Breaker, TokenBucket

_SPACING_SECONDS = 1.0
"""Time between two requests to a server that answered 429, until it answers otherwise."""

_THROTTLED_PROBES = 2
"""Different requests, sent one after the other after a 429 and throttled too, that mean an overloaded server."""

_FORGET_SECONDS = 60.0
"""How long after its Retry-After a request counts as throttled, unless it is answered."""


class RateLimiter:
    """Admits requests to the server.

    Without a 429 every request goes at once, unless `qps` limits them. A 429 may come from a webhook that concerns one
    object only, or from a server that is overloaded. So its Retry-After holds back requests with the same key (method
    and path). Of the others one goes per second, those that were not throttled before first, and any other response
    lifts this limit.
    If these are throttled too, the server is overloaded: then one request goes per Retry-After, however many callers
    wait, until another response lifts everything. A request that hangs delays no other: what is limited is how often
    requests go, not how many are in flight.
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
        self._tokens = None if qps is None else TokenBucket(clock, 1 / qps, burst)
        self._is_throttled = False
        self._is_overloaded = False
        self._not_before = 0.0
        self._held: dict[str, float] = {}
        """When requests may go that were throttled last time, by key, the latest 429 last."""
        self._probes: set[str] = set()
        """Keys of requests that went after a 429 and were not throttled before."""
        self._throttled_probes = 0
        self._waiting = 0
        """Requests that were not throttled before and wait to go."""
        self._first_turn = asyncio.Lock()
        self._later_turn = asyncio.Lock()
        self._lifted = asyncio.Event()

    def may_pass(self, key: str) -> bool:
        """Return whether a request goes at once: no limit is set, and no 429 holds it back."""
        return self._tokens is None and not self._is_throttled and key not in self._held

    async def admit(self, key: str) -> None:
        """Wait until a request may go."""
        if self._tokens is not None and (wait := self._tokens.take()) > 0:
            await self._clock.sleep(wait)
        while (wait := self._hold_of(key)) > 0:
            await self._wait(wait)
        if not self._is_throttled:
            return
        is_first = key not in self._held
        self._waiting += is_first
        try:
            async with self._first_turn if is_first else self._later_turn:
                while (wait := self._lane_wait(is_first=is_first)) > 0:
                    await self._wait(wait)
                self._note_sent(key)
        finally:
            self._waiting -= is_first

    def throttle(self, key: str, retry_after: float | None) -> None:
        """Record a 429."""
        now = self._clock.monotonic()
        # A proxy or a webhook may name any time. A longer one would stop the requests for as long.
        wait = 1.0 if retry_after is None else min(max(retry_after, 0.1), self._longest_wait)
        # Up to 25 % more, so that clients with the same Retry-After do not return at the same time.
        until = now + wait * (1.0 + 0.25 * self._random.random())
        self._held.pop(key, None)
        self._held[key] = until
        self._forget(now)
        if key in self._probes:
            self._probes.remove(key)
            self._throttled_probes += 1
            self._is_overloaded |= self._throttled_probes >= _THROTTLED_PROBES
        if self._is_overloaded:
            self._not_before = until
        elif not self._is_throttled:
            self._not_before = min(until, now + _SPACING_SECONDS)
        self._is_throttled = True

    def served(self, key: str) -> None:
        """Record any other response, which lifts the limit on this request and on others."""
        was_held = self._held.pop(key, None) is not None
        if not self._is_throttled and not was_held:
            return
        if self._is_overloaded:
            self._held.clear()
        self._is_throttled = self._is_overloaded = False
        self._throttled_probes = 0
        self._probes.clear()
        self._lifted.set()
        self._lifted = asyncio.Event()

    def _forget(self, now: float) -> None:
        while now - self._held[oldest := next(iter(self._held))] > _FORGET_SECONDS:
            del self._held[oldest]

    def _hold_of(self, key: str) -> float:
        return self._held.get(key, 0.0) - self._clock.monotonic()

    def _lane_wait(self, *, is_first: bool) -> float:
        """Return how long the next request waits. Those that were throttled let the others go first."""
        if not self._is_throttled:
            return 0.0
        wait = self._not_before - self._clock.monotonic()
        return wait if is_first or not self._waiting else max(wait, 0.0) + _SPACING_SECONDS

    def _note_sent(self, key: str) -> None:
        if self._is_throttled:
            self._not_before = max(self._not_before, self._clock.monotonic() + _SPACING_SECONDS)
            if key not in self._held:
                self._probes.add(key)

    async def _wait(self, seconds: float) -> None:
        """Wait, at most until a response lifts the limit."""
        lifted = self._lifted
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await lifted.wait()


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """The name and the limits of a lane."""

    name: str
    turns: int
    """Reads in flight, and as many writes. Further requests wait."""
    longest_wait: float
    """The longest Retry-After that the lane observes, in seconds."""
    has_own_pace: bool = False
    """Whether its callers send on time even if the server cannot be reached."""


TRIPS = 3
"""Requests in a row without a connection after which requests fail at once. Errors of a server that answers do not count,
because they may concern one kind or namespace only."""

_FIRST_PROBE_SECONDS = 0.5
_PROBE_SECONDS = 2.0
"""Time between two probes. It bounds how long a recovery stays unnoticed."""


OBJECTS = LaneLimits("objects", turns=32, longest_wait=10.0)
"""All requests that no other lane takes. Its watches need no turn, because they stay open."""

LEASES = LaneLimits("leases", turns=16, longest_wait=2.0, has_own_pace=True)
"""The Leases of elections. A renewal waits at most for the time between two renewals."""

METRICS = LaneLimits("metrics", turns=80, longest_wait=10.0)
"""The metrics APIs. More turns than slots of all sources, so that no source waits for another one's requests."""


class Lane:
    """The turns and the rate limiter of one lane of a client."""

    def __init__(
        self,
        clock: Clock,
        jitter: random.Random,
        limits: LaneLimits,
        *,
        qps: float | None = None,
        burst: int = 10,
    ) -> None:
        self.name = limits.name
        self.limiter = RateLimiter(clock, jitter, qps=qps, burst=burst, longest_wait=limits.longest_wait)
        probes = Backoff(clock, first=_FIRST_PROBE_SECONDS, longest=_PROBE_SECONDS, jitter=jitter)
        self.breaker = None if limits.has_own_pace else Breaker(probes, trips=TRIPS)
        """Closed while the server can be reached. In an outage every sync would send its requests in vain, and all of them
        at once to a server that comes back."""
        self._reads = asyncio.Semaphore(limits.turns)
        self._writes = asyncio.Semaphore(limits.turns)

    def turns(self, method: str) -> asyncio.Semaphore:
        """Return the turns of reads or of writes. Lists that hang do not keep a write waiting."""
        return self._reads if method == "GET" else self._writes
