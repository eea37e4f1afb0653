"""A metrics source that hangs or fails slowly delays only itself, in virtual time."""

import asyncio

import pytest

from tests.unit.metrics.fake_metrics import Api, run
from trimtab.clock import VirtualClock
from trimtab.metrics.bulkheads import FAILING_SLOTS, PATIENCE_SECONDS, SLOTS, SLOW_SLOTS, Bulkhead, _Slow
from trimtab.metrics.queries import ExternalMetric, MetricsError, ObjectMetric, PodUsage

MANY = 200
NOTHING: dict[str, list[str]] = {"items": []}
SLOW_503 = (5, 503)


def misbehave(api, how, part="/stuck"):
    api.answer = lambda path: how if part in path else NOTHING


def stuck(reader, how_many=MANY):
    return [
        asyncio.ensure_future(reader.external(ExternalMetric("shop", f"stuck-{number}")))
        for number in range(how_many)
    ]


async def failures(tasks):
    return {str(error) for error in await asyncio.gather(*tasks, return_exceptions=True)}


async def seconds(clock, asked):
    began = clock.monotonic()
    await asked
    return clock.monotonic() - began


@pytest.mark.parametrize("how", ["hang", SLOW_503], ids=["hangs", "503 after 5 s"])
def test_other_sources_are_asked_at_once(how):
    api = Api()
    misbehave(api, how)

    async def act(reader, clock):
        for _ in range(3):
            tasks = stuck(reader)
            await clock.sleep(0.5)
            assert await seconds(clock, reader.pod_usage(PodUsage("shop"))) == 0
            assert await seconds(clock, reader.custom(ObjectMetric("shop", "pods", "a", "hits"))) == 0
            await failures(tasks)

    run(api, act)


@pytest.mark.parametrize("how", ["hang", SLOW_503], ids=["hangs", "503 after 5 s"])
def test_other_metrics_of_the_same_source_wait_once_and_shortly(how):
    """Only a query that timed out counted as slow, so a source that fails after 5 s took every slot each time."""
    api = Api()
    misbehave(api, how)
    waits = []

    async def act(reader, clock):
        for _ in range(3):
            tasks = stuck(reader)
            await clock.sleep(0.1)  # they are asked first
            waits.append(await seconds(clock, reader.external(ExternalMetric("shop", "healthy"))))
            await failures(tasks)

    run(api, act)
    assert waits[0] <= PATIENCE_SECONDS + MANY / SLOTS * 0.25
    assert waits[1:] == [0, 0]


def test_many_failures_just_below_the_patience_make_other_metrics_wait_only_once():
    """200 times a 503 after 0.9 s took every ordinary slot in each sync: 7.5 to 10.8 s for a healthy metric."""
    api = Api()
    misbehave(api, (0.9, 503))
    waits = []

    async def act(reader, clock):
        for _ in range(5):
            tasks = stuck(reader)
            await clock.sleep(0.1)  # they are asked first
            waits.append(await seconds(clock, reader.external(ExternalMetric("shop", "healthy"))))
            await failures(tasks)

    run(api, act)
    assert waits[0] <= MANY / SLOTS
    assert max(waits[1:]) == 0


def test_a_few_failures_below_the_patience_take_ordinary_slots():
    async def act():
        bulkhead: Bulkhead[int] = Bulkhead(clock, 10.0)

        async def fail():
            await clock.sleep(0.9)
            raise MetricsError("503")

        asked = (bulkhead.run(number, fail) for number in range(SLOTS - 1))
        await asyncio.gather(*asked, return_exceptions=True)
        assert bulkhead.slow_queries == 0

    clock = VirtualClock()
    clock.run(act())


@pytest.mark.parametrize("how", ["hang", SLOW_503], ids=["hangs", "503 after 5 s"])
def test_no_query_takes_longer_than_its_wait_and_its_deadline(how):
    """An HPA with a second, healthy metric waits for all its queries: it must not wait for a queue of 200."""
    api = Api()
    misbehave(api, how)

    async def act(reader, clock):
        for _ in range(4):
            began = clock.monotonic()
            said = await failures(stuck(reader))
            assert clock.monotonic() - began <= 5 + 5 + 10
            assert all(word in " ".join(said) for word in ("external.metrics.k8s.io", "not asked"))

    run(api, act, deadline=10)


def test_only_so_many_queries_of_a_source_are_in_flight(monkeypatch):
    api = Api()
    together = [0, 0]
    inner = api.request

    async def counted(*args):
        together[0] += 1
        together[1] = max(together)
        try:
            return await inner(*args)
        finally:
            together[0] -= 1

    monkeypatch.setattr(api, "request", counted)
    misbehave(api, "hang")

    async def act(reader, clock):
        for _ in range(3):
            await failures(stuck(reader))

    run(api, act)
    assert together[1] == SLOTS + SLOW_SLOTS


def test_a_query_that_was_given_up_is_not_sent_on_an_ordinary_slot_again():
    """Those that got no slot of slow queries were tried anew in every sync: 30 per second to a source that hangs."""
    api = Api()
    misbehave(api, "hang")

    async def act(reader, clock):
        await failures(stuck(reader))
        before = len(api.asked)
        await failures(stuck(reader))
        assert len(api.asked) - before <= SLOW_SLOTS

    run(api, act)


def test_a_source_that_recovers_is_used_at_once():
    api = Api()
    misbehave(api, "hang")

    async def act(reader, clock):
        await failures(stuck(reader))
        misbehave(api, NOTHING)
        assert await seconds(clock, asyncio.gather(*stuck(reader))) == 0
        assert [source.slow_queries for source in reader._sources.values()] == [0, 0, 0]

    run(api, act)


def test_a_query_that_is_slow_now_and_then_goes_before_those_that_never_answer():
    """The slots of slow queries went round: a healthy metric that was slow once waited behind 200 that hang."""
    api = Api()
    misbehave(api, "hang")

    async def act(reader, clock):
        for _ in range(3):
            await failures(stuck(reader))
        api.answer = lambda path: "hang" if "/stuck" in path else (2, NOTHING)
        query = ExternalMetric("shop", "once-slow")
        for _ in range(5):
            tasks = stuck(reader)
            await reader.external(query)
            await failures(tasks)

    run(api, act)


def test_a_slow_answer_is_an_answer():
    api = Api()
    api.answer = lambda path: (3, NOTHING)

    async def act(reader, clock):
        for _ in range(3):
            assert await seconds(clock, asyncio.gather(*stuck(reader, SLOW_SLOTS))) == 3

    run(api, act)
    assert len(api.asked) == 3 * SLOW_SLOTS


def test_slow_queries_of_deleted_hpas_are_forgotten():
    clock = VirtualClock()

    async def fail():
        await asyncio.sleep(2)
        raise MetricsError

    async def main():
        bulkhead = Bulkhead[int](clock, 10.0)
        for number in range(100):
            with pytest.raises(MetricsError):
                await bulkhead.run(number, fail)
            await clock.sleep(60)
        return bulkhead.slow_queries

    assert clock.run(main()) <= 11


def test_a_cancelled_query_returns_its_slot():
    clock = VirtualClock()

    async def main():
        bulkhead = Bulkhead[int](clock, 10.0)
        bulkhead._slow.update({number: _Slow(number % 3, 0.0) for number in range(30)})
        for moment in (0.1, 0.5, 1.1, 3.0, 7.0):
            tasks = [asyncio.ensure_future(bulkhead.run(n, asyncio.Event().wait)) for n in range(50)]
            await clock.sleep(moment)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert (bulkhead._slots._value, bulkhead._slow_slots.free) == (SLOTS, SLOW_SLOTS)
            assert bulkhead._slow_slots._free_for_failing == FAILING_SLOTS

    clock.run(main())
