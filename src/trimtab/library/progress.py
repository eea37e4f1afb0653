"""Shows on standard error how far a long call is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from trimtab.clock import Clock, SystemClock

OnProgress = Callable[[str, float], None]
"""Called with what is done and the share of the whole."""

PATIENCE = 1.0
"""Seconds before the first line. Shorter calls show nothing."""

PERIOD = 0.2
"""Seconds between two lines."""


class ProgressLine:
    """A line that is overwritten until the call ends, and then cleared."""

    def __init__(self, clock: Clock, stream: TextIO) -> None:
        self._clock = clock
        self._stream = stream
        self._next = clock.monotonic() + PATIENCE
        self._width = 0

    def show(self, what: str, share: float) -> None:
        """Write the line if it is due."""
        now = self._clock.monotonic()
        if now < self._next:
            return
        self._next = now + PERIOD
        line = f"{what}: {share:.0%}"
        self._write(line.ljust(self._width))
        self._width = len(line)

    def clear(self) -> None:
        """Overwrite the last line with blanks."""
        if self._width:
            self._write(" " * self._width)
            self._write("")

    def _write(self, line: str) -> None:
        self._stream.write(f"\r{line}")
        self._stream.flush()


@contextmanager
def progress_line() -> Iterator[OnProgress]:
    """Return a function that shows progress on a terminal and in a notebook, and nowhere else."""
    if not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield _show_nothing
        return
    line = ProgressLine(SystemClock(), sys.stderr)
    try:
        yield line.show
    finally:
        line.clear()


def _show_nothing(_what: str, _share: float) -> None:
    """Show nothing, because standard error is a file or a pipe."""
