"""How many writes go to the server at a time, and in which order.

A status can wait, a workload cannot: when a thousand workloads have to grow at once, all of them grow before the first
status says so.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class WriteSlots:
    """Lets a few writes go at a time: scales first, otherwise in the order of arrival."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._scales: deque[asyncio.Future[None]] = deque()
        self._statuses: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def for_scale(self) -> AsyncIterator[None]:
        """Wait for a slot before every status that waits."""
        await self._take(self._scales)
        try:
            yield
        finally:
            self._give_back()

    @asynccontextmanager
    async def for_status(self) -> AsyncIterator[None]:
        """Wait for a slot until no scale needs one."""
        await self._take(self._statuses)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, waiting: deque[asyncio.Future[None]]) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()  # the slot was given to us in the same moment
            raise

    def _give_back(self) -> None:
        for waiting in (self._scales, self._statuses):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1
