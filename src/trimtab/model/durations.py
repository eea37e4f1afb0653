"""Durations as Kubernetes flags and metrics windows spell them: `15s`, `5m0s`, `1h30m`, `100ms`."""

import re
from datetime import timedelta

_UNITS_US = {"ns": 0.001, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6, "m": 6e7, "h": 3.6e9}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)\Z", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Read a duration; a number without a unit is refused, except 0."""
    if not _WHOLE.match(text) or len(text) > 64:
        raise ValueError(f"{text!r} is not a duration; write a number with a unit, such as 15s, 5m or 1h30m")
    microseconds = sum(float(number) * _UNITS_US[unit] for number, unit in _PART.findall(text))
    try:
        return timedelta(microseconds=-microseconds if text.startswith("-") else microseconds)
    except OverflowError:
        raise ValueError(f"{text!r} is longer than a duration can be") from None


def format_duration(span: timedelta) -> str:
    """Write a duration in the shortest form of the same kind: `15s`, `5m`, `1h30m`, `0.5s`."""
    total = span.total_seconds()
    if total < 0:
        return "-" + format_duration(-span)
    hours, rest = divmod(total, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [f"{hours:.0f}h" if hours else "", f"{minutes:.0f}m" if minutes else ""]
    parts.append(f"{seconds:g}s" if seconds or not (hours or minutes) else "")
    return "".join(parts)


_LONG = re.compile(r"(?:([0-9]+)w)?(?:([0-9]+)d)?(.*)\Z", re.ASCII | re.DOTALL)


def parse_long_duration(text: str) -> timedelta:
    """Read a duration as Prometheus writes them, with weeks and days before the rest: `8d`, `1w2d12h`."""
    weeks, days, rest = _LONG.match(text).groups()  # type: ignore[union-attr]  # everything matches
    if not rest and (weeks or days):
        rest = "0"
    try:
        return timedelta(weeks=int(weeks or 0), days=int(days or 0)) + parse_duration(rest)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a duration; write it as 8d, 36h or 1h30m") from None
