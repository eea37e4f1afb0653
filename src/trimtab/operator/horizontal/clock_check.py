"""Checks our own clock against those of the API server and the metrics sources."""

import logging
import math
from collections.abc import Callable

from trimtab.clock import Clock
from trimtab.decide.horizontal.observation.clock_offset import ROUNDED_TO, describe_offset, find_clock_offset
from trimtab.decide.horizontal.rules import HpaSettings

log = logging.getLogger(__name__)

FORGOTTEN_AFTER = 300.0
"""Seconds after which a source that does not answer any more is no witness."""
NEWEST_WITHIN = 60.0
"""Seconds in which the newest sample of a source counts. It answers for many metrics, and some of them are old."""
SET_SECONDS = 1.0
"""A clock that moved by more than this against the monotonic clock was set."""


class ClockCheck:
    """Compares dates of samples and responses with our clock, for all HPAs of the process."""

    def __init__(self, clock: Clock, server: Callable[[], float | None], settings: HpaSettings) -> None:
        self._clock = clock
        self._server = server
        self._settings = settings
        self._newest: dict[str, tuple[float, float]] = {}
        """The date of the newest sample of each source, and when it arrived on the monotonic clock."""
        self._offset = 0.0
        self._base = self._wall_base()

    def note_samples(self, source: str, newest: float) -> None:
        """Note the date of the newest sample of a response."""
        monotonic = self._clock.monotonic()
        known, at = self._newest.get(source, (newest, -math.inf))
        if monotonic - at > NEWEST_WITHIN or newest - monotonic >= known - at:
            self._newest[source] = newest, monotonic
        self._update()

    def offset_at(self, now: float, monotonic: float) -> float:
        """Return the seconds to add to our clock when the age of samples is computed.

        `now` and `monotonic` are what both of our clocks say.
        """
        if abs(now - monotonic - self._base) > SET_SECONDS:
            self._update()
        return self._offset

    def offset(self) -> float:
        """Return the seconds to add to our clock now."""
        return self.offset_at(self._clock.now().timestamp(), self._clock.monotonic())

    def problem(self) -> str:
        """Return how our clock is wrong. It is empty if it seems right."""
        offset = self.offset()
        return describe_offset(offset) if offset else ""

    def _update(self) -> None:
        monotonic, self._base = self._clock.monotonic(), self._wall_base()
        self._newest = {
            source: (newest, at)
            for source, (newest, at) in self._newest.items()
            if monotonic - at <= FORGOTTEN_AFTER
        }
        sources = {source: newest - self._base - at for source, (newest, at) in self._newest.items()}
        found = find_clock_offset(self._server(), sources, self._settings)
        if found and self._offset and abs(found - self._offset) <= ROUNDED_TO:
            return  # at the edge of rounding
        if found != self._offset:
            self._offset = found
            if found:
                log.warning(
                    "clock is wrong", extra={"facts": {"offset": found, "why": describe_offset(found)}}
                )
            else:
                log.info("clock is right again")

    def _wall_base(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()
