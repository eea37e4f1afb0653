"""Ends a test that hangs, with its stacks. A busy machine gives a test more time.

pytest's own limit is one of wall time: a healthy test that gets a tenth of a core exceeds it. Here a second counts as
much as the machine has cores for the processes that want one. The timer is faulthandler's, so that it also ends a test
that holds the interpreter.
"""

import faulthandler
import os
import threading
import time
from collections.abc import Iterator

import pytest

LIMIT = 400.0
"""Seconds that a test may take on an idle machine."""

PERIOD = 5.0
"""Seconds between two looks at the load."""


CORES = os.cpu_count() or 1


def wall_seconds(left: float, load: float, cores: int) -> float:
    """Return the wall time in which a test gets `left` seconds' worth of an idle machine."""
    return left * max(1.0, load / cores)


class Watchdog:
    """Arms faulthandler for the test that runs, and moves the alarm with the load, by one thread for the whole run."""

    def __init__(self, limit: float = LIMIT, period: float = PERIOD) -> None:
        self.limit = limit
        self.period = period
        self.stderr = -1
        self._tests = 0
        self._is_running = False
        self._left = 0.0
        """What the alarm gives the test that runs. Short tests share one alarm with the whole limit."""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="watchdog")

    def pytest_configure(self) -> None:
        """Keep the real stderr: while tests run, their output is captured."""
        self.stderr = os.dup(2)

    def pytest_unconfigure(self) -> None:
        """End the thread and close the copy."""
        self._done.set()
        if self._tests:
            self._thread.join()
        faulthandler.cancel_dump_traceback_later()
        os.close(self.stderr)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Watch one test."""
        self._tests += 1
        self._is_running = True
        if self._left < self.limit:
            self._arm(self.limit)
        if self._tests == 1:
            self._thread.start()
        try:
            return (yield)
        finally:
            self._is_running = False
            if self._left < self.limit:
                self._disarm()

    def _watch(self) -> None:
        test, before = self._tests, time.monotonic()
        while not self._done.wait(self.period):
            now = time.monotonic()
            if not self._is_running:
                self._disarm()
            elif self._tests != test:
                self._arm(self.limit)
            else:
                self._arm(self._left - (now - before) / wall_seconds(1.0, os.getloadavg()[0], CORES))
            test, before = self._tests, now

    def _arm(self, left: float) -> None:
        self._left = left
        if left > 0:  # else the last alarm stands
            wall = wall_seconds(left, os.getloadavg()[0], CORES)
            faulthandler.dump_traceback_later(wall, exit=True, file=self.stderr)

    def _disarm(self) -> None:
        self._left = 0.0
        faulthandler.cancel_dump_traceback_later()
