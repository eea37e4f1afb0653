"""Clocks for programs, their background tasks, and the CPU time of single coroutines.

Only this module reads the wall clock.

A program takes a `Clock` as its first constructor argument. `SystemClock` is the machine's clock. `VirtualClock` jumps
to the next deadline when all tasks wait, so that a day of a scenario takes seconds and runs are reproducible. Intervals
are measured with `monotonic`, because the wall clock may be set while the program runs.
"""

import asyncio
import logging
import selectors
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)


class Clock(Protocol):
    """The time and the waiting of a program."""

    def now(self) -> datetime:
        """Return the date and time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never decrease. Only differences are meaningful."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the date and time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never decrease. Only differences are meaningful."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running event loop."""
        await asyncio.sleep(seconds)


class VirtualClock:
    """A clock that stands still while tasks run and jumps while all tasks wait.

    `run` starts a coroutine on its own event loop, whose timers follow this clock. Inside it, `asyncio.sleep`, timeouts
    and `loop.call_later` are virtual too. Use in-process transports under this clock, since time jumps past real sockets.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Return the virtual date and time in UTC."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return the virtual seconds since the start."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time. Valid inside `run` only."""
        await asyncio.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Advance the clock, for code that uses it outside of `run`."""
        if seconds < 0:
            raise ValueError(f"time only moves forward, not by {seconds} s")
        self._elapsed += seconds

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end in virtual time and return its result."""
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(self)) as runner:
            return runner.run(main)


class FastClock:
    """The machine's clock, `speed` times as fast.

    Inside `run` all timers of asyncio follow it, as with `VirtualClock`. Sockets work as usual. With a `past` it starts so
    many seconds ago and jumps, as a `VirtualClock` does, until it has caught up with the machine's clock. What happens
    until then takes no time. Clients on sockets should connect when `behind` is 0.

    A clock that runs faster than the machine's slows down while the event loop is busy. Otherwise a second in which a busy machine
    runs another program would be a minute of silence, which watches and Leases take for a failure.
    """

    def __init__(self, speed: float, *, past: float = 0.0) -> None:
        if speed <= 0:
            raise ValueError(f"a clock cannot run {speed} times as fast")
        self.speed = speed
        self._past = past
        self._start = datetime.now(UTC) - timedelta(seconds=past)
        self._created = self._began = time.monotonic()
        self._elapsed = 0.0
        self._jumps = past > 0
        self._longest = self._step

    @property
    def behind(self) -> float:
        """Return the seconds until the clock has caught up with the machine's clock."""
        lag = self._past + time.monotonic() - self._created - self._elapsed
        return max(lag, 0.0) if self._jumps else 0.0

    def now(self) -> datetime:
        """Return the fast date and time in UTC."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return the fast seconds since the start."""
        if self._jumps:
            return self._elapsed
        return self._elapsed + min((time.monotonic() - self._began) * self.speed, self._longest)

    @property
    def _step(self) -> float:
        """Return the fast seconds that may pass while the event loop is busy."""
        return _BUSY_SECONDS if self.speed > 1 else inf

    def begin_wait(self, timeout: float | None) -> None:
        """Let no more than `timeout` and a step pass until `end_wait`."""
        self._advance(inf if timeout is None else timeout + self._step)

    def end_wait(self) -> None:
        """Let no more than a step pass until the next wait."""
        self._advance(self._step)

    def _advance(self, longest: float) -> None:
        if not self._jumps:
            self._elapsed, self._began = self.monotonic(), time.monotonic()
        self._longest = longest

    def jump(self, seconds: float) -> None:
        """Advance a clock that is behind, to the machine's time at most. From there it runs."""
        behind = self.behind
        self._elapsed += min(seconds, behind)
        if seconds >= behind:
            self._jumps, self._began = False, time.monotonic()

    async def catch_up(self) -> None:
        """Wait until the clock has caught up with the machine's clock. Valid inside `run` only."""
        while self._jumps:  # noqa: ASYNC110 - the selector ends it, which has no event
            await asyncio.sleep(max(self.behind, _CATCH_UP_SECONDS))

    async def sleep(self, seconds: float) -> None:
        """Wait in fast time. Valid inside `run` only."""
        await asyncio.sleep(seconds)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end in fast time and return its result."""
        with asyncio.Runner(loop_factory=lambda: FastLoop(self)) as runner:
            return runner.run(main)


_BUSY_SECONDS = 5.0
"""How many fast seconds pass at most while the event loop is busy. Watches wait 60 s, and requests 10 s."""
_CATCH_UP_SECONDS = 0.001
"""The shortest sleep of a clock that catches up: a sleep of 0 would let no time pass."""


class FastLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers run fast."""

    def __init__(self, clock: FastClock) -> None:
        super().__init__(_FastSelector(clock))
        self._fast = clock

    def time(self) -> float:
        """Return fast seconds, so that every timer of asyncio is fast."""
        return self._fast.monotonic()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers fire when no task can run."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_JumpingSelector(clock))
        self._virtual = clock

    def time(self) -> float:
        """Return virtual seconds, so that every timer of asyncio is virtual."""
        return self._virtual.monotonic()


class _Selector(selectors.BaseSelector):
    """A selector that delegates to the machine's and changes how long it waits."""

    def __init__(self) -> None:
        self._inner = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a file object."""
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Stop watching a file object."""
        return self._inner.unregister(fileobj)

    def close(self) -> None:
        """Release the underlying selector."""
        self._inner.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return what is being watched."""
        return self._inner.get_map()


class _JumpingSelector(_Selector):
    """A selector that advances the clock instead of waiting."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now, or advance by `timeout`."""
        # With no timer at all only another thread or a signal can wake the loop, so really wait for it.
        ready = self._inner.select(None if timeout is None else 0)
        if not ready and timeout:
            self._clock.advance(timeout)
        return ready


class _FastSelector(_Selector):
    """A selector that waits a fraction of the timeout, and jumps while its clock is behind."""

    def __init__(self, clock: FastClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait `timeout` fast seconds."""
        if timeout and self._clock.behind:
            ready = self._inner.select(0)
            if not ready:
                self._clock.jump(timeout)
            return ready
        self._clock.begin_wait(timeout)
        ready = self._inner.select(None if timeout is None else timeout / self._clock.speed)
        self._clock.end_wait()
        return ready


RESTART_SECONDS = 1.0
"""Seconds before a failed loop starts again."""


def keep_running(name: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Start a loop that runs until cancelled. If it fails, log the error and start it again.

    asyncio reports the exception of a task only to code that awaits it, and this task is never awaited.
    """
    return asyncio.ensure_future(_keep_running(name, run))


async def _keep_running(name: str, run: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await run()
        except Exception:
            log.exception("%s failed and starts again", name)
        else:
            log.error("%s ended by itself and starts again", name)
        await asyncio.sleep(RESTART_SECONDS)


def start_task(name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that is never awaited, and log its failure."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: _log_failure(name, done))
    return task


def _log_failure(name: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s failed: %s", name, error, exc_info=error)


class CpuMeter:
    """Adds up the CPU seconds of what it runs. `read` returns the CPU time of this thread.

    The time of a whole thread includes every task that runs while a coroutine waits. A meter counts only the steps of the
    coroutine itself. The wall time of a step on a busy machine is no measure of its cost.
    """

    def __init__(self, read: Callable[[], float] = time.thread_time) -> None:
        self._read = read
        self.seconds = 0.0
        """The CPU seconds so far."""

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Add the CPU time of a block that does not wait."""
        started = self._read()
        try:
            yield
        finally:
            self.seconds += self._read() - started

    def run(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Return an awaitable that runs a coroutine and adds the CPU time of its steps."""
        return _Metered(self, work)


class _Metered(Generic[T]):
    """A coroutine whose steps are measured."""

    def __init__(self, meter: CpuMeter, work: Coroutine[Any, Any, T]) -> None:
        self._meter = meter
        self._work = work

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[Any], Any] = self._work.send
        passed: Any = None
        while True:
            try:
                with self._meter.measure():
                    waits_for = step(passed)
            except StopIteration as done:
                result: T = done.value
                return result
            try:
                step, passed = self._work.send, (yield waits_for)
            except BaseException as error:  # noqa: BLE001 - a cancellation has to reach the coroutine
                step, passed = self._work.throw, error
