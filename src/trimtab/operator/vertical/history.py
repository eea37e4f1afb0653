"""History that is read beside the loop: namespace by namespace, with progress, and never in anybody's way.

A VPA whose history is on its way waits, and says so in its condition FetchingHistory; all others go on. A namespace
whose history cannot be read starts from its checkpoints, and that is told.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtab.clock import Clock
from trimtab.metrics.prometheus import PrometheusError, QueryRefusedError
from trimtab.metrics.usage_history import SlowHistoryError, UsageHistoryReader
from trimtab.model.usage_history import UsageHistory

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Namespaces read at the same time: Prometheus has others to serve."""
ATTEMPTS = 3
RETRY_SECONDS = 10.0
"""Between attempts: a Prometheus that starts together with us is there soon."""
REPORT_SECONDS = 10.0


@dataclass(frozen=True)
class Failed:
    """Why a namespace's history could not be read."""

    why: str


@dataclass
class _Progress:
    wanted: int = 0
    read: int = 0
    failed: int = 0
    told_at: float = float("-inf")


@dataclass
class HistoryLoader:
    """Reads a namespace when it is wanted; `take` hands the result over once."""

    clock: Clock
    reader: UsageHistoryReader
    _tasks: dict[str, asyncio.Task[UsageHistory | Failed]] = field(default_factory=dict)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _progress: _Progress = field(default_factory=_Progress)

    def want(self, namespace: str, known_keys: Iterable[str]) -> None:
        """Start reading a namespace, if it is not on its way."""
        if namespace not in self._tasks:
            self._progress.wanted += 1
            self._tasks[namespace] = asyncio.ensure_future(self._read(namespace, frozenset(known_keys)))

    def take(self, namespace: str) -> UsageHistory | Failed | None:
        """Return what was read of a namespace, once; None if there is nothing (any more)."""
        task = self._tasks.get(namespace)
        if task is None or not task.done():
            return None
        del self._tasks[namespace]
        return task.result()

    @property
    def counts(self) -> dict[str, int]:
        """Return how many namespaces are being read, were read, and could not be."""
        done = self._progress
        return {
            "reading": done.wanted - done.read - done.failed,
            "read": done.read,
            "failed": done.failed,
        }

    async def finished(self, namespaces: Iterable[str]) -> None:
        """Wait until none of these namespaces is on its way."""
        tasks = [task for namespace in namespaces if (task := self._tasks.get(namespace)) is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Stop reading."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.reader.client.close()

    async def _read(self, namespace: str, known_keys: frozenset[str]) -> UsageHistory | Failed:
        found: UsageHistory | Failed
        async with self._slots:
            try:
                found = await self._try(namespace, known_keys)
                self._progress.read += 1
            except PrometheusError as error:
                found = Failed(str(error))
                self._progress.failed += 1
                log.warning(
                    "history of namespace %s cannot be read, its checkpoints are used: %s", namespace, error
                )
        self._report()
        return found

    async def _try(self, namespace: str, known_keys: frozenset[str]) -> UsageHistory:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self.reader.read(namespace, self.clock.now(), known_keys)
            except PrometheusError as error:
                if attempt == ATTEMPTS or _is_final(error):
                    raise
                log.info("history of namespace %s: attempt %d failed: %s", namespace, attempt, error)
                await self.clock.sleep(RETRY_SECONDS)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _report(self) -> None:
        done, now = self._progress, self.clock.monotonic()
        if self.counts["reading"] and now - done.told_at < REPORT_SECONDS:
            return
        done.told_at = now
        text = "history from Prometheus: %d of %d namespaces read, %d failed"
        log.info(text, done.read, done.wanted, done.failed)


def _is_final(error: PrometheusError) -> bool:
    return isinstance(error, SlowHistoryError) or isinstance(error.__cause__, QueryRefusedError)
