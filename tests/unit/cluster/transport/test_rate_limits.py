"""Back-off, 429 and the rate limit, on a virtual clock."""

import asyncio
import random

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.transport.rate_limits import Backoff, RateLimiter


class NoJitter(random.Random):
    """Draws nothing, or always the same."""

    value = 0.0

    def random(self) -> float:
        return self.value


class MostJitter(NoJitter):
    value = 1.0


def run(scenario):
    clock = VirtualClock()
    return clock.run(scenario(clock))


@pytest.mark.parametrize(
    ("jitter", "factor"), [(NoJitter(), 1.0), (MostJitter(), 2.0)], ids=["least", "most"]
)
def test_delays_double_up_to_the_longest(jitter, factor):
    backoff = Backoff(VirtualClock(), jitter)
    delays = [backoff.delay() for _ in range(8)]
    assert delays == [min(factor * base, 30.0) for base in (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0)]
    backoff.reset()
    assert backoff.delay() == factor * 0.8


@pytest.mark.parametrize(("quiet", "want"), [(121.6, 1.6), (121.7, 0.8)], ids=["not yet", "reset"])
def test_a_time_without_failures_resets_the_delay(quiet, want):
    clock = VirtualClock()
    backoff = Backoff(clock, NoJitter())
    assert backoff.delay() == 0.8
    clock.advance(quiet)
    assert backoff.delay() == want


def test_a_longest_delay_below_the_first_does_not_shorten_the_first():
    backoff = Backoff(VirtualClock(), MostJitter(), first=2.0, longest=1.0)
    assert [backoff.delay(), backoff.delay()] == [2.0, 1.0]


async def admitted(limiter, clock, count):
    """Return when each of so many requests, all made now, goes."""

    async def request():
        await limiter.admit()
        return clock.monotonic()

    return sorted(await asyncio.gather(*(request() for _ in range(count))))


def test_a_burst_goes_at_once_and_is_refilled_by_waiting():
    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter(), qps=5, burst=5)
        assert await admitted(limiter, clock, 5) == [0.0] * 5
        await clock.sleep(1.0)
        assert await admitted(limiter, clock, 5) == [1.0] * 5
        await clock.sleep(100.0)
        start = clock.monotonic()
        assert await admitted(limiter, clock, 7) == pytest.approx([start] * 5 + [start + 0.2, start + 0.4])

    run(scenario)


def test_part_of_a_burst_is_refilled_in_part_of_the_time():
    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter(), qps=2, burst=4)
        await admitted(limiter, clock, 4)
        await clock.sleep(1.0)
        assert await admitted(limiter, clock, 3) == pytest.approx([1.0, 1.0, 1.5])

    run(scenario)


def test_without_a_limit_every_request_goes_at_once():
    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter())
        assert limiter.is_open
        assert await admitted(limiter, clock, 100) == [0.0] * 100
        assert not RateLimiter(clock, NoJitter(), qps=5).is_open

    run(scenario)


@pytest.mark.parametrize(
    ("retry_after", "jitter", "want"),
    [
        pytest.param(None, NoJitter(), 1.0, id="a second if the server names no time"),
        pytest.param(3.0, NoJitter(), 3.0, id="as long as the server says"),
        pytest.param(0.0, NoJitter(), 0.1, id="never at once"),
        pytest.param(3600.0, NoJitter(), 10.0, id="never longer than ten seconds"),
        pytest.param(4.0, MostJitter(), 5.0, id="up to a quarter longer"),
    ],
)
def test_after_a_429_one_request_goes_after_the_wait_and_opens_the_gate(retry_after, jitter, want):
    async def scenario(clock):
        limiter = RateLimiter(clock, jitter)
        limiter.throttle(retry_after)

        async def request():
            await limiter.admit()
            went = clock.monotonic()
            await clock.sleep(0.5)
            limiter.served()
            return went

        went = sorted(await asyncio.gather(*(request() for _ in range(3))))
        assert went == pytest.approx([want, want + 0.5, want + 0.5])
        opened = limiter.is_open
        limiter.throttle(retry_after)
        closed = limiter.is_open
        assert (opened, closed) == (True, False)

    run(scenario)


def test_a_second_429_starts_the_wait_again():
    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter())
        limiter.throttle(2.0)
        await limiter.admit()
        assert clock.monotonic() == 2.0
        limiter.throttle(3.0)
        await limiter.admit()
        assert clock.monotonic() == 5.0

    run(scenario)


def test_while_no_answer_arrives_a_request_goes_every_second():
    """A request that hangs after a 429 held all others until its own deadline."""

    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter())
        limiter.throttle(2.0)
        assert await admitted(limiter, clock, 4) == pytest.approx([2.0, 3.0, 4.0, 5.0])

    run(scenario)
