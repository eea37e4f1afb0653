"""Back-off, token bucket and breaker, on a virtual clock."""

import asyncio
import random

import pytest

from trimtab.clock import VirtualClock
from trimtab.pacing import Backoff, Breaker, TokenBucket


class Jitter(random.Random):
    """Always draws the same."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def random(self):
        return self.value


def backoff(clock, jitter=None, **limits):
    return Backoff(clock, **{"first": 0.8, "longest": 30.0, "reset_after": 120.0, **limits}, jitter=jitter)


@pytest.mark.parametrize(
    ("jitter", "factor"), [(None, 1.0), (Jitter(0.0), 1.0), (Jitter(1.0), 2.0)], ids=["none", "least", "most"]
)
def test_delays_double_up_to_the_longest(jitter, factor):
    delays = backoff(VirtualClock(), jitter)
    bases = (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0)
    assert [delays.failed() for _ in bases] == [min(factor * base, 30.0) for base in bases]
    assert delays.seconds == 30.0
    delays.succeeded()
    assert delays.seconds == 0.0
    assert delays.failed() == factor * 0.8


@pytest.mark.parametrize(("quiet", "want"), [(121.6, 1.6), (121.7, 0.8)], ids=["not yet", "reset"])
def test_a_time_without_failures_resets_the_delay(quiet, want):
    clock = VirtualClock()
    delays = backoff(clock)
    assert delays.failed() == 0.8
    clock.advance(quiet)
    assert delays.failed() == want


def test_a_longest_delay_below_the_first_does_not_shorten_the_first():
    delays = backoff(VirtualClock(), Jitter(1.0), first=2.0, longest=1.0)
    assert [delays.failed(), delays.failed()] == [2.0, 1.0]


def test_a_delay_lasts_until_its_end_or_a_success():
    clock = VirtualClock()
    delays = backoff(clock, first=10.0)
    assert not delays.is_waiting
    delays.failed()
    assert (delays.is_waiting, delays.until) == (True, 10.0)
    clock.advance(10.0)
    assert not delays.is_waiting
    delays.failed()
    delays.succeeded()
    assert not delays.is_waiting


def test_a_burst_of_tokens_is_there_at_once_and_refilled_one_by_one():
    clock = VirtualClock()
    bucket = TokenBucket(clock, 0.2, 3)
    assert [bucket.take() for _ in range(5)] == pytest.approx([0, 0, 0, 0.2, 0.4])
    full = [bucket.is_full]
    clock.advance(0.4)
    assert bucket.take() == pytest.approx(0.2)
    clock.advance(100.0)
    assert [*full, bucket.is_full] == [False, True]
    assert [bucket.take() for _ in range(4)] == pytest.approx([0, 0, 0, 0.2])


def test_a_token_that_is_given_back_is_there_for_the_next():
    bucket = TokenBucket(VirtualClock(), 10.0, 1)
    assert [bucket.try_take(), bucket.try_take()] == [True, False]
    assert bucket.take() == 10.0  # the refused one took nothing
    bucket.give_back()
    bucket.give_back()
    assert bucket.try_take()


def opened(clock, trips=3):
    """Return a breaker after as many failures as open it, with a probe every 5 s."""
    breaker = Breaker(Backoff(clock, first=5.0, longest=5.0), trips=trips)
    for _ in range(trips):
        assert breaker.admit()
        breaker.failed()
    return breaker


def in_virtual_time(scenario):
    clock = VirtualClock()
    clock.run(scenario(clock))


def test_failures_in_a_row_open_it_and_each_success_starts_their_count_again():
    async def scenario(clock):
        breaker = Breaker(Backoff(clock, first=5.0, longest=5.0), trips=2)
        breaker.failed()
        breaker.passed()
        breaker.failed()
        assert breaker.admit()
        breaker.failed()
        assert (breaker.is_open, breaker.admit()) == (True, False)

    in_virtual_time(scenario)


def test_while_it_is_open_one_request_goes_per_back_off():
    async def scenario(clock):
        breaker = opened(clock)
        times = []
        for _ in range(40):
            if breaker.admit():
                times.append(clock.monotonic())
                breaker.failed()
            await clock.sleep(0.5)
        assert times == [5.0, 10.0, 15.0]

    in_virtual_time(scenario)


def test_a_success_lets_all_go_and_wakes_those_that_wait_for_it():
    async def scenario(clock):
        breaker = opened(clock)
        waiting = [asyncio.ensure_future(breaker.closed.wait()) for _ in range(3)]
        await clock.sleep(1)
        breaker.passed()
        await asyncio.gather(*waiting)
        assert clock.monotonic() == 1.0
        assert breaker.admit()

    in_virtual_time(scenario)


@pytest.mark.parametrize(
    "end", [Breaker.passed, Breaker.failed, Breaker.end_probe], ids=["passed", "failed", "cancelled"]
)
def test_the_end_of_a_probe_wakes_those_that_wait_for_its_verdict(end):
    async def scenario(clock):
        breaker = opened(clock)
        await clock.sleep(5)
        assert breaker.admit()
        verdict = breaker.verdict
        assert verdict is not None
        end(breaker)
        assert verdict.done()
        assert breaker.verdict is not verdict
        # A probe without a result gives its turn to the next request.
        assert breaker.admit() == (end is not Breaker.failed)

    in_virtual_time(scenario)


def test_a_later_outage_starts_with_a_new_delay():
    async def scenario(clock):
        breaker = opened(clock, trips=1)
        breaker.passed()
        await clock.sleep(100)
        breaker.failed()
        assert not breaker.admit()
        assert breaker.backoff.until == 105.0

    in_virtual_time(scenario)
