"""A client, and a cache that it keeps, behind the fault proxy, in front of both servers."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.client_suite.conftest import ApiServer, api_server
from tests.client_suite.objects import CONFIG_MAPS, config_map
from tests.faults.proxy import FaultProxy
from trimtab.clock import SystemClock
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.codec.objects import PartialObject
from trimtab.cluster.config import Connection
from trimtab.cluster.http import HttpTransport

__all__ = ["api_server", "behind"]

MAPS = CONFIG_MAPS.into(PartialObject)
HASTE = 20.0
PATIENCE_SECONDS = 30
PACE = WatchPace(shortest=1.0, longest=2.0, grace=0.5, short=2.0)


class HastyClock(SystemClock):
    """The machine's clock, twenty times as fast, so that nobody waits for backoffs; the counts stay the same."""

    def monotonic(self) -> float:
        return time.monotonic() * HASTE

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / HASTE)


class Behind:
    """A server, a proxy in front of it, a client and a cache in front of that."""

    def __init__(self, api: ApiServer, proxy: FaultProxy) -> None:
        self.api = api
        self.proxy = proxy
        clock = HastyClock()
        self.client = Client(clock, HttpTransport(clock, Connection(proxy.url)), seed=1)
        self.informer = Informer(self.client, MAPS, ListOptions(api.namespace), pace=PACE, page_size=2)
        self._number = 0

    async def change(self, times: int = 1) -> None:
        """Change something on the server, past the proxy: create, update and now and then delete."""
        for _ in range(times):
            self._number += 1
            name = f"m{self._number}"
            await self.api.client.create(MAPS, config_map(name), self.api.namespace)
            await self.api.client.patch(MAPS, name, self.api.namespace, {"data": {"x": "1"}})
            if self._number % 3 == 0:
                await self.api.client.delete(MAPS, name, self.api.namespace)

    async def agree(self) -> None:
        """Wait until the cache equals the server, object by object and version by version."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await self._differ():  # noqa: ASYNC110 - two parties are compared, neither has an event for it
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"the cache stayed behind: {self.informer.last_error}; {self.informer.counts}")

    async def _differ(self) -> bool:
        listing = await self.api.client.list(MAPS, ListOptions(self.api.namespace))
        there = {one.metadata.name: one.metadata.resource_version for one in listing.items}
        here = {one.metadata.name: one.metadata.resource_version for one in self.informer.store}
        return there != here


@pytest.fixture
async def behind(api_server: ApiServer) -> AsyncIterator[Behind]:
    async with FaultProxy(api_server.client.sender.transport) as proxy:
        world = Behind(api_server, proxy)
        await world.change(4)
        try:
            yield world
        finally:
            await api_server.stop()
            await world.client.close()
