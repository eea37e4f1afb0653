"""Lease epochs: one uninterrupted time in which this process holds a Lease, and what is known of those before.

What a process remembers is worth something only while nobody else decides. So memory is kept together with the epoch
it was made in. A new epoch begins with what is stored, as of the last holder's last renewal.

Moments are stored by the clock of whoever stored them, and clocks differ. Every renewal of a Lease shows its holder's
clock: it was written between two looks of ours. A few of them show by how much our clock is ahead of that holder's.

A clock may be set while its process runs. Its name then says by how many seconds (`1f0c5d2e+100.000`), in the stored
memory and, as an annotation, in the Lease. So a memory that was stored before the clock was set is not taken for one
that was stored after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf, isfinite

RENEWAL_SECONDS = 5.0
"""How long after its date a renewal may reach the server; longer ones are given up by their sender."""

TELLABLE_SECONDS = 1.0
"""Clocks that differ by less than this count as equal."""

MOST_CLOCKS = 16
"""How many holders' clocks are known at a time; the latest are."""


SET_SECONDS = 1.0
"""A wall clock that gains or loses more than this against the monotonic one was set; less is its usual drift."""


def clock_name(identity: str, seconds_set: float = 0.0) -> str:
    """Return a short name for the clock of a holder, which was set by so many seconds since its process began."""
    name = blake2b(identity.encode(), digest_size=4).hexdigest()
    return f"{name}{seconds_set:+.3f}" if seconds_set else name


def split_clock_name(name: str) -> tuple[str, float]:
    """Return the name of a clock as it began, and by how many seconds it was set."""
    sign = max(name.find("+"), name.find("-"))
    if sign < 0:
        return name, 0.0
    try:
        seconds = float(name[sign:])
    except ValueError:
        return name, 0.0
    return (name[:sign], seconds) if isfinite(seconds) else (name, 0.0)


class OwnClock:
    """Notices when the clock of this process is set."""

    def __init__(self, identity: str, now: float, monotonic: float) -> None:
        self._identity = identity
        self._began_ahead = now - monotonic
        self._seconds_set = 0.0

    def seconds_set(self, now: float, monotonic: float) -> float:
        """Return by how many seconds the clock was set since the process began."""
        gained = now - monotonic - self._began_ahead
        if abs(gained - self._seconds_set) > SET_SECONDS:
            self._seconds_set = round(gained, 3)
        return self._seconds_set

    def name(self, now: float, monotonic: float) -> str:
        """Return the name by which moments are dated now."""
        return clock_name(self._identity, self.seconds_set(now, monotonic))


@dataclass(frozen=True, slots=True)
class ClockReading:
    """By how much a holder's clock is ahead of our monotonic one: not less than `low`, not more than `high`."""

    low: float
    high: float = inf

    @classmethod
    def of_renewal(cls, said: float, before: float | None, after: float) -> "ClockReading":
        """Return what one renewal shows: its date, the look that did not show it yet, and the look that did.

        A renewal is dated before it reaches the server. The first look of all shows only that it is not in the future.
        """
        return cls(said - after, inf if before is None else said - before + RENEWAL_SECONDS)

    def and_then(self, later: "ClockReading") -> "ClockReading":
        """Return what two renewals show together; if they contradict each other, the clock was set in between."""
        low, high = max(self.low, later.low), min(self.high, later.high)
        return ClockReading(low, high) if low <= high else later

    def skew(self, now: float, monotonic: float, seconds_set: float = 0.0) -> float:
        """Return by how much our clock, which says `now`, is ahead of the holder's; 0 if that is possible.

        The reading is of the clock as it began. `seconds_set` is by how much it was set when it dated a moment.
        """
        ours = now - monotonic - seconds_set
        return 0.0 if self.low - TELLABLE_SECONDS <= ours <= self.high else ours - self.low


@dataclass(frozen=True, slots=True, eq=False)
class Epoch:
    """One uninterrupted time of holding a Lease; two are the same only if they are the same object."""

    holder: str = ""
    """The name of the last holder's clock."""
    renewed: float | None = None
    """The renewTime of the Lease that was taken over, by its holder's clock, in seconds since 1970."""
    clocks: Mapping[str, ClockReading] = field(default_factory=dict)
    """What is known of the clocks of holders as they began, by name, our own included."""
    own: OwnClock | None = None
    """Our own clock; None where nobody else reads what we store."""
    is_elected: bool = True
    """Whether another process may have decided before; False without leader election."""

    def last_alive(self, now: float, monotonic: float) -> float:
        """Return when the last holder was last heard of, by our clock, which says `now`; never later than now."""
        return (
            now if self.renewed is None else min(self.renewed + self.skew(self.holder, now, monotonic), now)
        )

    def skew(self, clock: str, now: float, monotonic: float) -> float:
        """Return by how much our clock is ahead of another holder's; 0 if that clock is not known."""
        name, seconds_set = split_clock_name(clock)
        known = self.clocks.get(name)
        return 0.0 if known is None else known.skew(now, monotonic, seconds_set)

    def own_clock(self, now: float, monotonic: float) -> str:
        """Return the name of the clock by which we date moments now."""
        return "" if self.own is None else self.own.name(now, monotonic)


UNSHARED = Epoch(is_elected=False)
"""The epoch of a program that shares its objects with no second copy of itself."""
