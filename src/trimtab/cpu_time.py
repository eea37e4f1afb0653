"""Measures the CPU time of single coroutines and functions on a shared event loop.

The time of a whole thread includes every task that runs while a coroutine waits. A meter counts only the steps of the
coroutine itself. The wall time of a step on a busy machine is no measure of its cost, so it is not used.
"""

import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CpuMeter:
    """Adds up the CPU seconds of what it runs. `read` returns the CPU time of this thread."""

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
