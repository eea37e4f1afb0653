"""Deadlines of all requests of a pool on one timer.

A timer of its own for each request would be set and cancelled thousands of times a second, and nearly none ever
rings. The timer here is set for the earliest deadline and moved only when it rings or an earlier one comes.
"""

import asyncio
from typing import Protocol

NEVER = float("inf")


class Guarded(Protocol):
    """Something that must end by `deadline`, in the loop's time; the deadline may move, but only to later."""

    deadline: float

    def expire(self) -> None:
        """End: the time is up."""
        ...


class DeadlineTimer:
    """Calls `expire` on whatever is guarded when its deadline passes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._guarded: set[Guarded] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = NEVER

    def guard(self, thing: Guarded) -> None:
        """Look after `thing` until it is released."""
        self._guarded.add(thing)
        if thing.deadline < self._rings_at:
            self._set(thing.deadline)

    def release(self, thing: Guarded) -> None:
        """Forget `thing`."""
        self._guarded.discard(thing)

    def stop(self) -> None:
        """Forget everything."""
        self._guarded.clear()
        self._set(NEVER)

    def _set(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if moment == NEVER else self._loop.call_at(moment, self._ring)
        self._rings_at = moment

    def _ring(self) -> None:
        now = self._loop.time()
        # Timers may ring a little early: a loop's clock has a resolution.
        for thing in [thing for thing in self._guarded if thing.deadline <= now]:
            self._guarded.discard(thing)
            thing.expire()
        self._set(min((thing.deadline for thing in self._guarded), default=NEVER))
