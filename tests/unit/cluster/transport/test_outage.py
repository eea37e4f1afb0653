"""A server that cannot be reached gets few requests, and the first that reaches it ends the outage, in virtual time."""

import asyncio

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.lanes import LEASES
from trimtab.cluster.resource import PODS
from trimtab.cluster.transport import Response

PATCH = {"metadata": {"labels": {"x": "y"}}}


class Server:
    """A transport to a server that is gone for some time."""

    def __init__(self, clock, *, gone_until, seconds=0.0, error=errors.Unreachable):
        self._clock = clock
        self._gone_until = gone_until
        self._seconds = seconds
        self._error = error
        self.asked = []

    async def request(self, request):
        self.asked.append(self._clock.monotonic())
        await asyncio.sleep(self._seconds)
        if self._clock.monotonic() < self._gone_until:
            raise self._error("connection refused")
        return Response(200, {}, b'{"metadata":{"name":"a"}}')

    def stream(self, request):
        raise NotImplementedError

    async def close(self):
        return


def run(scenario, **options):
    clock = VirtualClock()

    async def main():
        server = Server(clock, **options)
        await scenario(server, Client(clock, server, seed=1), clock)

    clock.run(main())


async def write(client, number=0):
    try:
        await client.patch(PODS, f"p{number}", "shop", PATCH)
    except errors.TransportError:
        return False
    return True


def test_an_outage_costs_a_request_every_second_or_two_however_many_callers_try():
    """Nine HPAs sent 45 requests per second to a server that was gone."""

    async def scenario(server, client, clock):
        for _ in range(60):
            await asyncio.gather(*(write(client, number) for number in range(50)))
            await clock.sleep(1)
        assert len(server.asked) <= 50 + 60

    run(scenario, gone_until=1000)


def test_all_callers_that_arrive_at_the_end_of_an_outage_succeed_together():
    """They wait for the result of the one that probes. A failure at once would cost them a whole sync."""

    async def scenario(server, client, clock):
        while clock.monotonic() < 30:
            await asyncio.gather(*(write(client, number) for number in range(5)))
            await clock.sleep(15)
        assert all(await asyncio.gather(*(write(client, number) for number in range(200))))

    run(scenario, gone_until=29, seconds=0.1)


def test_a_recovery_is_noticed_within_two_seconds():
    async def scenario(server, client, clock):
        while not await write(client):
            await clock.sleep(0.1)
        assert clock.monotonic() <= 62.1

    run(scenario, gone_until=60)


def test_a_probe_that_is_cancelled_lets_the_next_request_probe():
    async def scenario(server, client, clock):
        for _ in range(3):
            await write(client)
        await clock.sleep(5)
        probe = asyncio.ensure_future(write(client))
        await clock.sleep(0.5)
        waiting = asyncio.ensure_future(write(client))
        await clock.sleep(0.1)
        probe.cancel()
        assert await waiting

    run(scenario, gone_until=4, seconds=1.0)


@pytest.mark.parametrize("error", [errors.TransportError], ids=["a server that hangs"])
def test_a_server_that_is_reached_and_does_not_answer_is_no_outage(error):
    """One webhook that hangs may be the cause, and the others must not suffer."""

    async def scenario(server, client, clock):
        for number in range(20):
            assert not await write(client, number)
        assert len(server.asked) == 20

    run(scenario, gone_until=1000, error=error)


def test_renewals_are_sent_on_time_in_an_outage():
    async def scenario(server, client, clock):
        for _ in range(20):
            await write(client)
            await write(client.in_lane(LEASES))
        assert len(server.asked) >= 20

    run(scenario, gone_until=1000)
