"""Kubernetes' times: RFC 3339 text, UTC `datetime` for objects, integer nanoseconds where sums are taken.

Go's zero time (the year 1) is a value of its own in the API: present, and older than everything.
"""

import re
from datetime import UTC, datetime, timedelta

ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)
ZERO_TIME_NS = -62_135_596_800_000_000_000
SECOND_NS = 1_000_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))\Z",
    re.ASCII,
)


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time; fractions beyond microseconds are cut."""
    seconds, fraction_ns = _split(text)
    return seconds + timedelta(microseconds=fraction_ns // 1000)


def format_time(moment: datetime) -> str:
    """Write a time as metav1.Time does: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def format_micro_time(moment: datetime) -> str:
    """Write a time as metav1.MicroTime does: UTC, six decimals."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def parse_ns(text: str) -> int:
    """Read an RFC 3339 time as nanoseconds since 1970, exactly."""
    seconds, fraction_ns = _split(text)
    return to_ns(seconds) + fraction_ns


def format_ns(moment_ns: int) -> str:
    """Write nanoseconds since 1970 as RFC 3339, with only the decimals that are needed."""
    seconds, fraction_ns = divmod(moment_ns, SECOND_NS)
    text = format_time(_EPOCH + timedelta(seconds=seconds))
    return f"{text[:-1]}.{fraction_ns:09d}".rstrip("0") + "Z" if fraction_ns else text


def to_ns(moment: datetime) -> int:
    """Return nanoseconds since 1970, exact to the microsecond that a datetime holds."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1000


def from_ns(moment_ns: int) -> datetime:
    """Return the datetime of nanoseconds since 1970; below microseconds is cut."""
    return _EPOCH + timedelta(microseconds=moment_ns // 1000)


def _split(text: str) -> tuple[datetime, int]:
    match = _RFC3339.match(text)
    if not match:
        raise ValueError(f"{text!r} is not an RFC 3339 time such as 2026-01-15T12:00:00Z")
    *date, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = (int(part) for part in date)
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    if sign:
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        try:
            moment = moment - offset if sign == "+" else moment + offset
        except OverflowError as error:
            raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC") from error
    return moment, int((fraction or "0").ljust(9, "0"))
