"""What the sender adds to requests, counts, and reads of refused watches."""

from contextlib import asynccontextmanager
from math import inf

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.lanes import LEASES, METRICS, OBJECTS
from trimtab.cluster.leases.fence import ClosedFence, NoFence
from trimtab.cluster.resource import PODS
from trimtab.cluster.transport import Deadlines, Request, Response

GET, PATCH = Request("GET", "/x"), Request("PATCH", "/x", body=b"{}")


class Recording:
    """A transport that keeps requests, and gives the answers that it was given in turn."""

    def __init__(self, *answers):
        self.requests: list[Request] = []
        self.answers = list(answers)
        self.chunks_read = 0

    async def request(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else Response(200, {}, b"{}")
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def stream(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield Endless(self, answer)

    async def close(self):
        pass


class Endless:
    """The body of an answer that never ends."""

    headers = {"retry-after": "3"}

    def __init__(self, transport, status):
        self.status = status
        self._transport = transport

    async def chunks(self):
        while True:
            self._transport.chunks_read += 1
            yield b"x" * 1024


class Fence:
    def __init__(self, left):
        self.left = left

    def may_write(self):
        return self.left > 0

    def time_left(self):
        return self.left


def run(act, *answers, **options):
    clock = VirtualClock()
    transport = Recording(*answers)

    async def main():
        return await act(Client(clock, transport, seed=1, **options), clock)

    return clock.run(main()), transport


def test_the_limits_of_the_lanes():
    assert (OBJECTS.turns, OBJECTS.longest_wait, OBJECTS.has_own_pace) == (32, 10.0, False)
    assert (LEASES.turns, LEASES.longest_wait, LEASES.has_own_pace) == (16, 2.0, True)
    assert (METRICS.turns, METRICS.longest_wait, METRICS.has_own_pace) == (80, 10.0, False)


def test_requests_go_over_the_connections_of_their_lane():
    async def act(client, clock):
        await client.sender.send("reading", GET)
        await client.in_lane(LEASES).sender.send("reading", GET)
        await client.in_lane(METRICS).in_lane(OBJECTS).sender.send("reading", GET)

    _, transport = run(act)
    assert [request.lane for request in transport.requests] == ["", "leases", ""]


@pytest.mark.parametrize(
    ("left", "deadlines", "is_fenced"),
    [
        pytest.param(inf, Deadlines(), False, id="no lease"),
        pytest.param(60.0, Deadlines(), True, id="more time than a write takes"),
        pytest.param(4.0, Deadlines(4.0, 4.0, 4.0, 4.0), True, id="less time than a write may take"),
    ],
)
def test_a_write_ends_before_the_lease_may_be_lost(left, deadlines, is_fenced):
    fence = Fence(left)

    async def act(client, clock):
        await client.fenced(fence).sender.send("writing", PATCH)

    _, transport = run(act)
    (request,) = transport.requests
    assert request.deadlines == deadlines
    assert (request.may_send is not None) == is_fenced
    if is_fenced:
        assert request.may_send()
        fence.left = 0.0
        assert not request.may_send()


def test_a_read_needs_no_lease():
    async def act(client, clock):
        await client.fenced(ClosedFence()).sender.send("reading", GET)
        with pytest.raises(errors.Fenced, match="writing: not sent, the lease may be lost"):
            await client.fenced(ClosedFence()).sender.send("writing", PATCH)
        await client.fenced(ClosedFence()).fenced(NoFence()).sender.send("writing", PATCH)

    _, transport = run(act)
    assert [request.method for request in transport.requests] == ["GET", "PATCH"]
    assert transport.requests[0].may_send is None
    assert (ClosedFence().time_left(), NoFence().time_left()) == (0.0, inf)


@pytest.mark.parametrize("status", [199, 300, 404, 500])
def test_only_2xx_is_a_success(status):
    async def act(client, clock):
        with pytest.raises(errors.ApiError) as caught:
            await client.sender.send_once("reading", GET)
        assert caught.value.code == status
        assert (await client.sender.send_once("reading", GET)).status == 200
        assert (await client.sender.send_once("reading", GET)).status == 299
        return dict(client.sender.counts.sent), client.sender.counts.total()

    (counts, total), _ = run(
        act, Response(status, {}, b""), Response(200, {}, b"{}"), Response(299, {}, b"{}")
    )
    assert counts == {("GET", status): 1, ("GET", 200): 1, ("GET", 299): 1}
    assert total == 3


def test_requests_without_an_answer_are_counted():
    async def act(client, clock):
        for _ in range(2):
            with pytest.raises(errors.TransportError):
                await client.sender.send_once("reading", GET)
        with pytest.raises(errors.TransportError):
            async with client.sender.watch("watching", GET):
                pass
        return client.sender.counts.sent

    counts, _ = run(act, *(errors.TransportError("cut") for _ in range(3)))
    assert counts == {("GET", 0): 2, ("WATCH", 0): 1}


def test_copies_of_a_client_count_together():
    async def act(client, clock):
        for copy in (client, client.in_lane(LEASES), client.fenced(NoFence())):
            await copy.sender.send("reading", GET)
        return client.sender.counts.total()

    assert run(act)[0] == 3


def test_of_a_refused_watch_only_the_beginning_is_read():
    async def act(client, clock):
        with pytest.raises(errors.Forbidden, match=r"watching: x+ \(403\)"):
            async with client.sender.watch("watching", GET):
                pass
        return client.sender.counts.sent

    counts, transport = run(act, 403)
    assert counts == {("WATCH", 403): 1}
    assert transport.chunks_read == 65


def test_a_throttled_watch_delays_the_next_request():
    async def act(client, clock):
        with pytest.raises(errors.TooManyRequests) as caught:
            async with client.sender.watch("watching", GET):
                pass
        assert caught.value.retry_after == 3.0
        await client.sender.send("reading", GET)
        return clock.monotonic()

    waited, _ = run(act, 429)
    assert 3.0 <= waited <= 3.75


def test_a_watch_that_opens_is_counted_and_ends_a_throttle():
    async def act(client, clock):
        with pytest.raises(errors.TooManyRequests):
            async with client.sender.watch("watching", GET):
                pass
        async with client.sender.watch("watching", GET) as stream:
            assert stream.status == 200
        at = clock.monotonic()
        for _ in range(3):
            await client.sender.send("reading", GET)
        assert clock.monotonic() == at
        return client.sender.counts.sent

    counts, _ = run(act, 429, 200)
    assert counts == {("WATCH", 429): 1, ("WATCH", 200): 1, ("GET", 200): 3}


def test_the_pauses_between_tries_of_a_read_grow_from_a_fifth_of_a_second():
    async def act(client, clock):
        with pytest.raises(errors.ServerError):
            await client.sender.send("reading", GET)
        return clock.monotonic()

    waited, transport = run(act, *[Response(500, {}, b"")] * 4)
    assert len(transport.requests) == 4
    assert 0.2 + 0.4 + 0.8 <= waited <= 2 * (0.2 + 0.4 + 0.8)


@pytest.mark.parametrize(("retry", "is_taken_while_it_arrives"), [(True, False), (False, True)])
def test_pages_are_taken_while_they_arrive_unless_they_may_be_sent_twice(retry, is_taken_while_it_arrives):
    async def act(client, clock):
        return [page.resource_version async for page in client.pages(PODS, retry=retry)]

    page = Response(200, {}, b'{"metadata": {"resourceVersion": "7"}, "items": []}')
    versions, transport = run(act, page)
    assert versions == ["7"]
    assert (transport.requests[0].into is not None) == is_taken_while_it_arrives
