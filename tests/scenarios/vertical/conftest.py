"""Each scenario runs on the lab in virtual time, and on the real kube-apiserver with `-m real`."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.vertical.stage import Stage
from tools.peers.cluster import RealCluster
from trimtab.clock import VirtualClock
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.inprocess import InProcessTransport
from trimtab.lab.server import Server

Scenario = Callable[[Stage], Awaitable[None]]
Play = Callable[[Scenario], None]


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
def play(request: pytest.FixtureRequest) -> Play:
    """Play a scenario to its end on the server that this run is about."""
    if request.param == "lab":
        return play_on_lab
    cluster = request.getfixturevalue("real_cluster")
    return lambda scenario: play_on_real(cluster, scenario)


@pytest.fixture
def play_lab() -> Play:
    """Play a scenario on the lab only: faults and spans of time that a real server would take too long for."""
    return play_on_lab


def play_on_lab(scenario: Scenario) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            stage = Stage(clock, InProcessTransport(server, headers=headers), server.outbound)
            await _on_stage(stage, scenario)

    clock.run(main())


def play_on_real(cluster: RealCluster, scenario: Scenario) -> None:
    # The stage plays the workload controllers itself, so that each scenario says when pods come.
    cluster.stop("kube-controller-manager")

    async def main() -> None:
        clock = ShiftedClock()
        connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
        await _on_stage(Stage(clock, HttpTransport(clock, connection)), scenario)

    asyncio.run(main())


async def _on_stage(stage: Stage, scenario: Scenario) -> None:
    await stage.open()
    try:
        await scenario(stage)
    finally:
        await stage.close()
