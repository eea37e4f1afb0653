"""A command that waits shows it on a terminal, and leaves nothing there."""

import asyncio
import io
import threading

import pytest

from trimtab.cli.progress import reporting, waiting


class Terminal(io.StringIO):
    """A terminal that knows when something was written."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def flush(self):
        self.written.set()


def test_a_terminal_shows_what_is_waited_for_and_is_cleared():
    terminal = Terminal()
    with waiting("reading the cluster", terminal, period=0.001):
        terminal.written.wait()
    shown = terminal.getvalue()
    assert shown.startswith("\rreading the cluster ... 0 s")
    assert shown.split("\r")[-2].strip() == ""
    assert shown.endswith("\r")


def test_a_short_wait_shows_nothing_and_an_error_passes():
    terminal = Terminal()
    with pytest.raises(KeyError), waiting("reading the cluster", terminal, period=3600):
        raise KeyError
    assert terminal.getvalue() == ""


def test_a_file_gets_nothing():
    stream = io.StringIO()
    with waiting("reading the cluster", stream, period=0):
        pass
    assert stream.getvalue() == ""


async def test_progress_is_reported_in_the_event_loop_until_the_context_ends():
    threads, is_reported = [], asyncio.Event()

    def report():
        threads.append(threading.get_ident())
        is_reported.set()

    with reporting(report, period=0.001):
        await is_reported.wait()
    count = len(threads)
    await asyncio.sleep(0)  # what the thread has asked for by now
    assert len(threads) == count
    assert set(threads) == {threading.get_ident()}
