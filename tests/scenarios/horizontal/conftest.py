"""Each scenario runs on the lab in virtual time, and on the real kube-apiserver with `-m real`."""

from collections.abc import Awaitable, Callable

import pytest

from tests.scenarios.horizontal.stage import Stage
from trimtab.clock import SystemClock, VirtualClock
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.inprocess import InProcessTransport
from trimtab.lab.server import Server

Scenario = Callable[[Stage], Awaitable[None]]


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
def play(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    """Play a scenario to its end on the server that this run is about."""
    if request.param == "lab":
        return _on_lab
    cluster = request.getfixturevalue("real_cluster")

    def on_real(scenario: Scenario) -> None:
        import asyncio

        async def main() -> None:
            clock = SystemClock()
            connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
            await _on_stage(Stage(clock, HttpTransport(clock, connection)), scenario)

        asyncio.run(main())

    return on_real


def _on_lab(scenario: Scenario) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            headers = {"authorization": f"Bearer {server.tokens.admin}"}
            await _on_stage(Stage(clock, InProcessTransport(server, headers=headers)), scenario)

    clock.run(main())


async def _on_stage(stage: Stage, scenario: Scenario) -> None:
    await stage.open()
    try:
        await scenario(stage)
    finally:
        await stage.close()
