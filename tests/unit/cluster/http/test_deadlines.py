"""One timer for all deadlines: each ends what it should, when it should, and nearly none is ever set."""

import asyncio
from typing import Any

from trimtab.clock import VirtualClock
from trimtab.cluster.http.connection import NEVER, DeadlineTimer


class Thing:
    def __init__(self, deadline):
        self.deadline = deadline
        self.expired_at = None

    def expire(self):
        self.expired_at = asyncio.get_running_loop().time()


class Counted:
    """What a watchdog uses of an event loop, with its timers counted."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.time = loop.time
        self.timers = 0
        self._loop = loop

    def call_at(self, *arguments: Any) -> asyncio.TimerHandle:
        self.timers += 1
        return self._loop.call_at(*arguments)


def run(scenario):
    async def main() -> None:
        loop: Any = Counted(asyncio.get_running_loop())
        await scenario(loop, DeadlineTimer(loop))

    VirtualClock().run(main())


def test_each_ends_at_its_own_deadline_whatever_the_order():
    async def scenario(loop, dog):
        things = [Thing(float(deadline)) for deadline in (5, 1, 3, 3, 9)]
        for thing in things:
            dog.guard(thing)
        await asyncio.sleep(20)
        assert [thing.expired_at for thing in things] == [5, 1, 3, 3, 9]

    run(scenario)


def test_what_is_released_never_ends_and_a_deadline_may_move_to_later():
    async def scenario(loop, dog):
        released, moved, other = Thing(1.0), Thing(1.0), Thing(2.0)
        for thing in (released, moved, other):
            dog.guard(thing)
        dog.release(released)
        moved.deadline = 6.0
        await asyncio.sleep(4)
        assert (released.expired_at, moved.expired_at, other.expired_at) == (None, None, 2.0)
        await asyncio.sleep(4)
        assert moved.expired_at == 6.0

    run(scenario)


def test_one_that_never_ends_is_only_kept():
    async def scenario(loop, dog):
        forever = Thing(NEVER)
        dog.guard(forever)
        dog.guard(Thing(1.0))
        await asyncio.sleep(5)
        dog.stop()
        assert forever.expired_at is None

    run(scenario)


def test_ten_thousand_requests_in_a_row_set_a_handful_of_timers():
    """A guard against the cost coming back: a timer of its own per request would be ten thousand."""

    async def scenario(loop, dog):
        for _ in range(100):
            for _ in range(100):
                thing = Thing(loop.time() + 10.0)
                dog.guard(thing)
                dog.release(thing)
            await asyncio.sleep(0.5)
        assert 1 <= loop.timers <= 10

    run(scenario)
