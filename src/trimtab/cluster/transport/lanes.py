"""Lanes: kinds of requests that cannot delay each other.

Each lane has connections, turns and a rate limiter of its own. A lane that is full, throttled or hanging delays no
request of another lane. See docs/decisions/isolate-leases-writes-watches-and-metrics-sources.md.
"""

import asyncio
import random
from dataclasses import dataclass

from trimtab.clock import Clock
from trimtab.cluster.transport.rate_limits import RateLimiter
from trimtab.pacing import Backoff, Breaker


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
