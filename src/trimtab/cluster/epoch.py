"""Lease epochs: one uninterrupted time in which this process holds a Lease, and what is known of those before.

What a process remembers is worth something only while nobody else decides. So memory is kept together with the epoch
it was made in. A new epoch begins with what is stored, as of the last holder's last renewal.

Moments are stored by the clock of whoever stored them, and clocks differ. Every renewal of a Lease shows its holder's
clock: it was written between two looks of ours. A few of them show by how much our clock is ahead of that holder's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf

RENEWAL_SECONDS = 5.0
"""How long after its date a renewal may reach the server; longer ones are given up by their sender."""

TELLABLE_SECONDS = 1.0
"""Clocks that differ by less than this count as equal."""

MOST_CLOCKS = 16
"""How many holders' clocks are known at a time; the latest are."""


def clock_name(identity: str) -> str:
    """Return a short name for the clock of a holder."""
    return blake2b(identity.encode(), digest_size=4).hexdigest()


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

    def skew(self, now: float, monotonic: float) -> float:
        """Return by how much our clock, which says `now`, is ahead of the holder's; 0 if that is possible."""
        ours = now - monotonic
        return 0.0 if self.low - TELLABLE_SECONDS <= ours <= self.high else ours - self.low


@dataclass(frozen=True, slots=True, eq=False)
class Epoch:
    """One uninterrupted time of holding a Lease; two are the same only if they are the same object."""

    holder: str = ""
    """The name of the last holder's clock."""
    renewed: float | None = None
    """The renewTime of the Lease that was taken over, by its holder's clock, in seconds since 1970."""
    clocks: Mapping[str, ClockReading] = field(default_factory=dict)
    """What is known of the clocks of holders, by name, our own included."""
    own: str = ""
    """The name of our own clock."""
    is_elected: bool = True
    """Whether another process may have decided before; False without leader election."""

    def last_alive(self, now: float, monotonic: float) -> float:
        """Return when the last holder was last heard of, by our clock, which says `now`; never later than now."""
        return (
            now if self.renewed is None else min(self.renewed + self.skew(self.holder, now, monotonic), now)
        )

    def skew(self, clock: str, now: float, monotonic: float) -> float:
        """Return by how much our clock is ahead of another holder's; 0 if that clock is not known."""
        known = self.clocks.get(clock)
        return 0.0 if known is None else known.skew(now, monotonic)


UNSHARED = Epoch(is_elected=False)
"""The epoch of a program that shares its objects with no second copy of itself."""
