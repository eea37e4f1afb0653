"""`trimtab run --native-hpas` beside kube-controller-manager's HPA controller: it does not start, and says what to do."""

import asyncio
from pathlib import Path

import pytest

from tests.faults.horizontal.scene import queue
from tests.faults.processes.program import started
from tests.scenarios.horizontal.stage import Stage
from tools.peers.cluster import HPA_CONTROLLER, RealCluster
from trimtab.clock import SystemClock
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport

pytestmark = pytest.mark.real


async def has_a_status(stage: Stage) -> bool:
    return bool(await stage.conditions("web"))


async def refused(stage: Stage, directory: Path) -> str:
    """Start with native HPAs, and return what is said at the end."""
    async with started(stage, directory, "--native-hpas") as program:
        assert await program.ended() == 2
        assert not program.accepted()
        return program.said


async def beside_the_real_controller(cluster: RealCluster, directory: Path) -> str:
    clock = SystemClock()
    connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
    stage = Stage(clock, HttpTransport(clock, connection), native=True, prunes=True)
    await stage.open()
    try:
        await stage.bare_deployment("web", 3)
        await stage.hpa("web", metrics=[queue()])
        period = "--horizontal-pod-autoscaler-sync-period=500ms"
        await asyncio.to_thread(cluster.start_controllers, HPA_CONTROLLER, period)
        await stage.wait_for(lambda: has_a_status(stage), 60)
        return await refused(stage, directory)
    finally:
        await asyncio.to_thread(cluster.stop, "kube-controller-manager")
        await stage.close()


def test_native_hpas_are_refused_while_the_clusters_own_controller_writes_them(
    real_cluster: RealCluster, tmp_path: Path
):
    said = asyncio.run(beside_the_real_controller(real_cluster, tmp_path))
    assert "two controllers on one object fight" in said
    assert "--controllers=*,-horizontal-pod-autoscaler-controller" in said
    assert "Traceback" not in said
