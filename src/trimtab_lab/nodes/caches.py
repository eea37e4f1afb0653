"""The caches that nodes, scheduler and elections share."""

from typing import Any

from trimtab.clock import Clock
from trimtab.cluster.cache.store import KeyIndex
from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client
from trimtab.cluster.resource import LEASES
from trimtab_lab.controllers.kinds import NODES, PODS, LabPod
from trimtab_lab.nodes.write_through_cache import WriteThroughCache


class Caches:
    """A write-through cache of every resource that the data plane reads."""

    def __init__(self, client: Client, pace: WatchPace | None = None) -> None:
        self.client = client
        self.pods = WriteThroughCache(client, PODS, pace)
        self.nodes = WriteThroughCache(client, NODES, pace)
        self.leases = WriteThroughCache(client, LEASES, pace)
        self._pods_by_node: KeyIndex[LabPod, str] = KeyIndex(
            lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ()
        )
        self.pods.informer.add_index(self._pods_by_node)

    @property
    def clock(self) -> Clock:
        return self.client.clock

    @property
    def all(self) -> tuple[WriteThroughCache[Any], ...]:
        return self.pods, self.nodes, self.leases

    def pods_on(self, node: str) -> list[LabPod]:
        """Return the pods that are bound to a node, our latest bindings included."""
        return self.pods.indexed(self._pods_by_node, node, lambda pod: pod.spec.node_name == node)
