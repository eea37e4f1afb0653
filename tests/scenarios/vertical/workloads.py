"""Who makes and runs the pods of a vertical scenario: the controllers of the cluster and our nodes, or the stage by hand.

`Controlled` is the usual way, as in the horizontal scenarios: the lab's controllers or kube-controller-manager's make pods
and replace those that were evicted, and our node agent runs and resizes them. `Played` stands in for all of that where a
scenario needs a state that controllers would not leave alone; the scenario says why.
"""

from contextlib import suppress
from typing import Any, Protocol

from tests.nodes import remove_nodes
from tests.scenarios.horizontal import workloads as horizontal
from tests.scenarios.horizontal.workloads import Controllers
from tests.support.objects import owner_of
from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, DeleteOptions, ListOptions
from trimtab.cluster.resource import DAEMON_SETS, NODES, PODS, STATEFUL_SETS, Json
from trimtab.model.times import format_time
from trimtab_lab.nodes.node_pool import NodePool

AT_ONCE = DeleteOptions(grace_seconds=0)
WITH_PODS = DeleteOptions(propagation="Foreground")


class Workloads(Protocol):
    """What a stage asks of whoever makes pods."""

    async def open(self) -> None:
        """Begin to work."""

    async def close(self) -> None:
        """Stop working."""

    async def add_node(self, name: str, labels: dict[str, str]) -> str:
        """Add a node; return its name."""

    async def heal(self, name: str) -> list[str]:
        """Let a StatefulSet have all its pods again, as its template says; return those that are new."""

    async def delete(self, name: str) -> None:
        """Delete a StatefulSet with its pods."""

    async def run(self, pod: str) -> None:
        """Let a pod run that somebody made."""

    async def settle(self) -> None:
        """Let resizes be carried out, and all else that others have to do."""


class Controlled(horizontal.Controlled):
    """Real controllers make the pods, and our node agent runs and resizes them as a client of the cluster."""

    def __init__(self, clock: Clock, client: Client, namespace: str) -> None:
        super().__init__(clock, client, namespace)
        self._known: dict[str, str] = {}
        self._added: list[NodePool] = []

    async def close(self) -> None:
        await super().close()
        await remove_nodes(self._client, self._added)

    async def add_node(self, name: str, labels: dict[str, str]) -> str:
        self._added.append(NodePool(name=name, count=1, labels=labels))
        await self._side.kubelet.add_pool(self._added[-1])
        return self._added[-1].node_names()[0]

    async def heal(self, name: str) -> list[str]:
        await self.settle()
        uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await self._all(PODS)}
        mine = {pod: uid for pod, uid in uids.items() if pod.rpartition("-")[0] == name}
        new = sorted(pod for pod, uid in mine.items() if self._known.get(pod) != uid)
        self._known |= mine
        return new

    async def delete(self, name: str) -> None:
        await self._client.delete(STATEFUL_SETS, name, self._namespace, options=WITH_PODS)
        await self.settle()

    async def run(self, pod: str) -> None:
        await self.settle()

    async def _moving(self) -> str:
        """Return what is still on its way, or nothing: a pod that was evicted a moment ago is missed by nobody yet."""
        pods = {one["metadata"]["name"]: one for one in await self._all(PODS)}
        wanted = [
            f"{owner['metadata']['name']}-{index}"
            for owner in await self._all(STATEFUL_SETS)
            for index in range(owner["spec"]["replicas"])
        ]
        moving = [name for name in wanted if name not in pods]
        moving += [
            owner["metadata"]["name"]
            for owner in await self._all(DAEMON_SETS)
            if not _is_everywhere(owner, list(pods.values()))
        ]
        moving += [name for name, pod in pods.items() if _is_resizing(pod)]
        return ", ".join(moving) or await super()._moving()


def _is_everywhere(owner: Json, pods: list[Json]) -> bool:
    """Return whether a DaemonSet has a pod that is ready on every node that it should be on."""
    uid, status = owner["metadata"]["uid"], owner.get("status", {})
    mine = [pod for pod in pods if uid in [one["uid"] for one in pod["metadata"].get("ownerReferences", [])]]
    wanted = status.get("desiredNumberScheduled")
    return bool(status.get("observedGeneration") and wanted == len(mine) == status.get("numberReady"))


def _is_resizing(pod: Json) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses") or [{}]
    return bool(statuses[0].get("resources") != pod["spec"]["containers"][0].get("resources", {}))


class Played:
    """The stage itself writes what controllers and kubelets would, and only when the scenario says so."""

    def __init__(self, clock: Clock, client: Client, namespace: str) -> None:
        self._clock, self._client, self._namespace = clock, client, namespace
        self._nodes: list[str] = []

    async def open(self) -> None:
        await self.add_node(f"{self._namespace}-big", {})

    async def close(self) -> None:
        for name in self._nodes:
            await self._client.delete(NODES, name)

    async def add_node(self, name: str, labels: dict[str, str]) -> str:
        await self._client.create(NODES.untyped(), {"metadata": {"name": name, "labels": labels}})
        self._nodes.append(name)
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "500"}
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        await self._client.patch(NODES.untyped(), name, None, status, subresource="status")
        return name

    async def heal(self, name: str) -> list[str]:
        owner = await self._client.get(STATEFUL_SETS.untyped(), name, self._namespace)
        present = {pod.name for pod in (await self._client.list(PODS, ListOptions(self._namespace))).items}
        made = [
            pod for index in range(owner["spec"]["replicas"]) if (pod := f"{name}-{index}") not in present
        ]
        template = owner["spec"]["template"]
        for pod in made:
            metadata = template["metadata"] | {
                "name": pod,
                "ownerReferences": [owner_of("apps/v1", "StatefulSet", owner)],
            }
            body = {"metadata": metadata, "spec": template["spec"]}
            await self._client.create(PODS.untyped(), body, self._namespace)
            await self.run(pod)
        return made

    async def delete(self, name: str) -> None:
        owner = await self._client.get(STATEFUL_SETS.untyped(), name, self._namespace)
        await self._client.delete(STATEFUL_SETS, name, self._namespace)
        for index in range(owner["spec"]["replicas"]):
            with suppress(errors.NotFound):
                await self._client.delete(PODS, f"{name}-{index}", self._namespace, options=AT_ONCE)

    async def run(self, pod: str, *, restarts: int = 0, oom_at: str | None = None) -> None:
        """Play kubelet: the pod runs, and perhaps was killed for memory."""
        started = format_time(self._clock.now().replace(microsecond=0))
        spec = (await self._client.get(PODS.untyped(), pod, self._namespace))["spec"]
        container: Json = {
            "name": "app",
            "resources": spec["containers"][0].get("resources", {}),
            "ready": True,
            "restartCount": restarts,
            "image": "none",
            "imageID": "none",
            "state": {"running": {"startedAt": started}},
        }
        if oom_at:
            dead = {"exitCode": 137, "reason": "OOMKilled", "startedAt": oom_at, "finishedAt": oom_at}
            container["lastState"] = {"terminated": dead}
        await self._write(
            pod,
            phase="Running",
            startTime=started,
            conditions=[{"type": "Ready", "status": "True", "lastTransitionTime": started}],
            containerStatuses=[container],
        )

    async def settle(self) -> None:
        """Play kubelet: what a pod's spec asks for is what its containers have."""
        for pod in (await self._client.list(PODS.untyped(), ListOptions(self._namespace))).items:
            statuses = pod.get("status", {}).get("containerStatuses")
            if statuses and _is_resizing(pod):
                wanted = pod["spec"]["containers"][0].get("resources", {})
                await self._write(
                    pod["metadata"]["name"], containerStatuses=[{**statuses[0], "resources": wanted}]
                )

    async def _write(self, pod: str, **status: Any) -> None:
        body = {"status": status}
        await self._client.patch(PODS.untyped(), pod, self._namespace, body, subresource="status")


def make_workloads(by: Controllers, clock: Clock, client: Client, namespace: str) -> Workloads:
    """Return who makes the pods of this namespace."""
    if by is Controllers.PLAYED:
        return Played(clock, client, namespace)
    return Controlled(clock, client, namespace)
