"""Each scenario runs on the lab in virtual time, and on the real kube-apiserver with `-m real`.

On either it is played with our own HPAs and with native ones, which carry their memory in an annotation.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.horizontal.stage import Stage
from tools.peers.cluster import RealCluster
from trimtab.clock import VirtualClock
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.inprocess import InProcessTransport
from trimtab.lab.server import LAB_GATES, Server
from trimtab.model.gates import FeatureGates

Scenario = Callable[[Stage], Awaitable[None]]
Play = Callable[[Scenario], None]

PLACES = [
    "lab",
    "lab native",
    pytest.param("real", marks=pytest.mark.real),
    pytest.param("real native", marks=pytest.mark.real),
]


@pytest.fixture(params=PLACES)
def play(request: pytest.FixtureRequest) -> Play:
    """Play a scenario to its end, on the server and with the kind of HPA that this run is about."""
    native = request.param.endswith("native")
    if request.param.startswith("lab"):
        return lambda scenario: play_on_lab(scenario, native=native)
    cluster = request.getfixturevalue("real_cluster")
    return lambda scenario: play_on_real(cluster, scenario, native=native)


@pytest.fixture(params=["own", "native"])
def play_lab(request: pytest.FixtureRequest) -> Play:
    """Play a scenario on the lab only: faults and plans that a real server would take too long for."""
    return lambda scenario: play_on_lab(scenario, native=request.param == "native")


def play_on_lab(scenario: Scenario, *, native: bool = False, gates: FeatureGates = LAB_GATES) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with Server(clock, seed=1, gates=gates) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            stage = Stage(clock, InProcessTransport(server, headers=headers), native=native)
            stage.server = server
            await _on_stage(stage, scenario)

    clock.run(main())


def play_on_real(cluster: RealCluster, scenario: Scenario, *, native: bool = False) -> None:
    # The stage plays the workload controllers itself, so that each scenario says when pods come.
    cluster.stop("kube-controller-manager")

    async def main() -> None:
        clock = ShiftedClock()
        connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
        stage = Stage(clock, HttpTransport(clock, connection), native=native, prunes=True)
        await _on_stage(stage, scenario)

    asyncio.run(main())


async def _on_stage(stage: Stage, scenario: Scenario) -> None:
    await stage.open()
    try:
        await scenario(stage)
    finally:
        await stage.close()
