"""The right to write: the fence that stops writes when a Lease may be lost, and the epoch in which it is held."""

from typing import Protocol

from trimtab.clock import Clock


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


class Epoch:
    """An uninterrupted time of deciding, which has one clock. Epochs are compared by identity.

    It starts at the wall time of its start and then runs evenly, whatever happens to the wall clock. No other clock is
    compared with it. Memory is resumed at the first decision of an epoch.
    """

    def __init__(self, clock: Clock, *, follows: bool = True) -> None:
        """Start now. It `follows` if another process may have decided a moment ago."""
        self.follows = follows
        self._clock = clock
        self._ahead = clock.now().timestamp() - clock.monotonic()

    def now(self) -> float:
        """Return the time in Unix seconds."""
        return self._clock.monotonic() + self._ahead
