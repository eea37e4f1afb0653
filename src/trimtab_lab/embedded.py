"""A cluster in one object: API server, controllers, nodes and load, in real or virtual time.

    async with EmbeddedCluster(clock, seed=1) as cluster:
        await cluster.apply(manifest)
        cluster.use_cpu(web="40m")
        await cluster.settle()

Under a `VirtualClock` nothing sleeps, and two runs with the same seed end with the same bytes.
"""

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace as with_changes
from types import TracebackType
from typing import Any

import yaml
from msgspec.structs import replace

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client, PatchType
from trimtab.cluster.in_process import InProcessTransport
from trimtab.cluster.resource import Json, Resource
from trimtab.model.core.meta import group_of
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.quantity import Quantity
from trimtab_lab.apiserver.server import LAB_GATES, Server
from trimtab_lab.data_plane import SETTLE_SECONDS, DataPlane, DataPlaneConfig
from trimtab_lab.load.curves import constant
from trimtab_lab.load.load import Load
from trimtab_lab.load.plan import MemoryLoad, WorkloadLoad
from trimtab_lab.metrics.server import serve_in_process
from trimtab_lab.metrics.values import MetricValues, Number
from trimtab_lab.serve import ListenAddress, ServedLab

#: In one process a watch cannot silently stall, so it need not be renewed often.
PACE = WatchPace(shortest=1700.0, longest=1790.0)
NAMESPACES: Resource[Json] = Resource("", "v1", "namespaces", "Namespace", Json, namespaced=False)


class EmbeddedCluster:
    """A cluster for tests, `trimtab up` and simulations. Use it as an async context manager.

    With an `address` it also listens on a socket. A `seed` makes runs repeatable; it is rejected together with an address,
    because its tokens could be guessed. `tracks_fields` updates managedFields on plain writes; simulations run faster
    without.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int | None = None,
        setting: DataPlaneConfig = DataPlaneConfig(pace=PACE),  # noqa: B008 - a frozen value
        gates: FeatureGates = LAB_GATES,
        address: ListenAddress | None = None,
        tracks_fields: bool = True,
    ) -> None:
        self.clock = clock
        self.server = Server(clock, seed=seed, gates=gates, tracks_fields=tracks_fields, has_controllers=True)
        admin = {"authorization": f"Bearer {self.server.tokens.admin}", "user-agent": "trimtab-lab"}
        self.client = Client(clock, InProcessTransport(self.server, headers=admin), seed=seed)
        self.side = DataPlane(self.client, with_changes(setting, pace=PACE), self.server.queues)
        self.served = ServedLab(self.server, address) if address is not None else None
        self._stack = AsyncExitStack()

    @property
    def load(self) -> Load:
        return self.side.load

    @property
    def values(self) -> MetricValues:
        """Return the custom and external metric values."""
        return self.side.values

    async def __aenter__(self) -> "EmbeddedCluster":
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.served or self.server)
            self.server.metrics.source = self.side.kubelet.samples
            await serve_in_process(self.server, self.client, self.values, self.side.caches.pods)
            await stack.enter_async_context(self.side)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def apply(self, *manifests: str | Mapping[str, Any]) -> list[Json]:
        """Apply objects, given as YAML or as data, in order. Missing namespaces are created."""
        return [await self._apply(obj) for manifest in manifests for obj in _objects(manifest)]

    async def _apply(self, obj: Mapping[str, Any]) -> Json:
        resource = self.resource_of(obj["apiVersion"], obj["kind"])
        namespace = obj["metadata"].get("namespace", "default") if resource.namespaced else None
        if namespace is not None and self.server.store.get("namespaces", namespace) is None:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await self.client.create(NAMESPACES, body)
        name = obj["metadata"].get("name")
        if name is None:
            return await self.client.create(resource, dict(obj), namespace)
        return await self.client.patch(resource, name, namespace, dict(obj), how=PatchType.APPLY)

    def resource_of(self, api_version: str, kind: str) -> Resource[Json]:
        group = group_of(api_version)
        served = self.server.registry.by_kind(group, kind)
        if served is None:
            raise ValueError(f"the lab does not serve {kind} of {api_version}")
        version = api_version.rpartition("/")[2]
        return Resource(group, version, served.plural, kind, Json, namespaced=served.is_namespaced)

    async def get(self, kind: str, name: str, namespace: str = "default", api_version: str = "") -> Json:
        """Return an object. The API version is needed only if two groups have the kind."""
        resource = self.resource_of(api_version or self._version_of(kind), kind)
        return await self.client.get(resource, name, namespace if resource.namespaced else None)

    def _version_of(self, kind: str) -> str:
        for resource in self.server.registry:
            if resource.kind == kind and "list" in resource.verbs:
                return resource.api_version(resource.versions[0])
        raise ValueError(f"the lab serves no {kind}")

    async def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object. A missing object is no error."""
        resource = self.resource_of(self._version_of(kind), kind)
        try:
            await self.client.delete(resource, name, namespace if resource.namespaced else None)
        except errors.NotFound:
            return

    async def replicas(self, name: str, namespace: str = "default", kind: str = "Deployment") -> int:
        """Return the replicas in the spec of a workload."""
        workload = await self.get(kind, name, namespace)
        return int(workload["spec"].get("replicas", 1))

    def use_cpu(self, *, namespace: str = "default", **each: str) -> None:
        """Set the CPU usage of each ready pod of the named workloads."""
        for name, amount in each.items():
            self._use(name, namespace, cpu_per_pod=constant(amount), cpu=None)

    def use_memory(self, *, namespace: str = "default", **each: str) -> None:
        """Set the memory usage of each pod of the named workloads."""
        for name, amount in each.items():
            self._use(name, namespace, memory=MemoryLoad(base=Quantity.parse(amount)))

    def _use(self, name: str, namespace: str, **changes: Any) -> None:
        # A keyword cannot hold the dash that many names have.
        workload = name.replace("_", "-")
        load = self.load.get(workload) or WorkloadLoad(name=workload, namespace=namespace)
        self.load.set(replace(load, **changes))
        self.measure()

    def set_external(
        self, name: str, value: Number, *, labels: Mapping[str, str] | None = None, namespace: str = ""
    ) -> None:
        """Set a series of an external metric."""
        self.values.set_external(name, value, self.clock.now(), labels=labels, namespace=namespace)

    def measure(self) -> None:
        """Sample the usage of all pods now."""
        self.side.kubelet.sample()

    async def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until no controller has work, then sample the pods."""
        await self.side.settle(seconds)
        self.measure()

    def dump(self) -> bytes:
        """Return all objects in a fixed order, to compare two runs."""
        resources = sorted(self.server.store.resources(), key=lambda objects: objects.resource)
        return b"\n".join(entry.raw for objects in resources for entry in objects.all())


def _objects(manifest: str | Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    if isinstance(manifest, Mapping):
        return [manifest]
    return [document for document in yaml.safe_load_all(manifest) if document]
