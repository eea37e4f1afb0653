"""Logs failures that repeat at every try, without a line for each of them."""

import logging
from typing import Final

from trimtab.clock import Clock

REPEAT_SECONDS: Final = 300.0
_MOST: Final = 16


class FailureLog:
    """Logs each failure once, and again every five minutes while it lasts. A success ends it."""

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._logged_at: dict[str, float] = {}

    def failed(self, message: str) -> None:
        """Log a failure as a warning, unless the same was logged less than five minutes ago."""
        now = self._clock.monotonic()
        before = self._logged_at.get(message)
        if before is not None and now - before < REPEAT_SECONDS:
            return
        self._logged_at.pop(message, None)
        self._logged_at[message] = now
        while len(self._logged_at) > _MOST:
            del self._logged_at[next(iter(self._logged_at))]
        self._log.warning("%s", message)

    def succeeded(self) -> None:
        """Log every failure from now on as a new one."""
        self._logged_at.clear()
