"""Lease epochs: uninterrupted times in which this process holds a Lease.

Memory is valid only while no other process decides, so it belongs to the epoch in which it was made. A new epoch
starts with the stored memory, as of the previous holder's last renewal.

Stored times are by the clock of the process that stored them, and clocks differ. A renewal of a Lease shows its holder's
clock, because it was written between two of our reads. A few renewals show the offset of that clock.

A clock may be set while its process runs. Its name then contains the offset in seconds (`1f0c5d2e+100.000`), in the
stored memory and in an annotation of the Lease, so that memory from before and after the change is not confused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf, isfinite

RENEWAL_SECONDS = 5.0
"""The maximum delay of a renewal. Senders give up longer ones."""

TELLABLE_SECONDS = 1.0
"""Clocks that differ by less than this count as equal."""

MOST_CLOCKS = 16
"""The maximum number of tracked clocks."""


SET_SECONDS = 1.0
"""A wall clock that deviates by more than this from the monotonic clock was set. Less is drift."""


def clock_name(identity: str, seconds_set: float = 0.0) -> str:
    """Return a short name of a holder's clock, with the seconds by which it was set."""
    name = blake2b(identity.encode(), digest_size=4).hexdigest()
    return f"{name}{seconds_set:+.3f}" if seconds_set else name


def split_clock_name(name: str) -> tuple[str, float]:
    """Return the original name of a clock, and the seconds by which it was set."""
    sign = max(name.find("+"), name.find("-"))
    if sign < 0:
        return name, 0.0
    try:
        seconds = float(name[sign:])
    except ValueError:
        return name, 0.0
    return (name[:sign], seconds) if isfinite(seconds) else (name, 0.0)


class OwnClock:
    """Detects when the clock of this process is set."""

    def __init__(self, identity: str, now: float, monotonic: float) -> None:
        self._identity = identity
        self._began_ahead = now - monotonic
        self._seconds_set = 0.0

    def seconds_set(self, now: float, monotonic: float) -> float:
        """Return the seconds by which the clock was set since the process started."""
        gained = now - monotonic - self._began_ahead
        if abs(gained - self._seconds_set) > SET_SECONDS:
            self._seconds_set = round(gained, 3)
        return self._seconds_set

    def name(self, now: float, monotonic: float) -> str:
        """Return the current name of the clock."""
        return clock_name(self._identity, self.seconds_set(now, monotonic))


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The offset of a holder's clock to our monotonic clock, between `low` and `high`."""

    low: float
    high: float = inf

    @classmethod
    def of_renewal(cls, said: float, before: float | None, after: float) -> "ClockReading":
        """Return the offset from a renewal: its time, the last read without it, and the first read with it.

        A renewal is dated before it reaches the server. The first read shows only that it is not in the future.
        """
        return cls(said - after, inf if before is None else said - before + RENEWAL_SECONDS)

    def and_then(self, later: "ClockReading") -> "ClockReading":
        """Combine the offsets of two renewals. If they contradict each other, the clock was set in between."""
        low, high = max(self.low, later.low), min(self.high, later.high)
        return ClockReading(low, high) if low <= high else later

    def skew(self, now: float, monotonic: float, seconds_set: float = 0.0) -> float:
        """Return the offset of our wall clock at `now` to the holder's, or 0 if that is possible.

        The offset is that of the original clock. `seconds_set` is how far it was set at the time in question.
        """
        ours = now - monotonic - seconds_set
        return 0.0 if self.low - TELLABLE_SECONDS <= ours <= self.high else ours - self.low


@dataclass(frozen=True, slots=True, eq=False)
class Epoch:
    """An uninterrupted time of holding a Lease. Epochs are compared by identity."""

    holder: str = ""
    """The name of the previous holder's clock."""
    renewed: float | None = None
    """The renewTime at the takeover, by its holder's clock, in Unix seconds."""
    clocks: Mapping[str, ClockReading] = field(default_factory=dict)
    """The offsets of all known clocks by original name, our own included."""
    own: OwnClock | None = None
    """Our own clock. None if no other process reads our memory."""
    is_elected: bool = True
    """Whether another process may have decided before. False without leader election."""

    def last_alive(self, now: float, monotonic: float) -> float:
        """Return the time of the previous holder's last renewal by our clock, at most `now`."""
        return (
            now if self.renewed is None else min(self.renewed + self.skew(self.holder, now, monotonic), now)
        )

    def skew(self, clock: str, now: float, monotonic: float) -> float:
        """Return the offset of our clock to another holder's, or 0 if it is unknown."""
        name, seconds_set = split_clock_name(clock)
        known = self.clocks.get(name)
        return 0.0 if known is None else known.skew(now, monotonic, seconds_set)

    def own_clock(self, now: float, monotonic: float) -> str:
        """Return the name of our clock at this time."""
        return "" if self.own is None else self.own.name(now, monotonic)


UNSHARED = Epoch(is_elected=False)
"""The epoch of a program without leader election."""
