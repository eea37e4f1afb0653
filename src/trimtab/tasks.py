"""Starts background tasks whose failures are logged.

`asyncio` reports the exception of a task only to code that awaits it. These tasks are never awaited.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)

RESTART_SECONDS = 1.0
"""Seconds before a failed loop starts again."""


def keep_running(name: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Start a loop that runs until cancelled. If it fails, log the error and start it again."""
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


def start(name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that is never awaited, and log its failure."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: _log_failure(name, done))
    return task


def _log_failure(name: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s failed: %s", name, error, exc_info=error)
