"""The control loop: period, stand-by, wake-up, failed steps and health."""

import asyncio
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from trimtab.clock import VirtualClock
from trimtab.cluster.errors import TransportError
from trimtab.operator.control_loop import ControlLoop, ControlLoopMetrics

PERIOD = 60.0


class FakeLease:
    def __init__(self) -> None:
        self.is_held = True

    def may_write(self) -> bool:
        return self.is_held


class Recorded(ControlLoop):
    """Records when it stepped; `on_step` decides what a step does."""

    name = "recorded"

    def __init__(self, clock: VirtualClock, registry: CollectorRegistry | None = None) -> None:
        self.lease = FakeLease()
        super().__init__(clock, self.lease, PERIOD, ControlLoopMetrics(registry or CollectorRegistry()))
        self.steps: list[float] = []
        self.on_step: Callable[[], float] = lambda: 0.0
        self.acquired: list[float] = []
        self.was_stepping: list[bool] = []
        self.closed = 0

    async def step(self) -> None:
        self.steps.append(round(self._clock.monotonic(), 1))
        self.was_stepping.append(self.is_stepping)
        await self._clock.sleep(self.on_step())
        self._problems = {}

    def lease_acquired(self) -> None:
        self.acquired.append(round(self._clock.monotonic(), 1))

    async def close(self) -> None:
        self.closed += 1


class Settling(Recorded):
    min_pause = 5.0
    settle_pause = 1.0


def play(make: type[Recorded], *events: tuple[float, Callable[[Recorded], None]], seconds: float) -> Recorded:
    """Run a loop for some time, and let events happen at their times."""
    clock = VirtualClock()

    async def main() -> Recorded:
        loop = make(clock)
        task = asyncio.ensure_future(loop.run())
        for at, event in events:
            await clock.sleep(at - clock.monotonic())
            event(loop)
        await clock.sleep(seconds - clock.monotonic())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return loop

    return clock.run(main())


def lose(loop: Recorded) -> None:
    loop.lease.is_held = False


def gain(loop: Recorded) -> None:
    loop.lease.is_held = True


def take(seconds: float) -> Callable[[Recorded], None]:
    def event(loop: Recorded) -> None:
        loop.on_step = lambda: seconds

    return event


@pytest.mark.parametrize(
    ("make", "events", "want"),
    [
        pytest.param(Recorded, [], [0.0, 60.0, 120.0], id="once per period"),
        pytest.param(
            Recorded,
            [(1, take(20)), (61, take(0))],
            [0.0, 60.0, 120.0],
            id="a slow step is part of its period",
        ),
        pytest.param(Recorded, [(1, take(90))], [0.0, 60.0, 150.0], id="a step longer than the period"),
        pytest.param(
            Recorded, [(10, Recorded.wake)], [0.0, 10.0, 70.0, 130.0], id="a wake-up ends the pause"
        ),
        pytest.param(
            Recorded,
            [(10, lambda loop: loop.shard_gained(3))],
            [0.0, 10.0, 70.0, 130.0],
            id="so does a shard",
        ),
        pytest.param(
            Settling, [(2, Settling.wake)], [0.0, 6.0, 66.0, 126.0], id="not before the shortest pause"
        ),
        pytest.param(
            Settling, [(20, Settling.wake)], [0.0, 21.0, 81.0, 141.0], id="related changes are awaited"
        ),
        pytest.param(Recorded, [(10, lose), (100.5, gain)], [0.0, 101.0], id="no step without the lease"),
    ],
)
def test_when_a_loop_steps(make, events, want):
    assert play(make, *events, seconds=155).steps == want


def test_a_replica_that_gets_the_lease_drops_its_state_first():
    loop = play(Recorded, (10, lose), (100.5, gain), seconds=155)
    assert loop.acquired == [101.0]
    assert loop.closed == 1


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        pytest.param(TransportError("the server is down"), "the server is down", id="a cluster error"),
        pytest.param(RuntimeError("a bug"), "the last loop failed: a bug", id="any other error"),
    ],
)
def test_a_failed_step_is_counted_reported_and_repeated(error, problem):
    clock, registry = VirtualClock(), CollectorRegistry()

    async def main() -> None:
        loop = Recorded(clock, registry)

        def fail() -> float:
            raise error

        loop.on_step = fail
        await loop.step_safely()
        assert loop.health() == {"recorded": problem}
        assert not loop.is_stepping
        labels = {"loop": "recorded"}
        assert registry.get_sample_value("trimtab_control_loop_failures_total", labels) == 1
        loop.on_step = lambda: 0.0
        await loop.step_safely()
        assert loop.health() == {}

    clock.run(main())


def test_a_loop_is_stepping_during_a_step_and_not_in_the_pause():
    """A shard is released only between two steps of the loop that writes for it."""
    loop = play(Recorded, seconds=70)
    assert loop.was_stepping == [True, True]
    assert not loop.is_stepping


def test_a_stand_by_has_no_problems():
    loop = play(Recorded, (1, lambda loop: setattr(loop, "on_step", lambda: 1 / 0)), (70, lose), seconds=155)
    assert loop.health() == {}
