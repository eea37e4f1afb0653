"""Integers as upstream has them: 32 and 64 bits, where it matters what happens at the edge.

Python's integers do not overflow. By ruling we stop at the largest number where Go wraps around; the
`kubernetes-1.36` setting wraps, and turns a float that fits no integer into the most negative one, as amd64 does.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import ceil, copysign, inf, isfinite, isnan, nan

from trimtab.model.times import ZERO_TIME, parse_time

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)


def int32_of(number: float, *, saturate: bool) -> int:
    """Cut a float to a 32-bit integer."""
    if INT32_MIN - 1 < number < INT32_MAX + 1:
        return int(number)
    return _outside(number, INT32_MIN, INT32_MAX, saturate=saturate)


def int64_of(number: float, *, saturate: bool) -> int:
    """Cut a float to a 64-bit integer."""
    if float(INT64_MIN) <= number < float(INT64_MAX):
        return int(number)
    return _outside(number, INT64_MIN, INT64_MAX, saturate=saturate)


def _outside(number: float, lowest: int, highest: int, *, saturate: bool) -> int:
    if not saturate:
        return lowest
    if isnan(number):
        return 0
    return highest if number > 0 else lowest


def round_up(number: float) -> float:
    """Round a float up to a whole one; infinities and NaN stay what they are."""
    return float(ceil(number)) if abs(number) < INT64_MAX else number


def fold32(number: int, *, saturate: bool) -> int:
    """Bring an integer into 32 bits."""
    if INT32_MIN <= number <= INT32_MAX:
        return number
    if saturate:
        return INT32_MAX if number > 0 else INT32_MIN
    return (number + 2**31) % 2**32 - 2**31


def fold64(number: int, *, saturate: bool) -> int:
    """Bring an integer into 64 bits, or leave it exact where we may."""
    if saturate or INT64_MIN <= number <= INT64_MAX:
        return number
    return (number + 2**63) % 2**64 - 2**63


def saturated(number: int) -> int:
    """Stop an integer at the 64 bits that JSON readers and the API agree on."""
    return number if INT64_MIN <= number <= INT64_MAX else INT64_MAX if number > 0 else INT64_MIN


def finite(number: float) -> float | None:
    """Return the float, or None for what JSON has no number for: infinities and NaN."""
    return number if isfinite(number) else None


def quotient(dividend: int, divisor: int) -> int:
    """Divide and cut toward zero, as Go does; Python would round down."""
    return dividend // divisor if (dividend >= 0) == (divisor > 0) else -(-dividend // divisor)


def ratio_of(dividend: float, divisor: float) -> float:
    """Divide as floats; division by zero gives an infinity or NaN, as IEEE 754 says."""
    try:
        return float(dividend) / float(divisor)
    except ZeroDivisionError:
        return nan if not dividend else copysign(inf, dividend)
    except OverflowError:  # an integer that no float holds; its sign is all that matters
        return copysign(inf, dividend) if abs(dividend) >= abs(divisor) else 0.0


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
