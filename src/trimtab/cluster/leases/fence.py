"""Whether we may still write: the seam between the client and leader election (fault F25)."""

from typing import Protocol


class Fence(Protocol):
    """Whoever decides whether writing is allowed: the holder of a lease."""

    def may_write(self) -> bool:
        """Return whether a write may be sent now."""
        ...

    def time_left(self) -> float:
        """Return for how many seconds writing is still allowed."""
        ...


class NoFence:
    """The fence of a program that shares its objects with no second copy of itself."""

    def may_write(self) -> bool:
        """Return True."""
        return True

    def time_left(self) -> float:
        """Return that there is no end."""
        return float("inf")


class ClosedFence:
    """The fence of a program that only looks: nothing is ever written."""

    def may_write(self) -> bool:
        """Return False."""
        return False

    def time_left(self) -> float:
        """Return no time at all."""
        return 0.0
