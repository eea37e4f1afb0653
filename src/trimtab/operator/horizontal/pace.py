"""How often HPAs are decided, and how often usage is looked at in between."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Two periods, in seconds; a look that would not come before the next sync is none."""

    sync: float
    look: float

    @property
    def has_looks(self) -> bool:
        """Return whether anybody looks between two syncs."""
        return 0 < self.look < self.sync
