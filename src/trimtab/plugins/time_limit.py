"""Ends a call that takes too long, on the main thread of a system that has interval timers.

A pure plug-in runs on the thread of the decisions. While it loops or sleeps nothing else is decided, so a signal raises
`TookTooLong` inside the plug-in. On other threads and systems calls are measured but not ended.

A plug-in may raise KeyboardInterrupt itself, which is a failure like any other. Ctrl-C raises `CtrlC` while a plug-in runs, if
the program has no handler of its own; an event loop has one, which raises nothing in a plug-in.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from trimtab.plugins.kinds import DEFAULT_BUDGET

log = logging.getLogger(__name__)

WALL_TIME = 10.0
"""How many times its budget of CPU time a pure call may take by the wall clock, because a busy machine stalls for a while."""
LONGEST_WAIT = 2.0
"""How many times its budget, or the default one, a pure call may take by the wall clock before it counts as one that waits."""
WAITS_BEFORE_FAILURE = 10
"""Calls in a row that wait until that is a failure; a busy machine does not stall so often in a row."""
MOST_INTERRUPTS = 3
"""How many signals in a row a plug-in may catch before the process ends."""
REPEAT = 0.05
"""Seconds after which the signal comes again, if the plug-in caught the first."""

T = TypeVar("T")
A = TypeVar("A")


class _Running:
    """The call that a signal interrupts; there is one, on the main thread."""

    name = ""
    interrupts = 0


_running = _Running()


class TookTooLong(BaseException):
    """A call did not end within its limit. A plug-in's `except Exception` does not catch it."""


class CtrlC(KeyboardInterrupt):
    """The user ends the program while a plug-in runs."""


class WaitCount:
    """Counts the calls in a row of a pure plug-in that take long by the wall clock."""

    def __init__(self, budget: float) -> None:
        """Count for a plug-in with this budget of CPU time."""
        self._longest = LONGEST_WAIT * max(budget, DEFAULT_BUDGET)
        self._in_a_row = 0

    def add(self, seconds: float) -> None:
        """Count a call."""
        self._in_a_row = self._in_a_row + 1 if seconds > self._longest else 0

    @property
    def problem(self) -> str:
        """Return what is wrong with a plug-in that waits in each call, or an empty text."""
        if self._in_a_row < WAITS_BEFORE_FAILURE:
            return ""
        return f"sleeps or waits: {WAITS_BEFORE_FAILURE} calls in a row took longer than {self._longest * 1000:.0f} ms"


def ends_the_program(error: BaseException) -> bool:
    """Return whether an exception comes from the user or from our own task, not from the plug-in."""
    if isinstance(error, asyncio.CancelledError):
        return _is_cancelled()
    return isinstance(error, CtrlC)


def call_within(seconds: float, function: Callable[[A], T], argument: A, name: str = "the plug-in") -> T:
    """Return `function(argument)`, or raise TookTooLong after `seconds` where the system can.

    A function that catches TookTooLong again and again can be ended in no other way than with the process.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(argument)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with _noticing_ctrl_c():
            return _within(seconds, function, argument, name)
    return _within(seconds, function, argument, name)


def _within(seconds: float, function: Callable[[A], T], argument: A, name: str) -> T:
    if not _can_interrupt():
        return function(argument)
    _running.name, _running.interrupts = name, 0
    signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT)
    try:
        return _inside(function, argument)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if _running.interrupts:
            raise TookTooLong  # also if it caught the first one, and answered or raised too late


@contextmanager
def _noticing_ctrl_c() -> Iterator[None]:
    signal.signal(signal.SIGINT, _raise_ctrl_c)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _raise_ctrl_c:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _raise_ctrl_c(_signal: int, _frame: FrameType | None) -> None:
    raise CtrlC


def _is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False  # no event loop runs on this thread
    return task is not None and task.cancelling() > 0


def _inside(function: Callable[[A], T], argument: A) -> T:
    # This frame tells the handler that the function has begun, also if it is compiled and has no frame.
    return function(argument)


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    """Raise TookTooLong in the function. A signal that arrives just after its end is dropped."""
    while frame is not None:
        if frame.f_code is _inside.__code__:
            _running.interrupts += 1
            if _running.interrupts > MOST_INTERRUPTS:
                _give_up(_running.name)
            raise TookTooLong
        frame = frame.f_back


def _give_up(name: str) -> None:
    text = (
        f"{name} took too long and caught {MOST_INTERRUPTS} interrupts, so that nothing else can run: this process ends; "
        "let it catch Exception and not BaseException, or leave it out of --plugins"
    )
    log.critical("%s", text)
    sys.stderr.write(f"failed: {text}\n")
    sys.stderr.flush()
    os._exit(1)


def _can_interrupt() -> bool:
    if not hasattr(signal, "setitimer"):
        return False
    if signal.getitimer(signal.ITIMER_REAL)[0]:
        return False  # another library's timer stays as it is
    if signal.getsignal(signal.SIGALRM) is not _interrupt:
        signal.signal(signal.SIGALRM, _interrupt)
    return True
