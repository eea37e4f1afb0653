"""In a cluster the viewer's own rights decide what they see (S16), asked of the lab's API server."""

import json
from contextlib import asynccontextmanager
from typing import cast
from urllib.parse import urlencode

from tests.dashboard import stage
from tests.dashboard.asking import Browser, app_of, ask
from tests.support.cluster import as_admin
from tests.unit.lab.api import running
from tests.unit.lab.apiserver.test_access import grant
from trimtab.clock import SystemClock, VirtualClock
from trimtab.cluster.access_reviews import MAX_CACHE_SECONDS
from trimtab.cluster.client import Client
from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport import Response, Transport
from trimtab.dashboard import ClusterAccess
from trimtab.dashboard.auth.access import DENIED_SECONDS
from trimtab.dashboard.auth.rights import HPAS, KindInNamespace, visible_to
from trimtab_lab.apiserver.request import RequestUser

LISTING = [
    {"apiGroups": ["autoscaling.trimtab.dev"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]}
]


@asynccontextmanager
async def cluster():
    """A lab, a dashboard of two namespaces in it, and a way to get a user's token."""
    async with running() as api:
        clock = SystemClock()
        client = Client(clock, as_admin(api.server))
        book = [stage.steady("web", "shop"), stage.steady("ledger", "bank")]
        app = app_of(*book, access=ClusterAccess(clock, client))
        for namespace in ("shop", "bank"):
            await api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})

        def token_of(name):
            return api.server.tokens.issue(RequestUser(name, ("system:authenticated",)))

        try:
            yield api, app, token_of
        finally:
            await client.close()


async def entered(app, token):
    browser = Browser(app)
    assert (await browser.login(token)).status == 204
    return browser


async def names_for(browser):
    return [row["name"] for row in (await browser.get("/api/overview")).json()["horizontal"]]


async def test_a_user_limited_to_one_namespace_sees_only_that_one():
    async with cluster() as (api, app, token_of):
        await grant(api, "ann", LISTING, "shop")
        browser = await entered(app, token_of("ann"))
        assert (await browser.get("/api/session")).json()["user"] == "ann"
        assert await names_for(browser) == ["web"]
        assert (await browser.get("/api/hpa", query="id=hpa/shop/web")).status == 200
        assert (await browser.get("/api/hpa", query="id=hpa/bank/ledger")).status == 404
        assert (await browser.post("/api/whatif", {"id": "hpa/bank/ledger"})).status == 404


async def test_a_user_without_rights_sees_nothing_and_an_administrator_everything():
    async with cluster() as (api, app, token_of):
        assert await names_for(await entered(app, token_of("nobody"))) == []
        assert await names_for(await entered(app, api.server.tokens.admin)) == ["ledger", "web"]


async def test_a_token_that_the_cluster_does_not_know_does_not_log_in():
    async with cluster() as (_, app, _token_of):
        for token in ("made-up", "", "x" * 20_000, app.token):
            assert (await Browser(app).login(token)).status == 401


async def test_where_the_cluster_cannot_be_asked_nobody_gets_in():
    class Dead:
        async def request(self, request):
            raise TransportError("sending", "nobody listens")

    clock = SystemClock()
    client = Client(clock, cast("Transport", Dead()))
    app = app_of(stage.steady(), access=ClusterAccess(clock, client))
    answer = await ask(app, "GET", "/api/overview", headers={"authorization": "Bearer anything"})
    assert answer.status == 503


class Reviewing:
    """An API server that knows one user, allows some listings, and counts what it is asked."""

    def __init__(self):
        self.asked = 0
        self.allowed = {("shop", "list")}

    async def request(self, request):
        body = json.loads(request.body)
        if body["kind"] == "TokenReview":
            status = {"authenticated": True, "user": {"username": "ann"}}
        else:
            self.asked += 1
            wanted = body["spec"]["resourceAttributes"]
            status = {"allowed": (wanted["namespace"], wanted["verb"]) in self.allowed}
        return Response(201, {}, json.dumps({"status": status}).encode())


def test_a_viewer_of_one_namespace_among_a_thousand_costs_few_reviews():
    """All thousand were reviewed every ten seconds, once for each kind; three such viewers filled the cache."""
    clock = VirtualClock()

    async def main():
        server = Reviewing()
        access = ClusterAccess(clock, Client(clock, cast("Transport", server)))
        listings = [KindInNamespace(HPAS, f"team-{number}") for number in range(1000)] + [
            KindInNamespace(HPAS, "shop")
        ]
        for _ in range(600):  # ten minutes of a live page, through twenty reviews of its token
            viewer = await access.viewer("token-of-ann")
            assert viewer is not None
            visible = await visible_to(viewer, listings)
            assert visible.listings == {KindInNamespace(HPAS, "shop")}
            await clock.sleep(1)
        assert server.asked < 1000 * 600 / DENIED_SECONDS
        assert viewer is not None
        server.allowed.add(("team-7", "list"))
        await clock.sleep(2 * DENIED_SECONDS)
        assert KindInNamespace(HPAS, "team-7") in (await visible_to(viewer, listings)).listings
        server.allowed.clear()
        await clock.sleep(MAX_CACHE_SECONDS)
        assert (await visible_to(viewer, listings)).listings == set(), (
            "a revoked right ends within ten seconds"
        )

    clock.run(main())


async def test_an_id_that_names_nothing_is_not_reviewed():
    """Each review was cached under the namespace of the id, however long."""
    clock = SystemClock()
    server = Reviewing()
    app = app_of(stage.steady(), access=ClusterAccess(clock, Client(clock, cast("Transport", server))))
    browser = await entered(app, "token-of-ann")
    for identity in (
        "",
        "hpa",
        "hpa/shop",
        "pod/shop/web",
        f"hpa/{'x' * 64}/web",
        "hpa/Shop/web",
        "hpa/shop/a/b",
        "vpa/shop/web",
    ):
        assert (await browser.get("/api/hpa", query=urlencode({"id": identity}))).status == 404
    assert server.asked == 0
    assert (await browser.get("/api/hpa", query="id=hpa/shop/web")).status == 200
