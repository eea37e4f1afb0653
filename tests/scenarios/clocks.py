"""The machine's clock with hands that a test may move, so that five-minute windows pass at once on a real server."""

from datetime import datetime, timedelta

from trimtab.clock import Clock, SystemClock


class ShiftedClock(SystemClock):
    """Real sleeps, but `now` and `monotonic` are ahead by as much as was asked for."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


async def pass_time(clock: Clock, seconds: float) -> None:
    """Let time pass: at once where a clock's hands can be moved, else by sleeping (in virtual time, as a rule)."""
    if isinstance(clock, ShiftedClock):
        clock.advance(seconds)
    else:
        await clock.sleep(seconds)
