"""The fence that stops writes when the lease may be lost."""

from typing import Protocol


class Fence(Protocol):
    """Decides whether this process may write."""

    def may_write(self) -> bool:
        """Return whether a write may be sent now."""
        ...

    def time_left(self) -> float:
        """Return for how many seconds writes are allowed."""
        ...


class NoFence:
    """The fence of a program without leader election."""

    def may_write(self) -> bool:
        """Return True."""
        return True

    def time_left(self) -> float:
        """Return infinity."""
        return float("inf")


class ClosedFence:
    """The fence of a read-only program."""

    def may_write(self) -> bool:
        """Return False."""
        return False

    def time_left(self) -> float:
        """Return 0."""
        return 0.0
