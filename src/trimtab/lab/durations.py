"""Durations as people read them in tables."""

from datetime import datetime

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365 * 86_400
#: Below so many seconds: the unit to show, its letter, and the smaller unit shown beside it, if any.
STEPS = (
    (10 * MINUTE, MINUTE, "m", 1, "s"),
    (3 * HOUR, MINUTE, "m", 0, ""),
    (8 * HOUR, HOUR, "h", MINUTE, "m"),
    (2 * DAY, HOUR, "h", 0, ""),
    (8 * DAY, DAY, "d", HOUR, "h"),
    (2 * YEAR, DAY, "d", 0, ""),
    (8 * YEAR, YEAR, "y", DAY, "d"),
)


def age(since: datetime, now: datetime) -> str:
    """Return the time since a moment the way `kubectl get` shows it."""
    return short_duration((now - since).total_seconds())


def short_duration(total_seconds: float) -> str:
    """Return a duration with fewer digits the longer it is."""
    seconds = int(total_seconds)
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    for below, unit, letter, small_unit, small_letter in STEPS:
        if seconds < below:
            large, small = seconds // unit, seconds % unit // small_unit if small_unit else 0
            return f"{large}{letter}" + (f"{small}{small_letter}" if small else "")
    return f"{seconds // YEAR}y"
