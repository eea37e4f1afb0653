"""Compares the clock of the API server with our own."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from trimtab.clock import Clock

_AGGREGATED = "metrics.k8s.io/"
"""Responses of these groups come through the API server from another server, with that server's date."""


class ServerClock:
    """The headers of the last response of the API server, and when they arrived."""

    __slots__ = ("_at", "_clock", "_headers")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._headers: Mapping[str, str] = {}
        self._at = 0.0

    def note(self, path: str, headers: Mapping[str, str]) -> None:
        """Note a response. Its headers are decoded only when the date is needed."""
        if _AGGREGATED not in path:
            self._headers, self._at = headers, self._clock.monotonic()

    def offset(self) -> float | None:
        """Return by how many seconds the server's clock is ahead of ours, or None if that is unknown.

        The date was noted with the monotonic clock, so the result is right at once after our clock is set.
        """
        text = self._headers.get("date")
        if not text:
            return None
        try:
            date = parsedate_to_datetime(text).timestamp()
        except (ValueError, OverflowError):
            return None
        return date + self._clock.monotonic() - self._at - self._clock.now().timestamp()
