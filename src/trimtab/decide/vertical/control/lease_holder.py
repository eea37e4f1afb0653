"""The state of a Lease's holder, as a watch observes it.

A holder renews its Lease, and our own clock measures the time since the last renewal was observed. A watch alone does
not show whether a Lease is still renewed when it is observed for the first time, nor whether the watch is stale.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from trimtab.model.core.objects import Lease

DEFAULT_DURATION: Final = 15.0


class HolderState(Enum):
    """The state of a Lease's holder."""

    HELD = "held"
    FREE = "free"
    """The Lease names no holder."""
    UNCONFIRMED = "unconfirmed"
    """The holder did not renew in time, or its clock is slow. Its role is neither granted nor withdrawn."""
    EXPIRED = "expired"
    """No renewal was observed for the lease duration. The Lease must be read again before a role is withdrawn."""


@dataclass(frozen=True)
class ObservedLease:
    """A Lease as it was last observed."""

    holder: str
    renewed: datetime | None
    duration: float
    changed_at: float
    """The time of the last change, by our own clock."""
    held_since: float
    """The time at which this holder was first observed, by our own clock."""
    is_confirmed: bool
    """Whether a renewal was observed, or happened within the duration before the first observation."""

    def holder_state(self, at: float) -> HolderState:
        """Return the state of the holder at a moment of our own clock."""
        if not self.holder:
            return HolderState.FREE
        if at - self.changed_at > self.duration:
            return HolderState.EXPIRED
        return HolderState.HELD if self.is_confirmed else HolderState.UNCONFIRMED


def observe_lease(before: ObservedLease | None, lease: Lease, now: datetime, at: float) -> ObservedLease:
    """Return a Lease as it is observed now, or `before` if it did not change.

    A new Lease is confirmed if it was renewed within its duration, by the holder's clock. A holder with a slow clock is
    confirmed as soon as it renews.
    """
    spec = lease.spec
    if before is not None and (before.holder, before.renewed) == (spec.holder_identity, spec.renew_time):
        return before
    duration = float(spec.lease_duration_seconds or DEFAULT_DURATION)
    is_same_holder = before is not None and before.holder == spec.holder_identity
    is_recent = spec.renew_time is not None and (now - spec.renew_time).total_seconds() <= duration
    return ObservedLease(
        holder=spec.holder_identity,
        renewed=spec.renew_time,
        duration=duration,
        changed_at=at,
        held_since=before.held_since if before is not None and is_same_holder else at,
        is_confirmed=before is not None or is_recent,
    )
