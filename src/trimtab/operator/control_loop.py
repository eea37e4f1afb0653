"""Runs a control loop: one step per period while this replica holds its lease."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, ClassVar, Protocol

from prometheus_client import CollectorRegistry, Counter

from trimtab.clock import Clock
from trimtab.cluster import errors

log = logging.getLogger(__name__)
STAND_BY_SECONDS = 1.0
"""How often a replica without the lease checks whether it holds it."""
NOT_STARTED = "no loop is complete yet"


class WriteLease(Protocol):
    """The right to write: a fence, or the ownership of shards."""

    def may_write(self) -> bool:
        """Return whether this replica may write now."""
        ...


class ControlLoopMetrics:
    """Counts failed steps of all control loops of a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.failures = Counter(
            "trimtab_control_loop_failures",
            "Steps of a control loop that failed and were repeated in the next period.",
            ("loop",),
            registry=registry,
        )


class ControlLoop:
    """A component that repeats `step`, and logs, counts and reports failed steps."""

    name: ClassVar[str]
    min_pause: ClassVar[float] = 0.0
    """Seconds between two steps, however often the loop is woken."""
    settle_pause: ClassVar[float] = 0.0
    """Seconds between a wake-up and the step, so that related changes arrive together."""

    def __init__(
        self, clock: Clock, lease: WriteLease, period: float, metrics: ControlLoopMetrics | None = None
    ) -> None:
        self._clock = clock
        self._lease = lease
        self._period = period
        self._loop_metrics = metrics
        self._woken = asyncio.Event()
        self._problems: dict[str, str] = {}
        self.is_stepping = False

    async def step(self) -> object:
        """Bring everything up to date once."""
        raise NotImplementedError

    async def start(self) -> None:
        """Wait until the first step can run."""

    async def close(self) -> None:
        """End what `start` began."""

    def lease_acquired(self) -> None:
        """Drop state that another replica may have changed meanwhile."""

    def seconds_to_next(self, began: float) -> float:
        """Return the pause before the next step, given when the last step began."""
        return self._period - (self._clock.monotonic() - began)

    def wakers(self) -> list[Coroutine[Any, Any, object]]:
        """Return what may end a pause early."""
        return [self._woken.wait()]

    def wake(self) -> None:
        """Run the next step as soon as possible."""
        self._woken.set()

    def health(self) -> dict[str, str]:
        """Return the problems of the last step, by name."""
        return dict(self._problems)

    def shard_gained(self, shard: int) -> None:
        """Step at once."""
        self.wake()

    def shard_lost(self, shard: int) -> None:
        """Do nothing. The fence of the shard stops its writes."""

    def is_shard_busy(self, shard: int) -> bool:
        """Return whether a write for the shard is under way."""
        return False

    async def run(self) -> None:
        """Step until cancelled."""
        try:
            await self.start()
            while True:
                if not self._lease.may_write():
                    await self._stand_by()
                self._woken.clear()
                began = self._clock.monotonic()
                await self.step_safely()
                await self._pause(began)
        finally:
            await self.close()

    async def step_safely(self) -> None:
        """Run one step. The next step starts from the state of the cluster, whatever failed in this one."""
        self.is_stepping = True
        try:
            await self.step()
        except errors.ClusterError as error:
            self._failed(str(error))
            log.warning("%s loop: %s", self.name, error)
        except Exception as error:
            self._failed(f"the last loop failed: {error}")
            log.exception("%s loop", self.name)
        finally:
            self.is_stepping = False

    def _failed(self, problem: str) -> None:
        self._problems[self.name] = problem
        if self._loop_metrics is not None:
            self._loop_metrics.failures.labels(self.name).inc()

    async def _stand_by(self) -> None:
        self._problems = {}
        while not self._lease.may_write():
            await self._clock.sleep(STAND_BY_SECONDS)
        self.lease_acquired()

    async def _pause(self, began: float) -> None:
        if self.min_pause:
            await self._clock.sleep(self.min_pause)
        seconds = max(self.seconds_to_next(began), 0.0)
        waits = [asyncio.ensure_future(waker) for waker in (self._clock.sleep(seconds), *self.wakers())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in waits:
                waiting.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if self.settle_pause and self._woken.is_set():
            await self._clock.sleep(self.settle_pause)
