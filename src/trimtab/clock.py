"""Time for everything that is not a decision: the only module that reads the wall clock.

A program takes a `Clock` as its first constructor argument. `SystemClock` is the machine's; `VirtualClock` jumps
to the next deadline as soon as everything waits, so a day of scenario takes seconds, nothing really sleeps, and
the same start gives the same run. Intervals are measured with `monotonic`, never with `now`, because the wall
clock may be set while we run (fault F27).
"""

import asyncio
import selectors
import time
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """What a program needs to know about time."""

    def now(self) -> datetime:
        """Return the date and time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the date and time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean something."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running event loop."""
        await asyncio.sleep(seconds)


class VirtualClock:
    """A clock that stands still while work is done and jumps while everything waits.

    `run` starts a coroutine on an event loop of its own whose timers follow this clock. Inside it, plain
    `asyncio.sleep`, timeouts and `loop.call_later` are virtual too. Real sockets still work, but time jumps past
    them: use in-process transports under this clock.
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
        """Wait in virtual time; only valid inside `run`."""
        await asyncio.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Move on by hand, for code that uses the clock outside `run`."""
        if seconds < 0:
            raise ValueError(f"time only moves forward, not by {seconds} s")
        self._elapsed += seconds

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end in virtual time and return its result."""
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(self)) as runner:
            return runner.run(main)


class FastClock:
    """The machine's clock, `speed` times as fast, for watching an hour go by in a minute.

    Inside `run` every timer of asyncio follows it, as with `VirtualClock`; sockets work as usual.
    """

    def __init__(self, speed: float) -> None:
        if speed <= 0:
            raise ValueError(f"a clock cannot run {speed} times as fast")
        self.speed = speed
        self._start = datetime.now(UTC)
        self._began = time.monotonic()

    def now(self) -> datetime:
        """Return the fast date and time in UTC."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return the fast seconds since the start."""
        return (time.monotonic() - self._began) * self.speed

    async def sleep(self, seconds: float) -> None:
        """Wait in fast time; only valid inside `run`."""
        await asyncio.sleep(seconds)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end in fast time and return its result."""
        with asyncio.Runner(loop_factory=lambda: FastLoop(self)) as runner:
            return runner.run(main)


class FastLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers run fast."""

    def __init__(self, clock: FastClock) -> None:
        super().__init__(_FastSelector(clock.speed))
        self._fast = clock

    def time(self) -> float:
        """Return fast seconds, so that every timer of asyncio is fast."""
        return self._fast.monotonic()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers fire as soon as nothing else is left to do."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_JumpingSelector(clock))
        self._virtual = clock

    def time(self) -> float:
        """Return virtual seconds, so that every timer of asyncio is virtual."""
        return self._virtual.monotonic()


class _Selector(selectors.BaseSelector):
    """The machine's selector, with another idea of how long to wait."""

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
    """A selector that answers "nothing for you" at once and moves the clock instead of waiting."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now; otherwise jump by `timeout`."""
        # With no timer at all only another thread or a signal can wake the loop, so really wait for it.
        ready = self._inner.select(None if timeout is None else 0)
        if not ready and timeout:
            self._clock.advance(timeout)
        return ready


class _FastSelector(_Selector):
    """A selector that waits a fraction of what it is asked to."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait `timeout` fast seconds."""
        return self._inner.select(None if timeout is None else timeout / self._speed)
