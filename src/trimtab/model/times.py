"""Times and durations as Kubernetes, Go and Prometheus write them.

Objects hold times as UTC `datetime`; sums use integer nanoseconds since 1970. Go's zero time (the year 1) is a value of
its own in the API: present, and older than every other time.
"""

import re
from datetime import UTC, datetime, timedelta

ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)
ZERO_TIME_NS = -62_135_596_800_000_000_000
SECOND_NS = 1_000_000_000

_LARGEST_INT32 = 2**31 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))\Z",
    re.ASCII,
)

_UNITS_US = {"ns": 0.001, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6, "m": 6e7, "h": 3.6e9}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)\Z", re.ASCII)
_LONG_DURATION = re.compile(r"(?:([0-9]+)w)?(?:([0-9]+)d)?(.*)\Z", re.ASCII | re.DOTALL)


def parse_time(text: str) -> datetime:
    """Return an RFC 3339 time, cut to microseconds."""
    seconds, fraction_ns = _parse(text)
    return seconds + timedelta(microseconds=fraction_ns // 1000)


def format_time(moment: datetime) -> str:
    """Return the text of a time as metav1.Time writes it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def format_micro_time(moment: datetime) -> str:
    """Return the text of a time as metav1.MicroTime writes it: UTC, six decimals."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def parse_ns(text: str) -> int:
    """Return an RFC 3339 time as exact nanoseconds since 1970."""
    seconds, fraction_ns = _parse(text)
    return to_ns(seconds) + fraction_ns


def format_ns(moment_ns: int) -> str:
    """Return the RFC 3339 text of nanoseconds since 1970, without trailing zeros."""
    seconds, fraction_ns = divmod(moment_ns, SECOND_NS)
    text = format_time(_EPOCH + timedelta(seconds=seconds))
    return f"{text[:-1]}.{fraction_ns:09d}".rstrip("0") + "Z" if fraction_ns else text


def to_ns(moment: datetime) -> int:
    """Return nanoseconds since 1970, exact to the microsecond that a datetime holds."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1000


def from_ns(moment_ns: int) -> datetime:
    """Return the datetime of nanoseconds since 1970, cut to microseconds."""
    return _EPOCH + timedelta(microseconds=moment_ns // 1000)


def int32_seconds(count: int) -> timedelta:
    """Return the duration of an int32 API field. A larger number, which the API refuses, is cut."""
    return timedelta(seconds=max(min(count, _LARGEST_INT32), -_LARGEST_INT32))


def parse_duration(text: str) -> timedelta:
    """Return a Go duration, or raise ValueError. A number other than 0 needs a unit."""
    if not _DURATION.match(text) or len(text) > 64:
        raise ValueError(f"{text!r} is not a duration; write a number with a unit, such as 15s, 5m or 1h30m")
    microseconds = sum(float(number) * _UNITS_US[unit] for number, unit in _PART.findall(text))
    try:
        return timedelta(microseconds=-microseconds if text.startswith("-") else microseconds)
    except OverflowError:
        raise ValueError(f"{text!r} is longer than a duration can be") from None


def format_duration(span: timedelta) -> str:
    """Return the shortest text of a Go duration: `15s`, `5m`, `1h30m`, `0.5s`."""
    total = span.total_seconds()
    if total < 0:
        return "-" + format_duration(-span)
    hours, rest = divmod(total, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [f"{hours:.0f}h" if hours else "", f"{minutes:.0f}m" if minutes else ""]
    parts.append(f"{seconds:g}s" if seconds or not (hours or minutes) else "")
    return "".join(parts)


def parse_long_duration(text: str) -> timedelta:
    """Return a Prometheus duration, which has weeks and days before the rest: `8d`, `1w2d12h`."""
    weeks, days, rest = _LONG_DURATION.match(text).groups()  # type: ignore[union-attr]  # everything matches
    if not rest and (weeks or days):
        rest = "0"
    try:
        return timedelta(weeks=int(weeks or 0), days=int(days or 0)) + parse_duration(rest)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a duration; write it as 8d, 36h or 1h30m") from None


def _parse(text: str) -> tuple[datetime, int]:
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
