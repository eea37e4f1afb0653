"""Shows on a terminal that a command still waits, and how far it is."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

PATIENCE_SECONDS = 1.0
"""How long nothing is shown, and the time between two changes of the line."""


@contextmanager
def waiting(what: str, stream: TextIO | None = None, period: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Show `what` and the seconds so far on standard error, if it is a terminal, until the context ends."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield
        return
    is_over = threading.Event()
    line = threading.Thread(target=_show, args=(what, stream, period, is_over), daemon=True)
    line.start()
    try:
        yield
    finally:
        is_over.set()
        line.join()


def _show(what: str, stream: TextIO, period: float, is_over: threading.Event) -> None:
    text, count = "", 0
    while not is_over.wait(period):
        count += 1
        text = f"{what} ... {count * period:.0f} s"
        stream.write(f"\r{text}")
        stream.flush()
    if text:
        stream.write(f"\r{' ' * len(text)}\r")
        stream.flush()


@contextmanager
def reporting(report: Callable[[], None], period: float = 2 * PATIENCE_SECONDS) -> Iterator[None]:
    """Call `report` in the running event loop every `period` seconds until the context ends.

    The seconds are those of the machine's clock, whatever the clock of the event loop is.
    """
    loop, is_over = asyncio.get_running_loop(), threading.Event()

    def call() -> None:
        if not is_over.is_set():
            report()

    def run() -> None:
        while not is_over.wait(period):
            loop.call_soon_threadsafe(call)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
