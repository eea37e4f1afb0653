"""`trimtab shards`: which replica holds each shard."""

import json

import pytest
import yaml

from tests.support.objects import NAMESPACES
from trimtab.cli.commands.shards import find_holders, text_of
from trimtab.cli.errors import CommandError
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.operator.process import make_family
from trimtab.operator.settings.settings import Settings
from trimtab_lab.apiserver.server import Server

SHARDED = Settings.of(shards=3)
OTHER = Settings.of(components=("recommender",), shards=2, recommender_name="other")


def found(*operators, silence=0, component="horizontal", recommender="default"):
    """Return the holders, `silence` seconds after the operators stopped without a word."""
    clock = VirtualClock()

    async def main():
        async with Server(clock, seed=1) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            client = Client(clock, InProcessTransport(server, headers=headers), seed=1)
            await client.create(NAMESPACES, {"metadata": {"name": "trimtab"}})
            families = [make_family(client, operator, "one") for operator in operators]
            for _ in range(12):
                for family in families:
                    await family.step()
                await clock.sleep(2)
            await clock.sleep(silence)
            return await find_holders(client, "trimtab", component, recommender)

    return clock.run(main())


def test_each_shard_is_shown_with_its_holder():
    assert text_of("horizontal", found(SHARDED), "table").splitlines() == [
        "SHARD   LEASE                  HOLDER",
        "0       trimtab-horizontal-0   one/3",
        "1       trimtab-horizontal-1   one/3",
        "2       trimtab-horizontal-2   one/3",
    ]


def test_without_shards_the_leader_is_shown():
    assert found(Settings()) == {"trimtab-horizontal-0": "one/1"}


def test_a_recommender_is_found_by_its_name():
    operators = (Settings.of(components=("recommender",), shards=4), OTHER)
    holders = found(*operators, component="recommender", recommender="other")
    assert holders == {"trimtab-recommender-other-0": "one/2", "trimtab-recommender-other-1": "one/2"}


def test_a_replica_that_does_not_renew_its_leases_holds_nothing():
    """A killed replica was shown as the holder for ever."""
    *rows, orphans = text_of("horizontal", found(SHARDED, silence=60), "table").splitlines()[1:]
    assert [row.split()[-1] for row in rows] == ["-"] * 3
    assert orphans == "no replica holds shards 0, 1, 2: nothing is decided about its objects"


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_holders_as_data(output, read):
    assert read(text_of("horizontal", found(Settings()), output)) == {
        "component": "horizontal",
        "shards": [{"shard": 0, "lease": "trimtab-horizontal-0", "holder": "one/1"}],
    }


def test_without_an_operator_the_user_is_told_why_nothing_is_shown():
    with pytest.raises(CommandError, match="no operator in namespace trimtab has published settings"):
        found()
