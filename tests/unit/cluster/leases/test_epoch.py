"""An epoch has one clock: the wall time of its start, and even time since."""

from datetime import UTC, datetime, timedelta

from trimtab.cluster.leases.fence import Epoch

START = datetime(2026, 1, 1, tzinfo=UTC)


class SetClock:
    """A clock whose wall time somebody sets."""

    def __init__(self) -> None:
        self.passed, self.ahead = 0.0, 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.passed + self.ahead)

    def monotonic(self) -> float:
        return 500.0 + self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds


def test_a_wall_clock_that_is_set_changes_no_epoch():
    clock = SetClock()
    epoch = Epoch(clock)
    assert epoch.now() == START.timestamp()
    clock.passed, clock.ahead = 60.0, 3600.0
    assert epoch.now() == START.timestamp() + 60.0
    assert Epoch(clock).now() == START.timestamp() + 3660.0, "the next one starts from it"
