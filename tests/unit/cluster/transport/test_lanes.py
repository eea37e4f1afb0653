"""No lane delays another: each is starved by hanging or throttled requests of the others, in virtual time."""

import asyncio
from itertools import pairwise

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, status
from tests.unit.cluster.leases.fake_leases import FakeLeases
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.lanes import LEASES, METRICS, OBJECTS
from trimtab.cluster.leases.family import Family
from trimtab.cluster.resource import PODS
from trimtab.cluster.transport import Request
from trimtab.metrics.queries import ExternalMetric, MetricsError, PodUsage
from trimtab.metrics.reader import MetricsReader

MANY = 300
WATCH = Request("GET", "/api/v1/namespaces/shop/pods", [("watch", "true"), ("resourceVersion", "100")])


def run(scenario):
    clock = VirtualClock()

    async def main():
        api = FakeLeases()
        await scenario(api, Client(clock, AsgiTransport(api), seed=1), clock)

    clock.run(main())


def hang(api, *parts):
    """Let every request hang whose path has one of these parts."""

    async def fault(request):
        if any(part in request.path for part in parts):
            await asyncio.Event().wait()

    api.fault = fault


async def cancel(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def start_reads(client):
    return [asyncio.ensure_future(client.get(PODS, f"p{n}", "stuck")) for n in range(MANY)]


def start_writes(client):
    body = {"metadata": {"labels": {"x": "y"}}}
    return [asyncio.ensure_future(client.patch(PODS, f"p{n}", "stuck", body)) for n in range(MANY)]


def start_queries(client):
    reader = MetricsReader(client.clock, client)
    return [
        asyncio.ensure_future(reader.external(ExternalMetric("stuck", f"queue-{n}"))) for n in range(MANY)
    ]


EVERYTHING = (start_reads, start_writes, start_queries)


@pytest.mark.parametrize("method", ["reads", "writes"])
def test_so_many_requests_of_a_lane_are_in_flight(method):
    async def scenario(api, client, clock):
        hang(api, "stuck")
        tasks = start_reads(client) if method == "reads" else start_writes(client)
        await clock.sleep(1)
        assert len(api.requests) == OBJECTS.turns
        await cancel(tasks)

    run(scenario)


@pytest.mark.parametrize("start", [start_reads, start_queries], ids=["lists", "metrics"])
def test_hanging_reads_keep_no_write_waiting(start):
    async def scenario(api, client, clock):
        await client.create(PODS, {"metadata": {"name": "web", "namespace": "shop"}}, "shop")
        hang(api, "stuck")
        tasks = start(client)
        await clock.sleep(0.1)
        await client.patch(PODS, "web", "shop", {"metadata": {"labels": {"x": "y"}}})
        assert clock.monotonic() == pytest.approx(0.1)
        await cancel(tasks)

    run(scenario)


@pytest.mark.parametrize("start", [start_reads, start_writes], ids=["reads", "writes"])
def test_hanging_requests_keep_no_metric_waiting(start):
    async def scenario(api, client, clock):
        hang(api, "stuck")
        tasks = start(client)
        await clock.sleep(0.1)
        with pytest.raises(MetricsError, match="not found"):
            await MetricsReader(clock, client).pod_usage(PodUsage("shop"))
        assert clock.monotonic() == pytest.approx(0.1)
        await cancel(tasks)

    run(scenario)


def test_hanging_requests_of_every_other_lane_keep_no_watch_waiting():
    async def scenario(api, client, clock):
        hang(api, "stuck")
        tasks = [task for start in EVERYTHING for task in start(client)]
        await clock.sleep(0.1)
        async with client.sender.watch("watching", WATCH) as stream:
            assert stream.status == 200
        assert clock.monotonic() == pytest.approx(0.1)
        await cancel(tasks)

    run(scenario)


async def renewals(api, client, clock, seconds):
    """Return the times at which a leader renewed its Lease, from its first write on."""
    elector = Family(client, "trimtab", "leader", "me")
    leading = asyncio.ensure_future(elector.run())
    await clock.sleep(seconds)
    await cancel([leading])
    return [at for at, request in api.seen if "/leases" in request.path and request.method in {"POST", "PUT"}]


def note_times(api, clock):
    """Keep the time of each request."""
    api.seen = []
    inner = api.fault

    async def fault(request):
        api.seen.append((clock.monotonic(), request))
        said = inner(request) if inner else None
        return await said if asyncio.iscoroutine(said) else said

    api.fault = fault


def test_a_leader_renews_on_time_while_all_other_requests_hang():
    """The Lease was renewed on the connections of everything else: 42 s without a renewal beside 200 hanging HPAs."""

    async def scenario(api, client, clock):
        hang(api, "stuck")
        note_times(api, clock)
        tasks = [task for start in EVERYTHING for task in start(client)]
        times = await renewals(api, client, clock, 60)
        assert max(after - before for before, after in pairwise(times)) <= 2.1
        assert len(times) >= 28
        await cancel(tasks)

    run(scenario)


def throttle(seconds):
    return Answer(429, status(429, "TooManyRequests"), headers=[("retry-after", str(seconds))])


def test_a_long_retry_after_of_a_write_stops_no_renewal():
    """One scale answered 429 with Retry-After 3600 silenced the process for an hour, renewals included."""

    async def scenario(api, client, clock):
        api.fault = lambda request: throttle(3600) if "/pods" in request.path else None
        note_times(api, clock)
        write = start_writes(client)[:1]
        times = await renewals(api, client, clock, 30)
        assert max(after - before for before, after in pairwise(times)) <= 2.1
        await cancel(write)

    run(scenario)


def test_a_throttled_renewal_is_sent_again_before_the_lease_is_lost():
    async def scenario(api, client, clock):
        api.fault = lambda request: throttle(3600) if 10 < clock.monotonic() < 14 else None
        note_times(api, clock)
        elector = Family(client, "trimtab", "leader", "me")
        leading = asyncio.ensure_future(elector.run())
        await clock.sleep(5)
        for _ in range(40):
            assert elector.may_write()
            await clock.sleep(1)
        await cancel([leading])

    run(scenario)


@pytest.mark.parametrize(
    ("said", "waited"), [(3, 3), (10, 10), (3600, 10)], ids=["short", "the longest", "longer is not observed"]
)
def test_a_retry_after_is_observed_up_to_ten_seconds(said, waited):
    async def scenario(api, client, clock):
        await client.create(PODS, {"metadata": {"name": "web", "namespace": "shop"}}, "shop")
        answers = [throttle(said)]
        api.fault = lambda request: answers.pop() if answers else None
        await client.get(PODS, "web", "shop")
        assert waited <= clock.monotonic() <= waited * 1.25

    run(scenario)


class Toggle:
    """A fence that a test closes."""

    def __init__(self):
        self.is_open = True

    def may_write(self):
        return self.is_open

    def time_left(self):
        return 60.0 if self.is_open else 0.0


def test_a_write_whose_fence_closed_while_it_waited_for_its_turn_is_not_sent():
    async def scenario(api, client, clock):
        hang(api, "stuck")
        others = start_writes(client)
        fence = Toggle()
        late = asyncio.ensure_future(client.fenced(fence).delete(PODS, "web", "shop"))
        await clock.sleep(1)
        fence.is_open = False
        await cancel(others)
        with pytest.raises(errors.Fenced):
            await late
        assert not [request for request in api.requests if request.method == "DELETE"]

    run(scenario)


def test_equal_limits_are_one_lane():
    client = Client(VirtualClock(), AsgiTransport(FakeLeases()))
    assert client.in_lane(LEASES).sender._lane is client.in_lane(METRICS).in_lane(LEASES).sender._lane
    assert client.in_lane(LEASES).sender.counts is client.sender.counts
