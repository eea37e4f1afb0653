"""What viewers see on the dashboard, decided by the real API server's RBAC and TokenReviews."""

import asyncio
import re
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.dashboard import viewers
from tests.scenarios.clocks import ShiftedClock
from tools.peers.cluster import RealCluster
from trimtab.clock import Clock, SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.dashboard.auth.sessions import REVIEW_SECONDS

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
async def running(cluster: RealCluster, *namespaces: str, clock: Clock | None = None):
    clock = clock or SystemClock()
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
    # The garbage collector of an earlier test would delete the pods, whose owners do not exist.
    real_cluster.stop("kube-controller-manager")

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


def test_a_session_ends_after_its_account_is_deleted(real_cluster: RealCluster):
    # The garbage collector of an earlier test would delete the pods, whose owners do not exist.
    real_cluster.stop("kube-controller-manager")

    async def main():
        clock = ShiftedClock()
        async with running(real_cluster, "rights-end", clock=clock) as (client, address):
            token = await viewers.account(client, "leaver", {"rights-end": {"hpas"}})
            origin = address.rstrip("/")
            async with aiohttp.ClientSession(address, cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                headers = {"origin": origin}
                async with session.post("/api/login", json={"token": token}, headers=headers) as answer:
                    assert answer.status == 204
                    found = re.search(r"Max-Age=(\d+)", answer.headers["set-cookie"])
                    assert found is not None
                    assert 3000 < int(found[1]) <= 3600, (
                        "the server's tokens last an hour, unless asked otherwise"
                    )
                clock.advance(REVIEW_SECONDS + 10)
                async with session.get("/api/overview") as answer:
                    assert [row["name"] for row in (await answer.json())["horizontal"]] == ["the-own-hpa"]
                await viewers.send(client, "DELETE", "/api/v1/namespaces/default/serviceaccounts/leaver", {})
                async with asyncio.timeout(60):  # the server itself believes a token for ten seconds
                    while answer.status != 401:
                        clock.advance(REVIEW_SECONDS + 10)
                        await asyncio.sleep(1)
                        async with session.get("/api/overview") as answer:
                            assert answer.status in {200, 401}

    asyncio.run(main())
