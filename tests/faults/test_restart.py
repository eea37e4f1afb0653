"""A real API server that goes away and comes back (fault F17)."""

import asyncio

import pytest

from tests.client_suite.objects import config_map
from tests.faults.conftest import MAPS
from tests.support.objects import NAMESPACES
from trimtab.clock import SystemClock
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport

pytestmark = pytest.mark.real


async def test_f17_the_cache_survives_a_restart_of_the_api_server(real_cluster):
    clock = SystemClock()
    client = Client(
        clock, HttpTransport(clock, load_kubeconfig(clock, str(real_cluster.kubeconfig), environ={}))
    )
    await client.create(NAMESPACES, {"metadata": {"name": "restart"}})
    informers = [Informer(client, MAPS, ListOptions("restart")) for _ in range(3)]
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    await asyncio.gather(*(informer.wait_synced() for informer in informers))
    await asyncio.to_thread(real_cluster.restart_apiserver)
    await client.create(MAPS, config_map("after"), "restart")
    async with asyncio.timeout(60):
        while any(informer.store.get("after", "restart") is None for informer in informers):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    # The watch resumes where it was; a server whose watch cache starts empty may ask for one list.
    assert max(informer.counts.lists for informer in informers) <= 2
    assert max(informer.counts.watches for informer in informers) < 20
    for task in tasks:
        task.cancel()
    await client.delete(NAMESPACES, "restart")
    await client.close()
