"""Tasks beside the work of their owner: none of them fails without a word, and none stays away for good.

`asyncio` keeps the exception of a task until somebody asks for it. A task that nobody waits for would fail silently.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)

RESTART_SECONDS = 1.0
"""How long a loop that failed is left alone before it starts again."""


def keep_running(name: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Start a loop that runs until cancelled; one that fails unexpectedly is logged and started again."""
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
    """Start work that nobody waits for; a failure is logged."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: _log_failure(name, done))
    return task


def _log_failure(name: str, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s failed: %s", name, error, exc_info=error)
