"""The backlog of a queue: what arrives, what ready pods do, what waits."""

from collections.abc import Callable

#: Seconds of one step; finer than any sample, so a queue that fills between two samples is seen to.
STEP = 1.0


class Backlog:
    """The items that wait, advanced step by step on a fixed grid, so that who asks when changes nothing."""

    def __init__(self, items: float, since: float) -> None:
        self.items = items
        self.done_per_second = 0.0
        self._since = since

    def advance(self, to: float, arrivals: Callable[[float], float], capacity: float) -> None:
        """Move on to a time, with `capacity` items done per second at most."""
        while self._since + STEP <= to:
            arrived = max(arrivals(self._since), 0.0) * STEP
            done = min(self.items + arrived, capacity * STEP)
            self.items += arrived - done
            self.done_per_second = done / STEP
            self._since += STEP
