"""When informers try again after an outage, together, in virtual time."""

import asyncio
import random

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.cache.recovery import PROBE_SECONDS, SPREAD_SECONDS, Recovery


class Jitter(random.Random):
    def random(self):
        return 0.5


def run(act):
    clock = VirtualClock()

    async def main():
        return await act(Recovery(clock, Jitter()), clock)

    return clock.run(main())


async def ended(recovery, clock, *waits):
    """Return when each wait of so many seconds ended."""

    async def wait(seconds):
        await recovery.wait(seconds)
        return clock.monotonic()

    return await asyncio.gather(*(wait(seconds) for seconds in waits))


@pytest.mark.parametrize(("seconds", "want"), [(0.0, 0.0), (3.0, 3.0), (30.0, 5.0)])
def test_a_single_informer_waits_its_time_or_until_the_next_probe(seconds, want):
    assert run(lambda recovery, clock: ended(recovery, clock, seconds)) == [want]
    assert (PROBE_SECONDS, SPREAD_SECONDS) == (5.0, 1.0)


def test_of_many_informers_one_tries_every_five_seconds():
    times = run(lambda recovery, clock: ended(recovery, clock, *[30.0] * 4))
    assert sorted(times) == [5.0, 10.0, 15.0, 20.0]


def test_all_end_their_waits_within_a_second_when_one_reached_the_server():
    async def act(recovery, clock):
        waiting = asyncio.ensure_future(ended(recovery, clock, 30.0, 30.0, 30.0))
        await clock.sleep(2)
        recovery.notify()
        return await waiting

    assert run(act) == [2.5, 2.5, 2.5]


def test_a_later_outage_starts_with_a_new_five_seconds():
    async def act(recovery, clock):
        await recovery.wait(30.0)
        await clock.sleep(100)
        began = clock.monotonic()
        await recovery.wait(30.0)
        return clock.monotonic() - began

    assert run(act) == 5.0


def test_a_cancelled_wait_is_forgotten():
    async def act(recovery, clock):
        waiting = asyncio.ensure_future(recovery.wait(30.0))
        await clock.sleep(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await clock.sleep(1)
        began = clock.monotonic()
        await recovery.wait(30.0)
        return clock.monotonic() - began, len(asyncio.all_tasks())

    assert run(act) == (5.0, 1)


def test_news_before_a_wait_does_not_end_it():
    async def act(recovery, clock):
        recovery.notify()
        return await ended(recovery, clock, 3.0)

    assert run(act) == [3.0]
