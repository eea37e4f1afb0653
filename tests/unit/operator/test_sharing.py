"""Which loops `--shards` shares out, and what is said about the others."""

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.operator.operator import Operator
from trimtab.operator.settings.settings import Settings
from trimtab_lab.apiserver.server import Server


def start(*components: str, shards: int = 6, leader_elect: bool = True) -> int:
    """Make a process of these components; return by how many shards it takes part."""
    clock = VirtualClock()

    async def main() -> int:
        async with Server(clock, seed=1) as server:
            client = Client(clock, InProcessTransport(server), seed=1)
            made = Operator(
                clock, client, Settings.of(components=components, shards=shards, leader_elect=leader_elect)
            )
            return made._family.count if made._family is not None else 1

    return clock.run(main())


@pytest.mark.parametrize(
    "components",
    [("horizontal",), ("recommender",), ("roles",), ("recommender", "updater", "admission", "roles")],
)
def test_loops_that_can_be_shared_may_be_run_with_others(components):
    assert start(*components) == 6
    assert start(*components, shards=1) == 1


@pytest.mark.parametrize("components", [("updater",), ("admission",), ("updater", "admission")])
def test_loops_that_share_nothing_are_refused_with_the_reason(components):
    with pytest.raises(ValueError, match=r"--shards: nothing of \w+.* one copy at a time"):
        start(*components)


def test_too_many_shards_are_refused():
    with pytest.raises(ValueError, match="17 is not possible; use 1 to 16"):
        start("recommender", shards=17)


def test_shards_without_leases_are_refused():
    with pytest.raises(ValueError, match="--shards needs Leases: leave --no-leader-elect away"):
        start("horizontal", leader_elect=False)
    assert start("horizontal", shards=1, leader_elect=False) == 1
