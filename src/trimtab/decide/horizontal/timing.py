"""Moments as seconds since 1970.

Times on the wire are whole seconds, which a double holds exactly; comparing doubles costs a third of comparing
datetimes, and no sum of them can overflow the year 9999.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from trimtab.model.times import ZERO_TIME, parse_time

NEVER = ZERO_TIME.timestamp()
"""Go's zero time: what an absent timestamp reads as, older than everything."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(moment: datetime | None) -> float:
    """Return the seconds since 1970; an absent moment is Go's zero time."""
    return NEVER if moment is None else moment.timestamp()


@lru_cache(maxsize=256)
def seconds_of(text: str | None) -> float:
    """Return the same of a moment as text; thousands of pods are measured at the same few. Raise ValueError if it is none."""
    return NEVER if text is None else parse_time(text).timestamp()


def wire_time(moment: float) -> datetime:
    """Return the moment as the API writes it: whole seconds, UTC."""
    return _EPOCH + timedelta(seconds=moment // 1)
