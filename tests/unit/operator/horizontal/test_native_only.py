"""An operator that finds only native HPAs, and leaves them alone, says so once."""

import asyncio

import pytest

from tests.support.cluster import as_admin
from tests.support.objects import CRDS
from trimtab.clock import VirtualClock
from trimtab.cluster.access_reviews import ResourceAttributes
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.model.crds import all_crds
from trimtab.operator.horizontal import kinds
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.horizontal.kinds import NATIVE_HPAS, OWN_HPAS, find_native_hpa
from trimtab.operator.runtime import Runtime
from trimtab.operator.settings.settings import Settings
from trimtab_lab.apiserver.request import RequestUser
from trimtab_lab.apiserver.server import Server

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
HINT = (
    "only native ones such as default/web, which this operator leaves alone; act on them with --native-hpas"
)


async def make_hpa(client: Client, kind) -> None:
    body = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}}
    body |= {"apiVersion": kind.api_version, "kind": kind.kind}
    await client.create(kind.untyped(), body, "default")


def play(scenario, *kinds, crds=True):
    """Run a scenario with the client of an administrator, on a server with an HPA of each of these kinds."""
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:
            client = Client(clock, as_admin(server), seed=1)
            for crd in all_crds() if crds else ():
                await client.create(CRDS, crd)
            for kind in kinds:
                await make_hpa(client, kind)
            return await scenario(server, client)

    return clock.run(main())


def started(**settings):
    """Return a scenario that starts an operator with these settings."""

    async def scenario(_server, client: Client) -> None:
        values = Settings.of(**settings)
        runtime = Runtime(client.clock, client, values)
        controller = HpaController(runtime, config=decision_config(values))
        running = asyncio.ensure_future(controller.run())
        await client.clock.sleep(20)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await runtime.close()

    return scenario


@pytest.mark.parametrize("crds", [True, False])
@pytest.mark.parametrize("settings", [{}, {"dry_run": True}, {"watch_namespaces": ("default",)}], ids=str)
def test_only_native_hpas_are_named_with_what_to_type(settings, crds, caplog):
    """The first command of the README logged `started` and nothing else."""
    play(started(**settings), NATIVE_HPAS, crds=crds)
    assert caplog.text.count(HINT) == 1


@pytest.mark.parametrize(
    ("settings", "kinds"),
    [
        pytest.param({}, [OWN_HPAS, NATIVE_HPAS], id="own HPAs are there too"),
        pytest.param({}, [], id="there is none"),
        pytest.param({"native_hpas": True}, [NATIVE_HPAS], id="native HPAs are acted on"),
        pytest.param({"watch_namespaces": ("shop",)}, [NATIVE_HPAS], id="elsewhere"),
    ],
)
def test_nothing_is_said_otherwise(settings, kinds, caplog):
    play(started(**settings), *kinds)
    assert "native ones such as" not in caplog.text


def test_without_the_right_to_list_them_nothing_is_asked():
    """An installation without native HPAs has no rights over them, and must get no 403."""

    async def scenario(server, client: Client) -> str:
        token = server.tokens.issue(RequestUser("eve", ("system:authenticated",)))
        headers = {"authorization": f"Bearer {token}"}
        eve = Client(client.clock, InProcessTransport(server, headers=headers), seed=1)
        found = await find_native_hpa(eve, ())
        assert ("GET", 403) not in eve.sender.counts.sent
        return found

    assert play(scenario, NATIVE_HPAS) == ""


def test_a_namespace_that_may_not_be_listed_or_is_empty_hides_none_after_it(monkeypatch):
    async def may_self(_client: Client, attributes: ResourceAttributes) -> bool:
        return attributes.namespace != "secret"

    monkeypatch.setattr(kinds, "may_self", may_self)

    async def scenario(_server, client: Client) -> list[str]:
        return [
            await find_native_hpa(client, namespaces)
            for namespaces in (("secret", "empty", "default"), ("empty",), ("default", "empty"), ("secret",))
        ]

    assert play(scenario, NATIVE_HPAS) == ["default/web", "", "default/web", ""]
