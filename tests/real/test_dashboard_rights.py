"""What viewers see on the dashboard, decided by the real API server's RBAC and TokenReviews."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests.dashboard import viewers
from tools.peers.cluster import RealCluster
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport

pytestmark = pytest.mark.real

TABLE = {
    "nothing": set(),
    "own-hpas": {"hpas"},
    "native-hpas": {"native"},
    "vpas": {"vpas"},
    "pods-and-events": {"pods", "events"},
    "own-hpas-with-pods": {"hpas", "pods"},
    "vpas-with-events": {"vpas", "events"},
    "vpas-with-checkpoints": {"vpas", "checkpoints"},
    "vpas-with-scopes-and-pods": {"vpas", "scopes", "pods"},
    "all": set(viewers.RULES),
}


@asynccontextmanager
async def running(cluster: RealCluster, *namespaces: str):
    clock = SystemClock()
    connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
    client = Client(clock, HttpTransport(clock, connection))
    await viewers.install(client)
    for namespace in namespaces:
        await viewers.fill(client, namespace)
    settings = viewers.SETTINGS.replace(watch_namespaces=namespaces)
    async with viewers.dashboard(clock, client, settings) as address:
        await viewers.until_decided(address, cluster.tokens["admin"], 3 * len(namespaces))
        yield client, address
    await client.close()


def test_each_viewer_is_shown_what_the_server_lets_them_list(real_cluster: RealCluster):
    async def main():
        async with running(real_cluster, "rights-shop", "rights-bank") as (client, address):
            for name, rights in TABLE.items():
                token = await viewers.account(client, name, {"rights-shop": rights})
                for namespace, seen in (("rights-shop", rights), ("rights-bank", set())):
                    text, _ = await viewers.everything_served(address, token, namespace)
                    # The overview is of both namespaces, so the second round repeats the names of the first.
                    assert {mark for mark in viewers.MARKS if mark in text} == (
                        viewers.marks_for(rights) if seen else viewers.marks_for(rights & viewers.NAMED)
                    ), (name, namespace)
                    assert ("rights-bank" in text) is False
            token = await viewers.account(client, "everywhere", {"": set(viewers.RULES)})
            for namespace in ("rights-shop", "rights-bank"):
                text, _ = await viewers.everything_served(address, token, namespace)
                assert {mark for mark in viewers.MARKS if mark in text} == set(viewers.MARKS)

    asyncio.run(main())
