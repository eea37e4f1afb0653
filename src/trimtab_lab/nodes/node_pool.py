"""Pools of equal nodes and their registration with an API server."""

from trimtab.cluster import errors
from trimtab.cluster.client import Client, PatchType
from trimtab.cluster.resource import Json
from trimtab.model.core.server_rules import KUBERNETES_1_37
from trimtab.model.json.wire import Wire
from trimtab.model.times import format_time
from trimtab_lab.controllers.kinds import NODES

KUBELET_VERSION = KUBERNETES_1_37.version
ATTEMPTS, RETRY_SECONDS = 5, 1.0


class NodePool(Wire, frozen=True):
    """Nodes of one size, named after the pool and numbered from 1."""

    name: str = "node"
    count: int = 3
    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    labels: dict[str, str] = {}

    def node_names(self) -> list[str]:
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]


async def register_nodes(client: Client, pool: NodePool) -> None:
    """Create or update the nodes of a pool."""
    for name in pool.node_names():
        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                await _register(client, pool, name)
                break
            except (errors.TransportError, errors.ServerError):
                # The node may have been created; registering it again does no harm.
                if not attempts_left:
                    raise
                await client.clock.sleep(RETRY_SECONDS)


async def _register(client: Client, pool: NodePool, name: str) -> None:
    body = _node_body(pool, name, format_time(client.clock.now()))
    nodes = NODES.untyped()
    try:
        node = await client.create(nodes, body)
    except errors.AlreadyExists:
        patch = {"metadata": {"labels": body["metadata"]["labels"]}}
        node = await client.patch(nodes, name, None, patch)
    if node.get("status", {}).get("capacity") != body["status"]["capacity"]:
        patch = {"status": body["status"]}
        await client.patch(nodes, name, None, patch, how=PatchType.MERGE, subresource="status")
    # A real API server taints new nodes for the node lifecycle controller, which does not run here.
    if (node.get("spec") or {}).get("taints"):
        await client.patch(nodes, name, None, {"spec": {"taints": None}})


def _node_body(pool: NodePool, name: str, now: str) -> Json:
    amounts = {"cpu": pool.cpu, "memory": pool.memory, "pods": str(pool.pods), "ephemeral-storage": "100Gi"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **pool.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                _condition("MemoryPressure", "False", "KubeletHasSufficientMemory", now),
                _condition("DiskPressure", "False", "KubeletHasNoDiskPressure", now),
                _condition("PIDPressure", "False", "KubeletHasSufficientPID", now),
                _condition("Ready", "True", "KubeletReady", now),
            ],
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": {
                "kubeletVersion": KUBELET_VERSION,
                "operatingSystem": "linux",
                "architecture": "amd64",
                "containerRuntimeVersion": "trimtab-lab",
                "machineID": name,
                "systemUUID": name,
                "bootID": name,
                "kernelVersion": "none",
                "osImage": "Trimtab lab",
                "kubeProxyVersion": KUBELET_VERSION,
            },
        },
    }


def _condition(kind: str, status: str, reason: str, now: str) -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "the lab's node agent says so",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
