"""Lets few requests go while the server cannot be reached.

During an outage every sync would send its writes, events and queries in vain, and all of them at once to a server that
comes back. After some requests in a row without a connection, one request probes the server from time to time. Requests
that arrive meanwhile wait for its result. Between two probes requests fail at once, and their callers decide again in the
next sync. Errors of a server that answers are no outage, because they may concern one kind or namespace only.
"""

import asyncio
import random

from trimtab.clock import Clock
from trimtab.cluster.transport.rate_limits import Backoff

FAILURES = 3
"""Requests in a row without a connection that make an outage."""

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 2.0
"""Time between two probes. It bounds how long a recovery stays unnoticed."""


class Outage:
    """Whether a server can be reached, by the last requests."""

    def __init__(self, clock: Clock, jitter: random.Random) -> None:
        self._clock = clock
        self._backoff = Backoff(clock, jitter, first=_FIRST_SECONDS, longest=_LONGEST_SECONDS)
        self.is_on = False
        """Whether the last requests did not reach the server."""
        self._failures = 0
        self._probe_at = 0.0
        self._probe: asyncio.Future[None] | None = None

    async def may_send(self) -> bool:
        """Return whether a request may go. The caller then reports how it ended."""
        while self.is_on:
            if self._probe is None:
                if self._clock.monotonic() < self._probe_at:
                    return False
                self._probe = asyncio.get_running_loop().create_future()
                return True
            await asyncio.shield(self._probe)
        return True

    def reached(self) -> None:
        """Note that the server answered."""
        if self._failures:
            self._failures = 0
            self.is_on = False
            self._backoff.reset()
            self.end_probe()

    def failed(self) -> None:
        """Note that the server could not be reached."""
        self._failures += 1
        self.is_on = self._failures >= FAILURES
        if self.is_on:
            self._probe_at = self._clock.monotonic() + self._backoff.delay()
            self.end_probe()

    def end_probe(self) -> None:
        """Let the requests go on that wait for a probe."""
        probe, self._probe = self._probe, None
        if probe is not None and not probe.done():
            probe.set_result(None)
