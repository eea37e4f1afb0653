"""The lab's nodes and controllers work on a real kube-apiserver, beside and instead of the real controllers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.nodes import passing_nodes, remove_workloads
from tests.unit.lab.controllers.builders import workload
from tools.peers.cluster import WORKLOAD_CONTROLLERS, PeerError, RealCluster
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.resource import Json
from trimtab_lab.data_plane import DataPlane, DataPlaneConfig
from trimtab_lab.load.curves import constant
from trimtab_lab.load.plan import LoadPlan, WorkloadLoad
from trimtab_lab.metrics.server import MetricsServer
from trimtab_lab.nodes.node_pool import NodePool

pytestmark = pytest.mark.real
BATCH = {"lab.trimtab.dev/run-seconds": "1"}
NOT_FINISHED = 60.0


@asynccontextmanager
async def connected(cluster: RealCluster) -> AsyncIterator[Client]:
    clock = SystemClock()
    client = Client(clock, HttpTransport(clock, load_kubeconfig(clock, str(cluster.kubeconfig))))
    try:
        await remove_workloads(client)
        yield client
    finally:
        await client.close()


def apply(cluster: RealCluster, namespace: str, *manifests: Json) -> None:
    cluster.kubectl("create", "namespace", namespace, check=False)
    for manifest in manifests:
        cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(manifest))


def get(cluster: RealCluster, namespace: str, *what: str) -> Json:
    found: Json = json.loads(cluster.kubectl("get", "-n", namespace, *what, "-o", "json"))
    return found


async def until(cluster: RealCluster, namespace: str, condition: str, *what: str) -> None:
    """Wait with the real kubectl, without blocking our own loops."""
    arguments = ("wait", "-n", namespace, *what, f"--for={condition}", f"--timeout={NOT_FINISHED:.0f}s")
    try:
        await asyncio.to_thread(cluster.kubectl, *arguments)
    except PeerError as error:
        state = cluster.kubectl("get", "-n", namespace, "nodes,all", "-o", "wide", check=False)
        described = cluster.kubectl("describe", "-n", namespace, *what, check=False)
        raise AssertionError(f"{error}\n{state}\n{described}") from error


async def test_pods_of_the_real_controllers_become_ready_on_our_nodes(real_cluster: RealCluster):
    real_cluster.need_controllers(WORKLOAD_CONTROLLERS)
    setting = DataPlaneConfig(
        pools=(NodePool(name="lab", count=2),),
        sample_seconds=1.0,
        plan=LoadPlan(workloads=(WorkloadLoad(name="web", namespace="agent", cpu=constant("300m")),)),
    )
    namespace = "agent"
    async with connected(real_cluster) as client, passing_nodes(client, setting) as side:
        apply(
            real_cluster,
            namespace,
            workload("Deployment", "web", replicas=3),
            workload("StatefulSet", "db", replicas=2, serviceName="db"),
            workload("DaemonSet", "each"),
            workload("Job", "batch", completions=2, pod={"restartPolicy": "Never"}, annotations=BATCH),
        )
        await until(real_cluster, namespace, "condition=Available", "deployment/web")
        await until(real_cluster, namespace, "jsonpath={.status.readyReplicas}=2", "statefulset/db")
        await until(real_cluster, namespace, "jsonpath={.status.numberReady}=2", "daemonset/each")
        await until(real_cluster, namespace, "condition=Complete", "job/batch")
        await a_resize_is_carried_out(real_cluster, namespace, client)
        await usage_reaches_the_aggregator(real_cluster, namespace, side)
        for kind in ("deployment/web", "statefulset/db", "daemonset/each", "job/batch"):
            await asyncio.to_thread(real_cluster.kubectl, "delete", "-n", namespace, kind, "--wait=true")
        await until(real_cluster, namespace, "delete", "pod", "--all")
    assert get(real_cluster, namespace, "pods")["items"] == []


async def a_resize_is_carried_out(cluster: RealCluster, namespace: str, client: Client) -> None:
    pod = get(cluster, namespace, "pods", "-l", "app=web")["items"][0]["metadata"]["name"]
    spec = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "250m"}}}]}
    await client.resize(pod, namespace, spec)
    path = "jsonpath={.status.containerStatuses[0].resources.requests.cpu}=250m"
    await until(cluster, namespace, path, f"pod/{pod}")


async def usage_reaches_the_aggregator(cluster: RealCluster, namespace: str, side: DataPlane) -> None:
    async with MetricsServer(side) as server:
        await server.register()
        try:
            await until(cluster, "default", "condition=Available", "apiservice/v1beta1.metrics.k8s.io")
            shown: list[str] = []
            for _ in range(30):  # a sample from before the last pod was ready has other shares
                lines = await asyncio.to_thread(
                    cluster.kubectl,
                    "top",
                    "pods",
                    "-n",
                    namespace,
                    "-l",
                    "app=web",
                    "--no-headers",
                    check=False,
                )
                shown = [line.split()[1] for line in lines.splitlines()]
                if shown == ["100m"] * 3:
                    break
                await asyncio.sleep(1)
            assert shown == ["100m"] * 3
        finally:
            await server.unregister()
