"""Threads for computations that would hold up the event loop, and with it the operator in the same process.

Only pure functions of immutable values run here.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from trimtab.dashboard.web.http import RefusedError

T = TypeVar("T")

THREADS: Final = 2
MAX_WAITING: Final = 32
"""Computations of all viewers that run or wait."""
MAX_VIEWER_WAITING: Final = 4
"""Computations of one viewer, so that one viewer does not occupy all threads for long."""


class Workers:
    """Runs computations in a few threads. A viewer with too many of them is refused."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="dashboard")
        self._waiting: Counter[str] = Counter()

    async def run(self, viewer: str, compute: Callable[[], T]) -> T:
        """Return the result of a computation for a viewer. Raise RefusedError if too many wait."""
        if self._waiting[viewer] >= MAX_VIEWER_WAITING or self._waiting.total() >= MAX_WAITING:
            raise RefusedError(429, "too many of your requests are being computed; try again in a moment")
        self._waiting[viewer] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, compute)
        finally:
            self._waiting[viewer] -= 1
            self._waiting += Counter()  # drops viewers without computations

    def close(self) -> None:
        """Let running computations end, and drop waiting ones."""
        self._threads.shutdown(wait=False, cancel_futures=True)
