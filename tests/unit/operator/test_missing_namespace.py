"""Without its namespace every component says in its log what to type."""

import asyncio

import pytest

from tests.support.cluster import as_admin
from tests.support.objects import CRDS
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.model.crds import all_crds
from trimtab.operator.operator import Operator
from trimtab.operator.settings.settings import LOOPS, Settings
from trimtab_lab.apiserver.server import Server


def log_of(caplog, **settings):
    """Return what an operator logs in its first minute on a cluster without its namespace."""
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:
            client = Client(clock, as_admin(server), seed=1)
            for crd in all_crds():
                await client.create(CRDS, crd)
            values = Settings.of(port=0, webhook_port=0, bind_address="127.0.0.1", **settings)
            running = asyncio.ensure_future(Operator(clock, client, values).run())
            await clock.sleep(60)
            assert not running.done()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    clock.run(main())
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("component", LOOPS)
@pytest.mark.parametrize(
    "options", [{}, {"leader_elect_resource_namespace": "other", "namespace": "other"}], ids=str
)
def test_each_component_says_how_to_make_its_namespace(component, options, caplog):
    """The webhook called it a defect and ended."""
    home = options.get("namespace", "trimtab")
    said = log_of(caplog, components=(component,), **options)
    assert any(f"kubectl create namespace {home}" in line for line in said), said


def test_the_webhook_names_the_command_and_the_flag(caplog):
    said = log_of(caplog, components=("admission",), leader_elect=False)
    (line,) = [line for line in said if "the webhook has no certificate" in line]
    assert line.endswith(
        "; create it: kubectl create namespace trimtab, or name another one with --namespace"
    )


def test_without_leader_election_too(caplog):
    said = log_of(caplog, components=("horizontal",), leader_elect=False)
    assert sum("kubectl create namespace trimtab" in line for line in said) == 1


def test_with_shards_too(caplog):
    said = log_of(caplog, components=("horizontal",), shards=2)
    assert any("kubectl create namespace trimtab" in line for line in said)
