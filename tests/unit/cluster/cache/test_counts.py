"""The counters of an informer, and how soon it lists again, in virtual time."""

from itertools import pairwise

from tests.unit.cluster.cache.test_informer import World
from tests.unit.cluster.fake_api import Answer, status
from trimtab.clock import VirtualClock
from trimtab.cluster.cache import informer as informers


def run(scenario):
    clock = VirtualClock()

    async def main():
        return await scenario(World(clock))

    return clock.run(main())


def test_the_limits_of_a_cache():
    assert (informers.STALE_AFTER, informers.GONE_AFTER) == (60.0, 120.0)
    assert (informers.LONGEST_RELIST_DELAY, informers.RELIST_SHARE) == (5.0, 5.0)
    assert informers.STEADY_SECONDS == 1.0


def test_lists_watches_events_and_failures_are_counted():
    async def scenario(world):
        await world.api.put("a")
        async with world.informer() as informer:
            await world.clock.sleep(0.1)
            counts = informer.counts
            assert (counts.lists, counts.watches, counts.events, counts.failures) == (1, 1, 0, 0)
            await world.api.put("a")
            await world.api.put("b")
            await world.clock.sleep(100)
            assert (counts.lists, counts.events, counts.failures) == (1, 2, 0)
            assert counts.watches == 3
            world.api.fault = lambda request: Answer(500, status(500, message="it is down"))
            await world.clock.sleep(60)
            assert counts.failures >= 2
            assert "it is down" in str(informer.last_error)
            world.api.fault = None
            await world.clock.sleep(60)
            assert informer.last_error is None
            assert counts.lists == 1

    run(scenario)


def test_after_a_working_watch_the_next_lists_start_with_short_delays_again():
    """The delay between lists that the server asks for grows to 5 s and starts over once a watch worked."""

    async def scenario(world):
        times = []

        def gone(request):
            if request.verb == "WATCH":
                return Answer(410, status(410, "Expired"))
            times.append(world.clock.monotonic())
            return None

        rounds = []
        async with world.informer():
            for _ in range(3):
                times.clear()
                world.api.fault = gone
                await world.clock.sleep(60)
                world.api.fault = None
                await world.clock.sleep(60)
                rounds.append([later - earlier for earlier, later in pairwise(times)])
        return rounds

    first, second, third = run(scenario)
    assert first[0] <= 1.6
    for later in (second, third):
        assert later[0] <= 1.6
        assert max(later) <= 5.0
