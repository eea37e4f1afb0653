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


def wall_seconds(left: float, load: float, cores: int) -> float:
    """Return the wall time in which a test gets `left` seconds' worth of an idle machine."""
    return left * max(1.0, load / cores)


class Watchdog:
    """Arms faulthandler for the test that runs, and moves the alarm with the load."""

    def __init__(self, limit: float = LIMIT, period: float = PERIOD) -> None:
        self.limit = limit
        self.period = period
        self.stderr = -1

    def pytest_configure(self) -> None:
        """Keep the real stderr: while tests run, their output is captured."""
        self.stderr = os.dup(2)

    def pytest_unconfigure(self) -> None:
        """Close the copy."""
        faulthandler.cancel_dump_traceback_later()
        os.close(self.stderr)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Watch one test."""
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(done,), daemon=True, name="watchdog")
        watcher.start()
        try:
            return (yield)
        finally:
            done.set()
            watcher.join()
            faulthandler.cancel_dump_traceback_later()

    def _watch(self, done: threading.Event) -> None:
        left, cores = self.limit, os.cpu_count() or 1
        before = time.monotonic()
        while True:
            load = os.getloadavg()[0]
            faulthandler.dump_traceback_later(
                wall_seconds(max(left, 0.01), load, cores), exit=True, file=self.stderr
            )
            if done.wait(self.period):
                return
            now = time.monotonic()
            left -= (now - before) / wall_seconds(1.0, load, cores)
            before = now
