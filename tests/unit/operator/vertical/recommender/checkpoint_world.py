"""A lab with the VPA kinds, and the parts of the recommender that keep checkpoints in it."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.cluster import as_admin
from tests.support.objects import CRDS
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.leases.fence import NoFence
from trimtab.cluster.resource import Json, Resource
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.model.core.meta import NamespacedName, ObjectMeta
from trimtab.model.crds import all_crds
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpointSpec, VerticalPodAutoscalerCheckpointStatus
from trimtab.operator.ownership import Ownership
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS
from trimtab.operator.vertical.recommender.checkpoint_collector import CheckpointCollector
from trimtab.operator.vertical.recommender.checkpoint_objects import CheckpointOptions
from trimtab.operator.vertical.recommender.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab_lab.apiserver.server import Server

BASE, OTHER = NamespacedName("shop", "base"), NamespacedName("shop", "other")


def checkpoint(name: str = "base-app", vpa: str = "base", samples: int = 1, **meta: Any) -> Checkpoint:
    container = name.rpartition("-")[2]
    return Checkpoint(
        metadata=ObjectMeta(name=name, namespace=meta.pop("namespace", "shop"), **meta),
        spec=VerticalPodAutoscalerCheckpointSpec(vpa_object_name=vpa, container_name=container),
        status=VerticalPodAutoscalerCheckpointStatus(total_samples_count=samples),
    )


class World:
    """The store and the collector of checkpoints on a server with the VPA kinds."""

    def __init__(self, client: Client, owner: Any = None, **options: Any) -> None:
        self.client = client
        states = ShardedClusterStates(ClusterState, owner or Ownership(client, NoFence()))
        states.sync_shards()
        self.options = CheckpointOptions(**options)
        self.store = CheckpointStore(client, states, self.options)
        self.collector = CheckpointCollector(client, states, self.store, lambda _: True, self.options)

    async def write(self, *checkpoints: Checkpoint) -> Any:
        return await self.store.write(checkpoints, 10)

    async def names(self) -> dict[str, int]:
        listed = await self.client.list(CHECKPOINTS)
        return {item.metadata.key: item.status.total_samples_count for item in listed.items}

    async def make_vpa(self, name: str, namespace: str = "shop") -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        body = {"metadata": {"name": name}, "spec": {"targetRef": target}}
        body |= {"apiVersion": VPAS.api_version, "kind": VPAS.kind}
        await self.client.create(VPAS.untyped(), body, namespace)

    async def collect(self, *vpas: NamespacedName) -> list[str]:
        return await self.collector.collect(frozenset(vpas), [""])


def play(scenario: Callable[[World], Awaitable[None]], **options: Any) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with Server(clock, seed=1) as server:
            client = Client(clock, as_admin(server), seed=1)
            for crd in all_crds():
                await client.create(CRDS, crd)
            for namespace in ("shop", "mail"):
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                await client.create(Resource("", "v1", "namespaces", "Namespace", Json, False), body)
            await scenario(World(client, **options))

    clock.run(main())
