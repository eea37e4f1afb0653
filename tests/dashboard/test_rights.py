"""Every part of the dashboard needs the right to list its kind, on an API server with RBAC (S16)."""

import itertools
from contextlib import asynccontextmanager

from tests.dashboard import viewers
from tests.support.cluster import as_admin
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab_lab.apiserver.server import Server


@asynccontextmanager
async def lab(*namespaces):
    """A lab with one object of each kind in each namespace, and a dashboard of it."""
    clock = SystemClock()
    async with Server(clock, seed=1) as server:
        client = Client(clock, as_admin(server))
        await viewers.install(client)
        for namespace in namespaces:
            await viewers.fill(client, namespace)
        async with viewers.dashboard(clock, client) as address:
            await viewers.until_decided(address, server.tokens.admin, 3 * len(namespaces))
            yield client, address, server.tokens.admin
        await client.close()


async def test_an_administrator_sees_every_part():
    async with lab("shop") as (_, address, admin):
        text, statuses = await viewers.everything_served(address, admin, "shop")
        assert {mark for mark in viewers.MARKS if mark in text} == set(viewers.MARKS)
        assert {key for key, status in statuses.items() if status == 200} == {
            "overview",
            "/api/hpa hpa/shop/the-own-hpa",
            "/api/hpa native/shop/the-native-hpa",
            "/api/vpa vpa/shop/the-vpa",
            "what-if hpa/shop/the-own-hpa",
            "what-if native/shop/the-native-hpa",
        }


async def test_each_set_of_rights_shows_what_it_may_list_and_nothing_else():
    """One right, to list our HPAs, opened native HPAs, VPAs, events and checkpoints; VPAs alone opened nothing."""
    kinds = tuple(viewers.RULES)
    subsets = [
        set(chosen) for size in range(len(kinds) + 1) for chosen in itertools.combinations(kinds, size)
    ]
    async with lab("shop") as (client, address, _):
        for number, rights in enumerate(subsets):
            token = await viewers.account(client, f"viewer-{number}", {"shop": rights})
            text, statuses = await viewers.everything_served(address, token, "shop")
            assert {mark for mark in viewers.MARKS if mark in text} == viewers.marks_for(rights), rights
            for kind, identity in (
                ("hpas", "hpa/shop/the-own-hpa"),
                ("native", "native/shop/the-native-hpa"),
            ):
                assert (statuses[f"what-if {identity}"] == 200) is (kind in rights), rights
