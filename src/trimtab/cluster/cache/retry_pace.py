"""When an informer tries again after a failure, and when it lists again."""

import random

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.transport.rate_limits import Backoff

LONGEST_RELIST_DELAY = 5.0
"""The longest delay in seconds before a relist that the server asked for. Failures back off to 30 s."""

RELIST_SHARE = 5.0
"""Relists that follow each other are apart by this many times the duration of the last list."""


class RetryPace:
    """The delays of one informer. They grow with failures and with relists that follow each other."""

    def __init__(self, clock: Clock, jitter: random.Random) -> None:
        self._backoff = Backoff(clock, jitter)
        self._relist_backoff = Backoff(clock, jitter, longest=LONGEST_RELIST_DELAY)
        self._may_relist_at_once = True
        self.list_seconds = 0.0
        """The duration of the last list."""

    def note_progress(self) -> None:
        """Note a list or a new event."""
        self._backoff.reset()

    def note_working_watch(self) -> None:
        """Note a watch that was open for a while."""
        self._backoff.reset()
        self._relist_backoff.reset()
        self._may_relist_at_once = True

    def delay(self, error: Exception) -> float:
        """Return the delay after a failure."""
        delay = self._backoff.delay()
        if isinstance(error, errors.ApiError) and error.retry_after:
            delay = max(delay, error.retry_after)
        return delay

    def relist_delay(self, *, may_break_again: bool) -> float:
        """Return 0 for the first relist after a working watch, and growing delays for those that follow.

        What broke a watch may come again with every event, so such a relist always waits.
        """
        is_at_once = self._may_relist_at_once and not may_break_again
        self._may_relist_at_once = False
        return 0.0 if is_at_once else max(self._relist_backoff.delay(), RELIST_SHARE * self.list_seconds)
