"""Each scenario runs on the lab and on the real kube-apiserver (`-m real`); one adapter serves all of a module's.

The pods are made by the lab's controllers, and on the real server by kube-controller-manager's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.scenarios.adapter.served import ServedStage, served_stage
from tests.scenarios.clocks import ShiftedClock
from tests.scenarios.horizontal.workloads import Controllers
from tests.support.cluster import as_admin
from tools.peers.cluster import WORKLOAD_CONTROLLERS, RealCluster
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab_lab.apiserver.server import Server
from trimtab_lab.serve import ServedLab

Scenario = Callable[[ServedStage], Awaitable[None]]
Play = Callable[[Scenario], None]


@pytest.fixture(scope="module", params=["lab", pytest.param("real", marks=pytest.mark.real)])
def play(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """Play a scenario on a stage that all scenarios of the module share."""
    cluster = request.getfixturevalue("real_cluster") if request.param == "real" else None
    directory = Path(tmp_path_factory.mktemp("adapter"))
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        stage = runner.run(_open(stack, directory, cluster))
        yield lambda scenario: runner.run(_within(scenario(stage)))
        runner.run(stack.aclose())


async def _within(scenario: Awaitable[None]) -> None:
    async with asyncio.timeout(120):
        await scenario


async def _open(stack: AsyncExitStack, directory: Path, cluster: RealCluster | None) -> ServedStage:
    clock = ShiftedClock()
    if cluster is not None:
        cluster.need_controllers(WORKLOAD_CONTROLLERS)
        transport = HttpTransport(clock, load_kubeconfig(clock, str(cluster.kubeconfig), environ={}))
        by_real = served_stage(clock, transport, directory, prunes=True, controlled=Controllers.REAL)
        return await stack.enter_async_context(by_real)
    server = Server(clock, has_controllers=True)
    await stack.enter_async_context(ServedLab(server))
    inside = as_admin(server)
    by_lab = served_stage(clock, inside, directory, prunes=False, controlled=Controllers.LAB)
    return await stack.enter_async_context(by_lab)
