"""The caches that the lab's controllers and nodes share, one per resource."""

from typing import Any

from trimtab.clock import Clock
from trimtab.cluster.cache.store import KeyIndex
from trimtab.cluster.cache.watch import WatchPace
from trimtab.cluster.client import Client
from trimtab.cluster.resource import LEASES
from trimtab_lab.controllers.base import kinds
from trimtab_lab.controllers.base.kinds import LabPod
from trimtab_lab.controllers.base.write_through_cache import WriteThroughCache


class Caches:
    """A write-through cache of every resource that the data plane reads."""

    def __init__(self, client: Client, pace: WatchPace | None = None) -> None:
        self.client = client
        self.pods = WriteThroughCache(client, kinds.PODS, pace)
        self.nodes = WriteThroughCache(client, kinds.NODES, pace)
        self.leases = WriteThroughCache(client, LEASES, pace)
        self.deployments = WriteThroughCache(client, kinds.DEPLOYMENTS, pace)
        self.replica_sets = WriteThroughCache(client, kinds.REPLICA_SETS, pace)
        self.replication_controllers = WriteThroughCache(client, kinds.REPLICATION_CONTROLLERS, pace)
        self.stateful_sets = WriteThroughCache(client, kinds.STATEFUL_SETS, pace)
        self.daemon_sets = WriteThroughCache(client, kinds.DAEMON_SETS, pace)
        self.revisions = WriteThroughCache(client, kinds.REVISIONS, pace)
        self.jobs = WriteThroughCache(client, kinds.JOBS, pace)
        self._pods_by_node: KeyIndex[LabPod, str] = KeyIndex(
            lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ()
        )
        self.pods.informer.add_index(self._pods_by_node)

    @property
    def clock(self) -> Clock:
        """Return the clock of the cluster's client."""
        return self.client.clock

    def pods_on(self, node: str) -> list[LabPod]:
        """Return the pods that are bound to a node, our latest bindings included."""
        return self.pods.indexed(self._pods_by_node, node, lambda pod: pod.spec.node_name == node)

    def to_run(self, *, has_controllers: bool) -> list[WriteThroughCache[Any]]:
        """Return the caches whose informers must run. Nodes alone need three of them."""
        for_nodes: list[WriteThroughCache[Any]] = [self.pods, self.nodes, self.leases]
        if not has_controllers:
            return for_nodes
        return [
            *for_nodes,
            self.deployments,
            self.replica_sets,
            self.replication_controllers,
            self.stateful_sets,
            self.daemon_sets,
            self.revisions,
            self.jobs,
        ]
