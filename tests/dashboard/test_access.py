"""In a cluster the viewer's own rights decide what they see (S16), asked of the lab's API server."""

from contextlib import asynccontextmanager
from typing import cast

from tests.dashboard import stage
from tests.dashboard.asking import Browser, app_of, ask
from tests.unit.lab.api import running
from tests.unit.lab.apiserver.test_access import grant
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport.in_process import InProcessTransport
from trimtab.cluster.transport.transport import Transport
from trimtab.dashboard import ClusterAccess
from trimtab.lab.apiserver.request import RequestUser

LISTING = [
    {"apiGroups": ["autoscaling.trimtab.dev"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]}
]


@asynccontextmanager
async def cluster():
    """A lab, a dashboard of two namespaces in it, and a way to get a user's token."""
    async with running() as api:
        headers = {"authorization": f"Bearer {api.server.tokens.admin}"}
        clock = SystemClock()
        client = Client(clock, InProcessTransport(api.server, headers=headers))
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
