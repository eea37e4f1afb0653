"""Limits concurrent writes, and lets no namespace take all of them.

A tenant's own admission webhook may let every write in its namespace hang for 10 s. Its HPAs take at most a share of the
slots, so that the scales of other namespaces go on.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

SHARES = 4
"""A namespace gets one of so many shares of the slots."""

_Waiting = dict[str, deque[asyncio.Future[None]]]
"""Writes that wait, by namespace. The namespace that was served last is the last."""


class WriteSlots:
    """Slots of writes. Scales go before statuses, and namespaces take turns."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._share = max(slots // SHARES, 1)
        self._held: Counter[str] = Counter()
        self._scales: _Waiting = {}
        self._statuses: _Waiting = {}

    def for_scale(self, namespace: str) -> AbstractAsyncContextManager[None]:
        """Hold a slot, which a scale gets before every waiting status."""
        return self._hold(namespace, self._scales)

    def for_status(self, namespace: str) -> AbstractAsyncContextManager[None]:
        """Hold a slot, which a status gets after every waiting scale."""
        return self._hold(namespace, self._statuses)

    @asynccontextmanager
    async def _hold(self, namespace: str, waiting: _Waiting) -> AsyncIterator[None]:
        await self._take(namespace, waiting)
        try:
            yield
        finally:
            self._give_back(namespace)

    async def _take(self, namespace: str, waiting: _Waiting) -> None:
        if self._free and self._held[namespace] < self._share:
            self._grant(namespace)
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.setdefault(namespace, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self._give_back(namespace)  # the slot was granted at the same time
            raise

    def _grant(self, namespace: str) -> None:
        self._free -= 1
        self._held[namespace] += 1

    def _give_back(self, namespace: str) -> None:
        self._free += 1
        self._held[namespace] -= 1
        if not self._held[namespace]:
            del self._held[namespace]
        for waiting in (self._scales, self._statuses):
            if self._grant_next(waiting):
                return

    def _grant_next(self, waiting: _Waiting) -> bool:
        """Grant a slot to the first waiting write whose namespace has its share not yet.

        Return whether there is one.
        """
        for namespace in list(waiting):
            if self._held[namespace] >= self._share:
                continue
            slots = waiting.pop(namespace)
            while slots and slots[0].done():
                slots.popleft()  # cancelled
            if slots:
                slot = slots.popleft()
                if slots:
                    waiting[namespace] = slots
                self._grant(namespace)
                slot.set_result(None)
                return True
        return False
