"""What happens to the cluster in one round of a soak.

A round creates a namespace with workloads, autoscalers of every kind and a pod without a workload, lets their load change, breaks
something, and deletes everything again: every second time object by object, else with the namespace. Names are never used twice.
"""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tests.soak import objects
from tests.support.objects import NAMESPACES
from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.client import Client, DeleteOptions, ListOptions, PatchType
from trimtab.cluster.resource import CORE_EVENTS, PODS, Json, Resource
from trimtab.model.core.meta import group_of
from trimtab.model.quantity import Quantity
from trimtab.model.times import parse_time
from trimtab_lab.load.curves import constant
from trimtab_lab.load.load import Load
from trimtab_lab.load.plan import Election, Leader, MemoryLoad, MetricCurve, WorkloadLoad

EVENT_SECONDS = 3600.0
"""The API server deletes events after an hour. The lab has no such clock, so the churn does it."""
_ATTEMPTS = 10
PLURALS = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "VerticalPodAutoscaler": "verticalpodautoscalers",
    "VPAScope": "vpascopes",
    "Pod": "pods",
}


class World(Protocol):
    """The cluster and the replicas of Trimtab that a soak runs on."""

    client: Client
    load: Load

    @property
    def clock(self) -> Clock:
        """Return the clock of the churn."""
        ...

    @property
    def disturbances(self) -> Mapping[str, Callable[[float], Awaitable[None]]]:
        """Return what can be broken, by name. Each takes seconds, and ends mended."""
        ...

    async def visit(self, number: int) -> None:
        """Use what Trimtab serves: the page, the adapter, the health port."""
        ...


@dataclass
class Churn:
    """Rounds of one soak. `period` is the length of a round in seconds."""

    world: World
    period: float
    seed: int = 1
    rounds: int = 0
    expires_events: bool = True

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    async def open(self) -> None:
        """Create the objects that stay."""
        load = self.world.load
        load.set(_cpu("stay-web", "soak-stays", "150m"))
        load.set(_cpu("stay-native", "soak-stays", "120m"))
        load.set(_led("stay-db", "soak-stays"))
        for manifest in objects.standing_objects():
            await self._create(manifest)

    async def round(self) -> None:
        """Create, change, break and delete."""
        number, self.rounds = self.rounds, self.rounds + 1
        home, part = f"soak-{number}", self.period / 5
        manifests = objects.round_objects(number)
        self._set_load(number, home)
        for manifest in manifests:
            await self._create(manifest)
        await self.world.clock.sleep(part)
        self.world.load.scale(f"web-{number}", 3.0)
        await self._delete_some_pods(home)
        await self.world.visit(number)
        await self.world.clock.sleep(part)
        disturbances = self.world.disturbances
        names = sorted(disturbances)
        await disturbances[names[number % len(names)]](part)
        self.world.load.scale(f"web-{number}", 0.5)
        await self._edit(number, home)
        await self.world.clock.sleep(part)
        await self._delete(manifests, home, one_by_one=number % 2 == 1)
        for name in ("web", "jobs", "app", "db"):
            self.world.load.remove(f"{name}-{number}")
        self.world.load.remove(f"queue-{number}")
        await self.world.clock.sleep(part)
        if self.expires_events:
            await self._expire_events()

    def _set_load(self, number: int, home: str) -> None:
        load = self.world.load
        load.set(_cpu(f"web-{number}", home, "150m"))
        load.set(_cpu(f"app-{number}", home, self._random.choice(["50m", "400m", "900m"])))
        load.set(_led(f"db-{number}", home))
        backlog = constant(str(self._random.randrange(60)))
        load.set(MetricCurve(name=f"queue-{number}", namespace=home, value=backlog))

    async def _create(self, manifest: Json) -> None:
        resource, home = _resource_of(manifest), manifest["metadata"].get("namespace")
        await self._insist(lambda: self.world.client.create(resource, manifest, home))

    async def _delete(self, manifests: list[Json], home: str, *, one_by_one: bool) -> None:
        for manifest in manifests[1:] if one_by_one else ():
            resource, name = _resource_of(manifest), manifest["metadata"]["name"]
            await self._insist(partial(self.world.client.delete, resource, name, home))
        await self.world.clock.sleep(self.period / 20)
        await self._insist(lambda: self.world.client.delete(NAMESPACES, home))

    async def _insist(self, write: Callable[[], Awaitable[object]]) -> None:
        """Repeat a write that fails, since the API server may just be restarting."""
        for _ in range(_ATTEMPTS):
            try:
                await write()
            except (errors.AlreadyExists, errors.NotFound):
                return
            except errors.ClusterError:
                await self.world.clock.sleep(self.period / 50)
            else:
                return

    async def _delete_some_pods(self, home: str) -> None:
        at_once = DeleteOptions(grace_seconds=0)
        for pod in (await self.world.client.list(PODS, ListOptions(home))).items:
            if self._random.random() < 0.3:
                await self._insist(partial(self.world.client.delete, PODS, pod.name, home, options=at_once))

    async def _edit(self, number: int, home: str) -> None:
        body = {"spec": {"maxReplicas": 4 + number % 3}}
        hpas = _resource_of(objects.hpa(objects.OWN, "", home, objects.CPU))
        patch = partial(self.world.client.patch, hpas, f"web-{number}", home, body, how=PatchType.MERGE)
        await self._insist(patch)

    async def _expire_events(self) -> None:
        oldest = self.world.clock.now().timestamp() - EVENT_SECONDS
        for event in (await self.world.client.list(CORE_EVENTS)).items:
            last = event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]
            meta = event["metadata"]
            if parse_time(last).timestamp() < oldest:
                await self._insist(
                    partial(self.world.client.delete, CORE_EVENTS, meta["name"], meta["namespace"])
                )


def _cpu(name: str, home: str, per_pod: str) -> WorkloadLoad:
    return WorkloadLoad(name=name, namespace=home, cpu_per_pod=constant(per_pod), noise=0.05)


def _led(name: str, home: str) -> WorkloadLoad:
    return WorkloadLoad(
        name=name,
        namespace=home,
        cpu=constant("1"),
        share=Leader(),
        election=Election(every=3600.0),
        memory=MemoryLoad(base=Quantity.parse("80Mi"), per_core=Quantity.parse("200Mi")),
    )


def _resource_of(manifest: Json) -> Resource[Json]:
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    if kind == "Namespace":
        return NAMESPACES
    return Resource(group_of(api_version), api_version.rpartition("/")[2], PLURALS[kind], kind, Json)
