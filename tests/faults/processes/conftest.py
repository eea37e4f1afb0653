"""Places to play processes in: real time, because a process has a clock of its own."""

import asyncio

import pytest

from tests.scenarios.horizontal.conftest import Play, Scenario
from tests.scenarios.horizontal.stage import Stage
from tests.support.cluster import as_admin, opened
from tools.peers.cluster import RealCluster
from trimtab.clock import SystemClock
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab_lab.apiserver.server import Server


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
def both(request: pytest.FixtureRequest) -> Play:
    """Play on the lab and, with `-m real`, on the real kube-apiserver."""
    if request.param == "lab":
        return lambda scenario: asyncio.run(_on_lab(scenario))
    cluster = request.getfixturevalue("real_cluster")
    return lambda scenario: asyncio.run(_on_real(cluster, scenario))


async def _on_lab(scenario: Scenario) -> None:
    clock = SystemClock()
    async with Server(clock) as server, opened(Stage(clock, as_admin(server))) as stage:
        await scenario(stage)


async def _on_real(cluster: RealCluster, scenario: Scenario) -> None:
    cluster.stop("kube-controller-manager")
    clock = SystemClock()
    connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
    async with opened(Stage(clock, HttpTransport(clock, connection))) as stage:
        await scenario(stage)
