"""One suite, two servers: the embedded cluster always, the real kube-apiserver with `-m real`."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import pytest

from tests.support.cluster import as_admin
from tests.support.objects import NAMESPACES
from trimtab.clock import SystemClock
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.client import Client
from trimtab.cluster.codec.objects import Object
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab_lab.apiserver.server import Server

T = TypeVar("T", bound=Object)
PATIENCE_SECONDS = 30


class ApiServer:
    """A server under test: a client as administrator, and a namespace of the test's own."""

    def __init__(self, name: str, client: Client) -> None:
        self.name = name
        self.client = client
        self.namespace = f"suite-{secrets.token_hex(4)}"
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_real(self) -> bool:
        return self.name == "real"

    async def follow(self, informer: Informer[T]) -> Informer[T]:
        """Run an informer until the end of the test."""
        self._tasks.append(asyncio.create_task(informer.run()))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await informer.wait_synced()
        return informer

    async def eventually(self, condition: Callable[[], object]) -> None:
        """Wait until something that another task brings about is true."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():  # noqa: ASYNC110 - the condition is the informer's, which has no event for it
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
async def api_server(request: pytest.FixtureRequest) -> AsyncIterator[ApiServer]:
    clock = SystemClock()
    if request.param == "lab":
        async with Server(clock) as server:
            async for api in _started("lab", Client(clock, as_admin(server))):
                yield api
    else:
        cluster = request.getfixturevalue("real_cluster")
        connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
        async for api in _started("real", Client(clock, HttpTransport(clock, connection))):
            yield api


async def _started(name: str, client: Client) -> AsyncIterator[ApiServer]:
    api = ApiServer(name, client)
    await client.create(NAMESPACES, {"metadata": {"name": api.namespace}})
    try:
        yield api
    finally:
        await api.stop()
        await client.delete(NAMESPACES, api.namespace)
        await client.close()
