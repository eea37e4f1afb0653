"""Exact numbers that stop at the limits of the API, and times as seconds.

Python's integers do not overflow. Where Go wraps around, we stop at the largest number, whatever `--compat` says.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import ceil, inf, isfinite, isnan, nan

from trimtab.model.times import ZERO_TIME, parse_time

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)


def int32_of(number: float) -> int:
    """Cut a number to a 32-bit integer."""
    return _cut(number, INT32_MIN, INT32_MAX)


def int64_of(number: float) -> int:
    """Cut a number to a 64-bit integer, which is what the API accepts."""
    return _cut(number, INT64_MIN, INT64_MAX)


def _cut(number: float, lowest: int, highest: int) -> int:
    if lowest <= number <= highest:
        return int(number)
    return 0 if isnan(number) else highest if number > 0 else lowest


def round_up(number: float) -> float:
    """Round a float up to a whole number, if it is finite."""
    return float(ceil(number)) if abs(number) < INT64_MAX else number


def finite(number: float) -> float | None:
    """Return the float, or None for infinities and NaN, which JSON has not."""
    return number if isfinite(number) else None


def quotient(dividend: int, divisor: int) -> int:
    """Divide and cut toward zero, as Go does."""
    return dividend // divisor if (dividend >= 0) == (divisor > 0) else -(-dividend // divisor)


def ratio_of(dividend: float, divisor: float) -> float:
    """Divide as floats, also by zero, as in IEEE 754."""
    try:
        return float(dividend) / float(divisor)
    except ZeroDivisionError:
        return _infinity(dividend) if dividend else nan
    except OverflowError:  # an integer beyond all floats; only its sign matters
        return _infinity(dividend) if abs(dividend) >= abs(divisor) else 0.0


def _infinity(sign: float) -> float:
    # copysign would convert its argument to a float, which an integer beyond all floats refuses.
    return inf if sign > 0 else -inf


NEVER = ZERO_TIME.timestamp()
"""Go's zero time, which stands for an absent timestamp."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(moment: datetime | None) -> float:
    """Return the seconds since 1970, or `NEVER` for an absent time."""
    return NEVER if moment is None else moment.timestamp()


@lru_cache(maxsize=256)
def seconds_of(text: str | None) -> float:
    """Return the seconds since 1970 of a time as text, or raise ValueError.

    It is cached, because thousands of pods are measured at the same few times.
    """
    return NEVER if text is None else parse_time(text).timestamp()


def wire_time(moment: float) -> datetime:
    """Return a time as the API writes it: whole seconds, UTC."""
    return _EPOCH + timedelta(seconds=moment // 1)
