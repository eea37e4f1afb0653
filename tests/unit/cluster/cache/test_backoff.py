"""After any sequence of failures and successes a watch comes back soon, and a failing server sees few requests."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi, status
from trimtab.clock import VirtualClock
from trimtab.cluster.cache.informer import Informer, outage_breaker
from trimtab.cluster.client import Client
from trimtab.cluster.resource import PODS

FAULTS = ("dropped", "503", "403", "ended", "gone", "gone before lists", "stale list", "cut")
FIRST_DELAY = 1.6
"""The first delay of the back-off with all its jitter."""


class World:
    """A server with one fault at a time, a client, and the time of each request."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.api = FakeApi()
        self.api.fault = self.fault
        self.api.alter = self.alter
        self.client = Client(clock, AsgiTransport(self.api), seed=1)
        self.breaker = outage_breaker(clock)
        self.kind = "none"
        self.times: list[float] = []
        self.open: list[float] = []
        """When each watch was opened since the last fault."""
        self.cuts = 0

    def fault(self, request):
        watching = request.verb == "WATCH"
        self.times.append(self.clock.monotonic())
        if self.kind != "none":
            self.open.clear()
        if self.kind == "dropped":
            raise ConnectionResetError
        if self.kind in {"401", "503", "403"}:
            return Answer(int(self.kind), status(int(self.kind), "Failure"))
        if self.kind == "ended" and watching:
            return Answer(200)
        if self.kind == "gone" and watching:
            return Answer(410, status(410, "Expired"))
        if self.kind == "gone before lists":
            return Answer(410, status(410, "Expired")) if watching else Answer(503)
        if self.kind == "stale list" and not watching:
            return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": []})
        if watching:
            self.open.append(self.clock.monotonic())
        return None

    def alter(self, line):
        if self.kind == "cut" or self.cuts:
            self.cuts = max(self.cuts - 1, 0)
            raise ConnectionResetError
        return [line]

    @asynccontextmanager
    async def informers(self, count=1):
        informers = [Informer(self.client, PODS, breaker=self.breaker) for _ in range(count)]
        tasks = [asyncio.create_task(informer.run()) for informer in informers]
        try:
            for informer in informers:
                await informer.wait_synced()
            yield informers
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def seconds_until(self, is_reached, within=120.0):
        started = self.clock.monotonic()
        while not is_reached():
            assert self.clock.monotonic() - started < within, "not reached"
            await self.clock.sleep(0.1)
        return self.clock.monotonic() - started


def in_virtual_time(scenario):
    clock = VirtualClock()

    async def main():
        await scenario(World(clock))

    clock.run(main())


faulty = st.tuples(st.sampled_from(FAULTS), st.sampled_from((1, 10, 30, 90, 300)))
healthy = st.tuples(st.just("none"), st.sampled_from((0, 3, 12, 60)))


@settings(max_examples=80)
@given(st.lists(st.one_of(faulty, healthy), max_size=8))
@example([("dropped", 30)])
@example([("503", 300), ("none", 12), ("gone", 90)])
@example([("gone", 30)] * 4)
def test_after_any_failures_a_working_watch_makes_the_next_break_short(plan):
    async def scenario(world):
        async with world.informers() as [informer]:
            for kind, seconds in plan:
                world.kind = kind
                await world.api.put("busy")
                before = len(world.times)
                await world.clock.sleep(seconds)
                if kind != "none":
                    # Not a storm: each failure costs at most a request per second in the beginning, fewer later.
                    assert len(world.times) - before <= 8 + seconds / 2
            world.kind = "none"
            # The longest delay of the back-off, then a watch that works.
            await world.clock.sleep(32 + 8)
            await world.api.put("a")
            await world.clock.sleep(0.1)
            assert informer.store.get("a", "default") is not None

            world.cuts = 1
            await world.api.put("b")
            assert await world.seconds_until(lambda: informer.store.get("b", "default")) <= FIRST_DELAY + 0.1

    in_virtual_time(scenario)


@pytest.mark.parametrize("outage", [0, 30, 300])
def test_a_watch_whose_version_is_gone_is_listed_again_at_once(outage):
    async def scenario(world):
        async with world.informers() as [informer]:
            world.kind = "503" if outage else "none"
            await world.clock.sleep(outage)
            world.kind = "none"
            await world.clock.sleep(60)
            world.cuts = 1
            await world.api.put("a")
            await world.api.put("b")
            world.api.compact()  # the watch that follows the cut is answered with 410
            assert await world.seconds_until(lambda: informer.store.get("b", "default")) <= FIRST_DELAY + 0.1
            assert informer.counts.lists == 2

    in_virtual_time(scenario)


def test_twenty_compactions_in_two_minutes_leave_no_delay_behind():
    async def scenario(world):
        async with world.informers() as [informer]:
            for number in range(20):
                await world.clock.sleep(5.3)
                world.kind = "dropped"
                world.cuts = 1
                await world.api.put(f"pod{number}")
                await world.clock.sleep(0.7)
                world.api.compact()
                world.kind = "none"
            await world.api.put("last")
            assert await world.seconds_until(lambda: informer.store.get("last", "default")) <= 16
            assert informer.counts.lists <= 21

    in_virtual_time(scenario)


def test_a_server_that_always_answers_410_is_not_listed_in_a_loop():
    async def scenario(world):
        async with world.informers() as [informer]:
            world.kind = "gone"
            world.cuts = 1
            await world.api.put("a")
            await world.clock.sleep(300)
            assert informer.counts.lists < 90

    in_virtual_time(scenario)


@pytest.mark.parametrize("is_idle", [False, True], ids=["with changes", "without changes"])
@pytest.mark.parametrize("outage", [30, 90, 600])
@pytest.mark.parametrize("kind", ["dropped", "401"])
def test_after_an_outage_all_informers_are_back_within_seconds(outage, is_idle, kind):
    """Twelve kinds each waited out their own delay of up to 30 s after the server was back, or a token valid again."""

    async def scenario(world):
        async with world.informers(12) as informers:
            world.kind = kind
            world.cuts = 12
            await world.api.put("a")
            if is_idle:
                await world.clock.sleep(0.1)
                world.api.log.clear()
            await world.clock.sleep(30)
            before = len(world.times)
            await world.clock.sleep(outage - 30)
            # Each informer tries every 30 s, and any of them every 5 s.
            assert len(world.times) - before <= (outage - 30) * (12 / 30 + 1 / 5) + 12
            world.kind, world.cuts = "none", 0
            if is_idle:
                seconds = await world.seconds_until(lambda: len(world.open) == 12)
            else:
                seconds = await world.seconds_until(
                    lambda: all(informer.store.get("a", "default") for informer in informers)
                )
            assert seconds <= 7.1

    in_virtual_time(scenario)
