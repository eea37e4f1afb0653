"""Limits concurrent writes, and lets no namespace take all of them.

A tenant's own admission webhook may let every write in its namespace hang for 10 s. Its HPAs take at most a share of the
slots, so that the scales of other namespaces go on.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

SHARES = 4
"""A namespace gets one of so many shares of the slots."""

_Waiting = dict[str, deque[asyncio.Future[None]]]
"""Writes that wait, by namespace. The namespace that was served last is the last."""


class WriteSlots:
    """Slots of writes. Scales go before statuses, and namespaces take turns."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._share = max(slots // SHARES, 1)
        self._held: dict[str, int] = {}
        self._scales: _Waiting = {}
        self._statuses: _Waiting = {}

    def for_scale(self, namespace: str) -> AbstractAsyncContextManager[None]:
        """Hold a slot, which a scale gets before every waiting status."""
        return _Slot(self, namespace, self._scales)

    def for_status(self, namespace: str) -> AbstractAsyncContextManager[None]:
        """Hold a slot, which a status gets after every waiting scale."""
        return _Slot(self, namespace, self._statuses)

    async def take(self, namespace: str, waiting: _Waiting) -> None:
        """Take a slot, or wait for it in `waiting`."""
        if self._free and self._held.get(namespace, 0) < self._share:
            self._grant(namespace)
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.setdefault(namespace, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self.give_back(namespace)  # the slot was granted at the same time
            raise

    def _grant(self, namespace: str) -> None:
        self._free -= 1
        self._held[namespace] = self._held.get(namespace, 0) + 1

    def give_back(self, namespace: str) -> None:
        """Return a slot, and grant it to the next write that may have it."""
        self._free += 1
        held = self._held.pop(namespace) - 1
        if held:
            self._held[namespace] = held
        for waiting in (self._scales, self._statuses):
            if waiting and self._grant_next(waiting):
                return

    def _grant_next(self, waiting: _Waiting) -> bool:
        """Grant a slot to the first waiting write whose namespace has its share not yet.

        Return whether there is one.
        """
        for namespace in list(waiting):
            if self._held.get(namespace, 0) >= self._share:
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


class _Slot:
    """A slot of one write, from its start to its end."""

    __slots__ = ("_namespace", "_slots", "_waiting")

    def __init__(self, slots: WriteSlots, namespace: str, waiting: _Waiting) -> None:
        self._slots = slots
        self._namespace = namespace
        self._waiting = waiting

    def __aenter__(self) -> Coroutine[Any, Any, None]:
        # Not a coroutine of its own: a thousand writes may wait at the same time.
        return self._slots.take(self._namespace, self._waiting)

    async def __aexit__(self, *_: object) -> None:
        self._slots.give_back(self._namespace)
