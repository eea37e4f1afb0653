"""429 and the rate limit, on a virtual clock."""

import asyncio
import random

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.lanes import RateLimiter


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


async def admitted(limiter, clock, count):
    """Return when each of so many different requests, all made now, goes."""

    async def request(number):
        await limiter.admit(f"GET /{number}")
        return clock.monotonic()

    return sorted(await asyncio.gather(*(request(number) for number in range(count))))


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


def test_without_a_limit_every_request_goes_at_once():
    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter())
        assert limiter.may_pass("GET /a")
        assert await admitted(limiter, clock, 100) == [0.0] * 100
        assert not RateLimiter(clock, NoJitter(), qps=5).may_pass("GET /a")

    run(scenario)


WAITS = [
    pytest.param(None, NoJitter(), 1.0, id="a second if the server names no time"),
    pytest.param(3.0, NoJitter(), 3.0, id="as long as the server says"),
    pytest.param(0.0, NoJitter(), 0.1, id="never at once"),
    pytest.param(3600.0, NoJitter(), 10.0, id="never longer than ten seconds"),
    pytest.param(4.0, MostJitter(), 5.0, id="up to a quarter longer"),
]


@pytest.mark.parametrize(("retry_after", "jitter", "want"), WAITS)
def test_a_429_holds_back_the_same_request_and_the_others_for_a_second(retry_after, jitter, want):
    """A webhook that throttled one scale for 10 s stopped the scales of all other namespaces."""

    async def scenario(clock):
        limiter = RateLimiter(clock, jitter)
        limiter.throttle("PATCH /a", retry_after)

        async def request(key):
            await limiter.admit(key)
            went = clock.monotonic()
            await clock.sleep(0.0)
            limiter.served(key)
            return went

        went = await asyncio.gather(*(request(key) for key in ("PATCH /a", "PATCH /b", "GET /a")))
        other = min(1.0, want)
        assert went == pytest.approx([want, other, other])
        assert limiter.may_pass("PATCH /a")

    run(scenario)


async def overload(limiter, clock, retry_after):
    """Throttle one request, and those that probe after it."""
    limiter.throttle("GET /0", retry_after)
    for number in (1, 2):
        await limiter.admit(f"GET /{number}")
        limiter.throttle(f"GET /{number}", retry_after)
    return clock.monotonic()


@pytest.mark.parametrize(("retry_after", "jitter", "want"), WAITS)
def test_a_server_that_throttles_different_requests_gets_one_per_retry_after(retry_after, jitter, want):
    async def scenario(clock):
        limiter = RateLimiter(clock, jitter)
        start = await overload(limiter, clock, retry_after)

        async def request(key):
            await limiter.admit(key)
            went = clock.monotonic() - start
            await clock.sleep(0.5)
            limiter.served(key)
            return went

        went = sorted(await asyncio.gather(*(request(key) for key in ("GET /3", "GET /4", "GET /2"))))
        # The first response lifts all, also for those that were throttled before.
        assert went == pytest.approx([want, want + 0.5, want + 0.5])
        assert limiter.may_pass("GET /0")

    run(scenario)


def test_requests_in_flight_at_the_first_429_are_no_sign_of_an_overload():
    """Twenty scales of one namespace, throttled by its webhook at the same time."""

    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter())
        for number in range(20):
            limiter.throttle(f"PATCH /{number}", 10.0)
        await limiter.admit("PATCH /other")
        assert clock.monotonic() == 1.0
        limiter.served("PATCH /other")
        assert limiter.may_pass("PATCH /another")
        assert not limiter.may_pass("PATCH /0")

    run(scenario)


def test_requests_that_were_throttled_let_the_others_go_first():
    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter())
        for number in range(20):
            limiter.throttle(f"PATCH /{number}", 0.5)
        order = []

        async def request(key):
            await limiter.admit(key)
            order.append((key, clock.monotonic()))

        known = [asyncio.ensure_future(request(f"PATCH /{number}")) for number in range(3)]
        await clock.sleep(0.2)
        fresh = [asyncio.ensure_future(request(f"PATCH /new{number}")) for number in range(2)]
        await asyncio.gather(*known, *fresh)
        keys, times = zip(*order, strict=True)
        assert keys[:2] == ("PATCH /new0", "PATCH /new1")
        assert times == pytest.approx([0.5, 1.5, 2.5, 3.5, 4.5])

    run(scenario)


def test_a_second_429_starts_the_wait_again():
    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter())
        limiter.throttle("GET /a", 2.0)
        await limiter.admit("GET /a")
        assert clock.monotonic() == 2.0
        limiter.throttle("GET /a", 3.0)
        await limiter.admit("GET /a")
        assert clock.monotonic() == 5.0

    run(scenario)


def test_while_no_answer_arrives_a_request_goes_every_second():
    """A request that hangs after a 429 held all others until its own deadline."""

    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter())
        limiter.throttle("GET /a", 2.0)
        assert await admitted(limiter, clock, 4) == pytest.approx([1.0, 2.0, 3.0, 4.0])

    run(scenario)


def test_a_request_that_is_not_sent_again_is_forgotten():
    async def scenario(clock):
        limiter = RateLimiter(clock, NoJitter())
        limiter.throttle("DELETE /gone", 1.0)
        limiter.served("GET /a")
        assert not limiter.may_pass("DELETE /gone")
        await clock.sleep(62.0)
        limiter.throttle("GET /b", 1.0)
        limiter.served("GET /a")
        assert limiter.may_pass("DELETE /gone")

    run(scenario)
