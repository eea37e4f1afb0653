"""Which slot a slow query gets, and when it counts as slow, in virtual time."""

import asyncio

import pytest

from trimtab.clock import VirtualClock
from trimtab.metrics import bulkheads
from trimtab.metrics.bulkheads import FAILING_SLOTS, SLOTS, SLOW_SLOTS, Bulkhead, SourceBusyError
from trimtab.metrics.queries import MetricsError


def run(act):
    clock = VirtualClock()

    async def main():
        return await act(Bulkhead[str](clock, 10.0), clock)

    return clock.run(main())


def answer_after(seconds, result="answer"):
    async def fetch():
        await asyncio.sleep(seconds)
        return result

    return fetch


def fail_after(seconds):
    async def fetch():
        await asyncio.sleep(seconds)
        raise MetricsError("it is down")

    return fetch


async def fail_slowly(bulkhead, key, times):
    for _ in range(times):
        with pytest.raises(MetricsError):
            await bulkhead.run(key, fail_after(2))


def test_the_limits():
    assert (SLOTS, SLOW_SLOTS, FAILING_SLOTS) == (16, 8, 4)
    assert (bulkheads.PATIENCE_SECONDS, bulkheads.SHORT_PATIENCE_SECONDS) == (1.0, 0.25)


@pytest.mark.parametrize(("seconds", "slow"), [(0.99, 0), (1.0, 1), (3.0, 1)])
@pytest.mark.parametrize("how", [answer_after, fail_after], ids=["answered", "failed"])
def test_a_query_is_slow_from_one_second_on(how, seconds, slow):
    async def act(bulkhead, clock):
        await asyncio.gather(bulkhead.run("query", how(seconds)), return_exceptions=True)
        return bulkhead.slow_queries

    assert run(act) == slow


@pytest.mark.parametrize("how", [answer_after, fail_after], ids=["answered", "failed"])
def test_a_slow_query_that_becomes_prompt_is_no_longer_slow(how):
    async def act(bulkhead, clock):
        await bulkhead.run("query", answer_after(2))
        assert bulkhead.slow_queries == 1
        await asyncio.gather(bulkhead.run("query", how(0.1)), return_exceptions=True)
        return bulkhead.slow_queries

    assert run(act) == 0


def test_a_slow_query_without_a_slot_is_not_sent_after_half_of_the_deadline():
    async def act(bulkhead, clock):
        for number in range(FAILING_SLOTS + 1):
            await fail_slowly(bulkhead, f"hangs-{number}", 1)
        holders = [
            asyncio.ensure_future(bulkhead.run(f"hangs-{number}", asyncio.Event().wait))
            for number in range(FAILING_SLOTS)
        ]
        await asyncio.sleep(0)
        began = clock.monotonic()
        with pytest.raises(SourceBusyError):
            await bulkhead.run(f"hangs-{FAILING_SLOTS}", answer_after(0))
        waited = clock.monotonic() - began
        ended = await asyncio.gather(*holders, return_exceptions=True)
        return waited, clock.monotonic() - began, {type(error) for error in ended}

    assert run(act) == (5.0, 10.0, {TimeoutError})


@pytest.mark.parametrize("first", ["often", "once"], ids=["the worse asks first", "the better asks first"])
def test_a_free_slot_goes_to_the_query_with_fewer_failures_in_a_row(first):
    async def act(bulkhead, clock):
        for number in range(FAILING_SLOTS):
            await fail_slowly(bulkhead, f"holder-{number}", 1)
        await fail_slowly(bulkhead, "often", 3)
        await fail_slowly(bulkhead, "once", 1)
        sent = []

        async def ask(key):
            async def fetch():
                sent.append(key)
                await asyncio.sleep(0.5)

            await bulkhead.run(key, fetch)

        holders = [bulkhead.run(f"holder-{number}", answer_after(3)) for number in range(FAILING_SLOTS - 1)]
        last = bulkhead.run(f"holder-{FAILING_SLOTS - 1}", answer_after(1))
        tasks = [asyncio.ensure_future(coroutine) for coroutine in (*holders, last)]
        await asyncio.sleep(0)
        tasks += [asyncio.ensure_future(ask(key)) for key in (first, "once" if first == "often" else "often")]
        await asyncio.gather(*tasks)
        return sent

    assert run(act) == ["once", "often"]


def test_an_answer_ends_the_failures_in_a_row():
    """A query that is answered slowly again has the slots that failing queries may not take."""

    async def act(bulkhead, clock):
        await fail_slowly(bulkhead, "query", 3)
        await bulkhead.run("query", answer_after(2))
        for number in range(FAILING_SLOTS):
            await fail_slowly(bulkhead, f"holder-{number}", 1)
        holders = [
            asyncio.ensure_future(bulkhead.run(f"holder-{number}", answer_after(3)))
            for number in range(FAILING_SLOTS)
        ]
        await asyncio.sleep(0)
        began = clock.monotonic()
        await bulkhead.run("query", answer_after(2))
        took = clock.monotonic() - began
        await asyncio.gather(*holders)
        return took

    assert run(act) == 2.0


def test_a_prompt_query_that_fails_while_it_is_given_up_keeps_its_own_error():
    async def cleanup_fails():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise MetricsError("the connection broke") from None

    async def act(bulkhead, clock):
        holders = [
            asyncio.ensure_future(bulkhead.run(f"slow-{number}", answer_after(8)))
            for number in range(SLOW_SLOTS)
        ]
        await asyncio.sleep(2)
        with pytest.raises(MetricsError, match="the connection broke"):
            await bulkhead.run("query", cleanup_fails)
        await asyncio.gather(*holders)

    run(act)


def test_a_given_up_query_is_sent_again_when_a_slow_slot_is_free():
    times = []

    async def act(bulkhead, clock):
        async def fetch():
            times.append(clock.monotonic())
            await asyncio.sleep(2)
            return "answer"

        holders = [
            asyncio.ensure_future(bulkhead.run(f"slow-{number}", answer_after(4)))
            for number in range(SLOW_SLOTS)
        ]
        await asyncio.sleep(2)
        assert await bulkhead.run("query", fetch) == "answer"
        await asyncio.gather(*holders)
        return times

    assert run(act) == [2.0, 4.0]


def test_a_slow_query_leaves_its_slot_to_others():
    async def act(bulkhead, clock):
        slow = [
            asyncio.ensure_future(bulkhead.run(f"slow-{number}", answer_after(5)))
            for number in range(SLOW_SLOTS)
        ]
        prompt = [
            asyncio.ensure_future(bulkhead.run(f"prompt-{number}", answer_after(0.1)))
            for number in range(SLOTS)
        ]
        await asyncio.gather(*prompt)
        began = clock.monotonic()
        await asyncio.sleep(1 - began)
        full = [
            asyncio.ensure_future(bulkhead.run(f"later-{number}", answer_after(0.1)))
            for number in range(SLOTS)
        ]
        await asyncio.gather(*full)
        assert clock.monotonic() == pytest.approx(1.1)
        await asyncio.gather(*slow)

    run(act)


def test_slow_queries_are_forgotten_ten_minutes_after_they_were_last_sent():
    async def act(bulkhead, clock):
        await bulkhead.run("deleted", answer_after(2))
        await clock.sleep(300)
        await bulkhead.run("kept", answer_after(2))
        await clock.sleep(297)
        await bulkhead.run("prompt", answer_after(0))
        before = bulkhead.slow_queries
        await clock.sleep(1)
        await bulkhead.run("prompt", answer_after(0))
        return before, bulkhead.slow_queries

    assert run(act) == (2, 1)
