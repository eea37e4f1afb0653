"""Who holds a Lease, as far as one can tell by watching it.

A holder renews its Lease; our own clock measures how long ago that was seen. Two things are not known by watching:
whether a Lease that we see for the first time is still renewed, and whether our watch went blind.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from trimtab.model.core.objects import Lease

DEFAULT_DURATION: Final = 15.0


class Tenure(Enum):
    """What is known of the holder of a Lease."""

    HELD = "held"
    FREE = "free"
    """It says itself that nobody holds it."""
    UNPROVED = "unproved"
    """It names a holder that did not renew it in time and may have a slow clock: neither granted nor taken away."""
    SILENT = "silent"
    """It was not seen to change for as long as it lasts: the server has to be asked before a role is taken away."""


@dataclass(frozen=True)
class SeenLease:
    """A Lease as it was last seen."""

    holder: str
    renewed: datetime | None
    duration: float
    changed_at: float
    """When it last changed, by our own clock."""
    held_since: float
    """When this holder was first seen, by our own clock."""
    is_proved: bool
    """Whether the holder was seen to renew it, or had done so shortly before the Lease was first seen."""

    def tenure(self, at: float) -> Tenure:
        """Return what is known of the holder at a moment of our own clock."""
        if not self.holder:
            return Tenure.FREE
        if at - self.changed_at > self.duration:
            return Tenure.SILENT
        return Tenure.HELD if self.is_proved else Tenure.UNPROVED


def see_lease(before: SeenLease | None, lease: Lease, now: datetime, at: float) -> SeenLease:
    """Return a Lease as it is seen now; one that did not change is as it was.

    A Lease that is new to us is believed if it was renewed within its duration, by the holder's clock. A holder whose
    clock is slow is believed as soon as it renews.
    """
    spec = lease.spec
    if before is not None and (before.holder, before.renewed) == (spec.holder_identity, spec.renew_time):
        return before
    duration = float(spec.lease_duration_seconds or DEFAULT_DURATION)
    is_same_holder = before is not None and before.holder == spec.holder_identity
    is_recent = spec.renew_time is not None and (now - spec.renew_time).total_seconds() <= duration
    return SeenLease(
        holder=spec.holder_identity,
        renewed=spec.renew_time,
        duration=duration,
        changed_at=at,
        held_since=before.held_since if before is not None and is_same_holder else at,
        is_proved=before is not None or is_recent,
    )
