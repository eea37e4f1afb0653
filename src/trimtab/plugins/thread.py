"""Runs the calls of one plug-in on an event loop in a thread of its own.

A plug-in that blocks its thread delays nothing but its own answers. A thread cannot be ended from outside, so calls that
outlive their time are counted, and no further ones start while there are too many.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from trimtab.plugins.time_limit import ends_the_program

T = TypeVar("T")

MAX_CALLS = 16
"""Calls of one plug-in at a time, with those that took too long and still run."""


class TooManyCallsError(Exception):
    """Too many calls of the plug-in have not ended."""


@dataclass(frozen=True)
class _Raised:
    error: BaseException


class PluginThread:
    """Runs coroutines in a daemon thread, which starts with the first call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls = 0
        self._lock = threading.Lock()

    async def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a call. Cancelling this also cancels the call, unless it blocks its thread."""
        with self._lock:
            if self._calls >= MAX_CALLS:
                raise TooManyCallsError(f"{self._calls} earlier calls have not ended")
            self._calls += 1
        if self._loop is None:
            self._loop = self._start()
        result = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._run(function), self._loop))
        if isinstance(result, _Raised):
            raise result.error
        return result

    def close(self) -> None:
        """Let the thread end after what it does now. A blocked thread ends with the process."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    async def _run(self, function: Callable[[], Awaitable[T]]) -> "T | _Raised":
        try:
            return await function()
        except Exception:
            raise
        except BaseException as error:
            if ends_the_program(error):
                raise
            return _Raised(error)  # raised in a task, it would end the loop or cancel the caller
        finally:
            with self._lock:
                self._calls -= 1

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_DaemonThreads(MAX_CALLS))
        threading.Thread(target=_serve, args=(loop,), name=self._name, daemon=True).start()
        return loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        # A task that ignores its cancellation would keep the thread for ever.
        with contextlib.suppress(TimeoutError):
            loop.run_until_complete(asyncio.wait_for(asyncio.gather(*pending, return_exceptions=True), 1.0))
        loop.close()


class _DaemonThreads(ThreadPoolExecutor):
    """Runs each call of `asyncio.to_thread` in a daemon thread, since the interpreter waits for all others at its end."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                future.set_exception(error)

        threading.Thread(target=run, name="plug-in", daemon=True).start()
        return future
