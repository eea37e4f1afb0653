"""Decisions on their way to the server: a few writers, scales before statuses.

A status can wait, a workload cannot: when a thousand workloads have to grow at once, all of them grow before the first
status says so. Writers live as long as there is something to write.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

J = TypeVar("J")


class WriteQueue(Generic[J]):
    """Hands jobs to at most `writers` writers at a time, the urgent ones first, otherwise in their order."""

    def __init__(
        self,
        write: Callable[[J], Awaitable[None]],
        start: Callable[[Coroutine[Any, Any, None]], None],
        *,
        writers: int,
    ) -> None:
        self._write = write
        self._start = start
        self._free = writers
        self._urgent: deque[J] = deque()
        self._waiting: deque[J] = deque()

    def put(self, job: J, *, is_urgent: bool) -> None:
        """Queue a job; it is written as soon as a writer is free."""
        (self._urgent if is_urgent else self._waiting).append(job)
        if self._free:
            self._free -= 1
            self._start(self._work())

    async def _work(self) -> None:
        try:
            while self._urgent or self._waiting:
                await self._write((self._urgent or self._waiting).popleft())
        finally:
            self._free += 1
