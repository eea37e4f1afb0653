"""Times as numpy arrays hold them: int64 nanoseconds since 1970, and `NEVER`."""

from datetime import datetime
from typing import Final

from trimtab.model import times
from trimtab.model.times import SECOND_NS, ZERO_TIME_NS

NEVER: Final = -(2**63)
"""Go's zero time, before every time that an int64 can hold."""

LATEST: Final = 2**63 - 1


def to_int64(time_ns: int) -> int:
    """Return a time as arrays hold it. Times too old for 64 bits become `NEVER`."""
    return max(NEVER, min(time_ns, LATEST))


def from_int64(time_ns: int) -> int:
    """Return a time of an array as nanoseconds since 1970. `NEVER` becomes Go's zero time, the year 1."""
    return ZERO_TIME_NS if time_ns == NEVER else time_ns


def to_wire_time(time_ns: int) -> datetime | None:
    """Return a time as Kubernetes stores it, in whole seconds. Go's zero time becomes null."""
    return None if time_ns == ZERO_TIME_NS else times.from_ns(time_ns // SECOND_NS * SECOND_NS)


def from_wire_time(moment: datetime | None) -> int:
    """Return a stored time as arrays hold it."""
    return NEVER if moment is None else to_int64(times.to_ns(moment))
