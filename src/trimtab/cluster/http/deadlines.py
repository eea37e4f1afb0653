"""The deadlines of all requests of a pool, on one timer.

A timer per request would be set and cancelled thousands of times per second, and would almost never fire. This timer is
set for the earliest deadline and moves only when it fires or an earlier deadline is added.
"""

import asyncio
from typing import Protocol

NEVER = float("inf")


class Guarded(Protocol):
    """An exchange that must end by `deadline`, in the loop's time. The deadline may only move later."""

    deadline: float

    def expire(self) -> None:
        """End, because the deadline passed."""
        ...


class DeadlineTimer:
    """Calls `expire` on guarded exchanges when their deadline passes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._guarded: set[Guarded] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = NEVER

    def guard(self, exchange: Guarded) -> None:
        """Guard an exchange until it is released."""
        self._guarded.add(exchange)
        if exchange.deadline < self._rings_at:
            self._set(exchange.deadline)

    def release(self, exchange: Guarded) -> None:
        """Stop guarding an exchange."""
        self._guarded.discard(exchange)

    def stop(self) -> None:
        """Stop guarding all exchanges."""
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
        for exchange in [exchange for exchange in self._guarded if exchange.deadline <= now]:
            self._guarded.discard(exchange)
            exchange.expire()
        self._set(min((exchange.deadline for exchange in self._guarded), default=NEVER))
