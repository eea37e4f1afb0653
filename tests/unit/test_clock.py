"""The virtual clock jumps; nothing sleeps."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from trimtab.clock import FastClock, SystemClock, VirtualClock


def test_a_virtual_day_passes_without_sleeping():
    clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    ticks: list[datetime] = []

    async def main() -> None:
        for _ in range(24):
            await clock.sleep(3600)
            ticks.append(clock.now())

    clock.run(main())
    assert ticks[-1] == datetime(2026, 1, 2, tzinfo=UTC)
    assert len(ticks) == 24


def test_tasks_wake_in_the_order_of_their_deadlines():
    clock = VirtualClock()
    woken: list[str] = []

    async def wake(name: str, after: float) -> None:
        await asyncio.sleep(after)
        woken.append(name)

    async def main() -> None:
        await asyncio.gather(wake("late", 30), wake("early", 10), wake("middle", 20))

    clock.run(main())
    assert woken == ["early", "middle", "late"]


def test_timeouts_are_virtual_too():
    clock = VirtualClock()

    async def main() -> None:
        async with asyncio.timeout(60):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        clock.run(main())
    assert clock.monotonic() == pytest.approx(60)


def test_time_never_moves_back():
    clock = VirtualClock()
    clock.advance(5)
    with pytest.raises(ValueError, match="only moves forward"):
        clock.advance(-1)
    assert clock.monotonic() == 5


def test_the_system_clock_is_in_utc():
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_a_fast_hour_is_an_hour_on_its_own_clock():
    clock = FastClock(1_000_000)
    began = clock.now()

    async def main() -> None:
        await asyncio.sleep(3600)

    clock.run(main())
    assert clock.now() - began >= timedelta(hours=1)


def test_a_clock_with_a_past_jumps_until_it_has_caught_up():
    """What happens before takes no time, and nothing is dated later than the machine's clock."""
    clock = FastClock(1, past=86400)
    woken: list[timedelta] = []

    async def main() -> None:
        assert SystemClock().now() - clock.now() >= timedelta(days=1)
        for _ in range(23):
            await asyncio.sleep(3600)
            woken.append(SystemClock().now() - clock.now())
        await clock.catch_up()

    clock.run(main())
    assert woken == sorted(woken, reverse=True)
    assert woken[-1] >= timedelta(hours=1)
    assert clock.behind == 0
    assert timedelta() <= SystemClock().now() - clock.now() < timedelta(hours=1)


def test_a_clock_that_has_caught_up_runs_at_its_speed():
    clock = FastClock(1_000_000, past=60)

    async def main() -> float:
        await clock.catch_up()
        began = clock.monotonic()
        await asyncio.sleep(3600)
        return clock.monotonic() - began

    assert clock.run(main()) >= 3600
    assert clock.behind == 0


def test_a_clock_that_stands_still_is_refused():
    with pytest.raises(ValueError, match="0 times as fast"):
        FastClock(0)


def test_a_fast_clock_slows_down_while_its_loop_is_busy():
    """A busy second at 60x was a minute without a sign of life, and every watch reported it."""
    clock = FastClock(1_000_000)

    async def stall():
        before = clock.monotonic()
        time.sleep(0.01)  # noqa: ASYNC251 - the loop is blocked on purpose
        return clock.monotonic() - before

    assert clock.run(stall()) <= 10


def test_a_fast_clock_is_on_time_after_a_wait():
    clock = FastClock(1_000_000)

    async def wait():
        before = clock.monotonic()
        await clock.sleep(3600)
        return clock.monotonic() - before

    assert 3600 <= clock.run(wait()) <= 3620
