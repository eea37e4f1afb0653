"""Which fence a process writes behind."""

from typing import Any

import pytest

from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.election import LeaderElector
from trimtab.cluster.leases.fence import ClosedFence, NoFence
from trimtab.cluster.leases.shards import Shards
from trimtab.cluster.transport.in_process import InProcessTransport
from trimtab.lab.apiserver.server import Server
from trimtab.operator.operator import Operator
from trimtab.operator.settings.settings import Settings


@pytest.mark.parametrize(
    ("components", "settings", "fence"),
    [
        pytest.param(("dashboard",), {}, ClosedFence, id="only readers"),
        pytest.param(("dashboard", "other"), {}, ClosedFence, id="two readers"),
        pytest.param(("horizontal", "dashboard"), {}, LeaderElector, id="a writer and a reader"),
        pytest.param(("updater",), {}, LeaderElector, id="a writer"),
        pytest.param(("horizontal", "dashboard"), {"leader_elect": False}, NoFence, id="one replica"),
        pytest.param(("recommender", "dashboard"), {"shards": 3}, Shards, id="shards"),
    ],
)
def test_only_a_process_without_writers_is_fenced_for_good(components, settings, fence):
    """A writer beside the dashboard must be able to lead."""
    clock = VirtualClock()
    unused: Any = None

    async def main() -> type:
        async with Server(clock, seed=1) as server:
            client = Client(clock, InProcessTransport(server), seed=1)
            made = Operator(
                clock,
                client,
                Settings.of(components=components, **settings),
                beside={"dashboard": unused, "other": unused},
            )
            return type(await made._fence())

    assert clock.run(main()) is fence
