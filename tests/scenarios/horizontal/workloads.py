"""Who makes the pods of a scenario's workloads: the controllers of the cluster and our nodes, or the stage by hand.

`Controlled` is the usual way: Deployments and StatefulSets are created as a user would, the lab's controllers or
kube-controller-manager's make their pods, and our node agent runs them. `Played` stands in for all of that where a scenario needs a
state that controllers would not leave alone; the scenario says why.
"""

from enum import Enum
from typing import Any, Protocol

from tests.nodes import remove_nodes
from tests.scenarios.clocks import pass_time
from tests.support.objects import deployment, owner_of, pod, pod_spec, statefulset, workload
from trimtab.clock import Clock
from trimtab.cluster.client import Client, DeleteOptions, ListOptions
from trimtab.cluster.resource import DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, STATEFUL_SETS, Json, Resource
from trimtab_lab.data_plane import DataPlane, DataPlaneConfig
from trimtab_lab.nodes.node_pool import NodePool
from trimtab_lab.nodes.pod_lifecycle import PREFIX, Timing

#: Pods younger than this count by rules of their own (the initialization period of CPU); a scenario begins after it.
SETTLED_SECONDS = 360.0
PATIENCE_SECONDS = 60.0
AT_ONCE = Timing(start_seconds=0, stop_seconds=0, resize_seconds=0, run_seconds=1e9)
ROOMY = NodePool(name="scenario", count=2, cpu="100", memory="400Gi", pods=1000)


def small(cpu: str | None) -> Json:
    """Return the spec of a pod that requests as much CPU, and 100Mi of memory; or nothing."""
    return pod_spec({"cpu": cpu, "memory": "100Mi"} if cpu else {})


class Controllers(Enum):
    """Who makes pods of Deployments, StatefulSets and Jobs."""

    PLAYED = "the stage, by hand"
    LAB = "the lab's controllers"
    REAL = "kube-controller-manager's controllers"


class Workloads(Protocol):
    """What a stage asks of whoever makes pods."""

    async def open(self) -> None:
        """Begin to work."""

    async def close(self) -> None:
        """Stop working."""

    async def deployment(
        self, name: str, replicas: int, labels: Json, cpu: str | None, *, is_slow: bool
    ) -> None:
        """Make a Deployment with its pods; those of a slow one do not become ready."""

    async def bare_deployment(self, name: str, replicas: int, running: int) -> None:
        """Make a Deployment whose pods nobody looks at, because only external totals count."""

    async def stateful_set(self, name: str, replicas: int) -> None:
        """Make a StatefulSet with its pods."""

    async def pod(self, name: str, labels: Json, spec: Json, owners: list[Json]) -> None:
        """Make a pod that runs and is ready."""

    async def job(self, name: str, labels: Json) -> None:
        """Make a Job whose one pod has these labels and does not end."""

    async def follow(self, name: str) -> None:
        """Let the pods and the status of a Deployment follow its scale."""

    async def settle(self) -> None:
        """Wait until all that others have to do is done."""


class _OnCluster:
    """What both have in common: where they work."""

    def __init__(self, clock: Clock, client: Client, namespace: str) -> None:
        self._clock, self._client, self._namespace = clock, client, namespace

    async def _create(self, resource: Resource[Any], body: Json) -> Json:
        return await self._client.create(resource.untyped(), body, self._namespace)

    async def _create_pod(self, name: str, labels: Json, spec: Json, owners: list[Json]) -> None:
        await self._create(PODS, pod(name, labels=labels, spec=spec, owners=owners))

    async def _all(self, resource: Resource[Any]) -> tuple[Json, ...]:
        return (await self._client.list(resource.untyped(), ListOptions(self._namespace))).items


class Controlled(_OnCluster):
    """Real controllers make the pods, and our node agent runs them as a client of the cluster."""

    def __init__(self, clock: Clock, client: Client, namespace: str) -> None:
        super().__init__(clock, client, namespace)
        # Load is the metrics stub's business here, so nobody measures.
        setting = DataPlaneConfig(pools=(ROOMY,), timing=AT_ONCE, sample_seconds=1e6)
        self._side = DataPlane(client, setting)

    async def open(self) -> None:
        await self._side.__aenter__()

    async def close(self) -> None:
        await self._side.__aexit__(None, None, None)
        await remove_nodes(self._client, (ROOMY,))

    async def deployment(
        self, name: str, replicas: int, labels: Json, cpu: str | None, *, is_slow: bool
    ) -> None:
        slow = {f"{PREFIX}ready-seconds": "1e6"} if is_slow else None
        body = deployment(name, replicas, selector=labels, annotations=slow, spec=small(cpu))
        await self._create(DEPLOYMENTS, body)
        await self._grow_old()

    async def bare_deployment(self, name: str, replicas: int, running: int) -> None:
        assert running == replicas, "controllers make as many pods as were asked for"
        # No node has this label: a hundred pods that nobody looks at need not run either.
        nowhere = {"nodeSelector": {"nobody": "runs-these"}}
        await self._create(DEPLOYMENTS, deployment(name, replicas, spec=pod_spec() | nowhere))
        await self.settle()

    async def stateful_set(self, name: str, replicas: int) -> None:
        await self._create(STATEFUL_SETS, statefulset(name, replicas))
        await self._grow_old()

    async def pod(self, name: str, labels: Json, spec: Json, owners: list[Json]) -> None:
        await self._create_pod(name, labels, spec, owners)
        await self._grow_old()

    async def create(self, resource: Resource[Any], body: Json) -> None:
        """Create an object as it stands, and let its pods grow old."""
        await self._create(resource, body)
        await self._grow_old()

    async def job(self, name: str, labels: Json) -> None:
        template = {"metadata": {"labels": labels}, "spec": small("100m") | {"restartPolicy": "Never"}}
        await self._create(JOBS, {"metadata": {"name": name}, "spec": {"template": template}})
        await self._grow_old()

    async def follow(self, name: str) -> None:
        await self.settle()

    async def settle(self) -> None:
        why_not = "not looked at"
        for _ in range(int(PATIENCE_SECONDS / 0.05)):
            if not (why_not := await self._moving()):
                return
            await self._clock.sleep(0.05)
        raise AssertionError(f"still moving after {PATIENCE_SECONDS:g} s: {why_not}")

    async def _grow_old(self) -> None:
        await self.settle()
        await pass_time(self._clock, SETTLED_SECONDS)

    async def _moving(self) -> str:
        """Return what is still on its way, or nothing."""
        owners = [*await self._all(DEPLOYMENTS), *await self._all(STATEFUL_SETS)]
        moving = [one["metadata"]["name"] for one in owners if not _has_followed(one)]
        moving += [
            one["metadata"]["name"] for one in await self._all(JOBS) if not one["status"].get("active")
        ]
        moving += [one["metadata"]["name"] for one in await self._all(PODS) if not _is_at_rest(one)]
        return ", ".join(moving)


def _has_followed(owner: Json) -> bool:
    status = owner.get("status", {})
    has_looked = status.get("observedGeneration", 0) >= owner["metadata"]["generation"]
    return bool(has_looked and status.get("replicas", 0) == owner["spec"]["replicas"])


def _is_at_rest(pod: Json) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    if pod["spec"].get("nodeSelector"):
        return True
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", [])}
    is_slow = f"{PREFIX}ready-seconds" in pod["metadata"].get("annotations", {})
    return pod["status"]["phase"] == "Running" and (is_slow or conditions.get("Ready") == "True")


class Played(_OnCluster):
    """The stage itself writes what controllers and kubelets would, and only when the scenario says so."""

    async def open(self) -> None:
        self._slow: set[str] = set()

    async def close(self) -> None:
        """Nothing runs."""

    async def deployment(
        self, name: str, replicas: int, labels: Json, cpu: str | None, *, is_slow: bool
    ) -> None:
        if is_slow:
            self._slow.add(name)
        body = deployment(name, replicas, selector=labels, spec=small(cpu))
        owners = [owner_of("apps/v1", "Deployment", await self._create(DEPLOYMENTS, body))]
        body = workload("ReplicaSet", f"{name}-rs", replicas, selector=labels, spec=small(cpu), owners=owners)
        await self._create(REPLICA_SETS, body)
        await self.follow(name)

    async def bare_deployment(self, name: str, replicas: int, running: int) -> None:
        await self._create(DEPLOYMENTS, deployment(name, replicas))
        await self.set_status(name, running)

    async def stateful_set(self, name: str, replicas: int) -> None:
        await self._create(STATEFUL_SETS, statefulset(name, replicas))
        status = {"status": {"replicas": replicas}}
        await self._client.patch(STATEFUL_SETS.untyped(), name, self._namespace, status, subresource="status")

    async def job(self, name: str, labels: Json) -> None:
        # Nobody looks at the Job itself, so it need not exist: what counts is that its pod is not the Deployment's.
        await self.pod(name, labels, small("100m"), [])

    async def settle(self) -> None:
        """Pods come and go only when the scenario says so."""

    async def follow(self, name: str) -> None:
        deployment = await self._client.get(DEPLOYMENTS.untyped(), name, self._namespace)
        wanted = deployment["spec"]["replicas"]
        replica_sets = [
            one for one in await self._all(REPLICA_SETS) if one["metadata"]["name"] == f"{name}-rs"
        ]
        for replica_set in replica_sets:
            await self._follow(replica_set, wanted, is_ready=name not in self._slow)
        if deployment.get("status", {}).get("replicas", 0) != wanted:
            await self.set_status(name, wanted)

    async def _follow(self, replica_set: Json, wanted: int, *, is_ready: bool) -> None:
        prefix = f"{replica_set['metadata']['name']}-"
        names = [one["metadata"]["name"] for one in await self._all(PODS)]
        mine = {int(name.removeprefix(prefix)) for name in names if name.startswith(prefix)}
        template, owner = replica_set["spec"]["template"], owner_of("apps/v1", "ReplicaSet", replica_set)
        for index in sorted(set(range(wanted)) - mine):
            pod = (f"{prefix}{index}", template["metadata"]["labels"], template["spec"], [owner])
            await self._run(*pod, is_ready=is_ready)
        for index in sorted(mine - set(range(wanted))):
            options = DeleteOptions(grace_seconds=0)
            await self._client.delete(PODS, f"{prefix}{index}", self._namespace, options=options)

    async def pod(self, name: str, labels: Json, spec: Json, owners: list[Json]) -> None:
        await self._run(name, labels, spec, owners, is_ready=True)

    async def _run(self, name: str, labels: Json, spec: Json, owners: list[Json], *, is_ready: bool) -> None:
        await self._create_pod(name, labels, spec, owners)
        started = "2025-01-01T00:00:00Z"
        status = {
            "phase": "Running",
            "startTime": started,
            "conditions": [{"type": "Ready", "status": str(is_ready), "lastTransitionTime": started}],
        }
        await self._client.patch(
            PODS.untyped(), name, self._namespace, {"status": status}, subresource="status"
        )

    async def set_status(self, name: str, replicas: int) -> None:
        """Say that as many replicas run."""
        status = {"status": {"replicas": replicas}}
        await self._client.patch(DEPLOYMENTS.untyped(), name, self._namespace, status, subresource="status")


def make_workloads(by: Controllers, clock: Clock, client: Client, namespace: str) -> Workloads:
    """Return who makes the pods of this namespace."""
    if by is Controllers.PLAYED:
        return Played(clock, client, namespace)
    return Controlled(clock, client, namespace)
