"""The ReplicaSet controller, which also serves ReplicationControllers."""

from typing import Generic, TypeVar

from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Json
from trimtab_lab.controllers.base.caches import Caches
from trimtab_lab.controllers.base.kinds import LabPod, LabReplicationController, LabWorkload, owner_reference
from trimtab_lab.controllers.base.pods import (
    claim_pods,
    count_available,
    in_deletion_order,
    is_active,
    is_ready,
    new_pod,
    next_available_in,
)
from trimtab_lab.controllers.base.status_writer import StatusPatcher
from trimtab_lab.controllers.base.work_queue import WorkQueue
from trimtab_lab.controllers.base.write_through_cache import Key, WriteThroughCache, controller_uid, key_of

S = TypeVar("S", LabWorkload, LabReplicationController)
#: Pods created or deleted per reconcile, as upstream's burst.
BURST = 500


class ReplicaSetController(Generic[S]):
    """Creates and deletes pods until each ReplicaSet has its replicas."""

    def __init__(self, caches: Caches, replica_sets: WriteThroughCache[S]) -> None:
        self._clock = caches.clock
        self._pods = caches.pods
        self._replica_sets: WriteThroughCache[S] = replica_sets
        self._statuses: StatusPatcher[S] = StatusPatcher(replica_sets)
        self.queue = WorkQueue(replica_sets.resource.plural, caches.clock, self.reconcile)
        replica_sets.subscribe(self.queue.add_object)
        self._pods.subscribe(self.queue.controller_handler(replica_sets.resource.kind))
        self._pods.subscribe(self._on_orphan)

    def _on_orphan(self, delta: Delta[LabPod]) -> None:
        pod = delta.new
        if pod is None or controller_uid(pod):
            return
        for replica_set in self._replica_sets.all(pod.metadata.namespace):
            if replica_set.selector.matches(pod.metadata.labels):
                self.queue.add(key_of(replica_set))

    async def reconcile(self, key: Key) -> None:
        """Create or delete pods of one ReplicaSet, and write its status."""
        namespace, name = key
        replica_set = self._replica_sets.get(name, namespace)
        if replica_set is None or replica_set.metadata.deletion_timestamp is not None:
            return
        owner = owner_reference(self._replica_sets.resource, replica_set.metadata)
        pods = await claim_pods(self._pods, namespace, owner, replica_set.selector)
        await self._scale(replica_set, owner, [pod for pod in pods if is_active(pod)])
        active = [pod for pod in self._pods.owned(replica_set.metadata.uid) if is_active(pod)]
        await self._statuses.write(replica_set, self._status(replica_set, active))
        wait = next_available_in(active, replica_set.spec.min_ready_seconds, self._clock.now())
        if wait is not None:
            self.queue.add_after(key, wait)

    async def _scale(self, replica_set: S, owner: Json, active: list[LabPod]) -> None:
        missing = replica_set.spec.replicas - len(active)
        for _ in range(min(missing, BURST)):
            await self._pods.create(new_pod(replica_set.spec.template, owner), replica_set.metadata.namespace)
        if missing < 0:
            ordered = in_deletion_order(active, self._sibling_pods(replica_set))
            for pod in ordered[: min(-missing, BURST)]:
                await self._pods.delete(pod, self._clock.now())
        if abs(missing) > BURST:
            self.queue.add(key_of(replica_set))

    def _sibling_pods(self, replica_set: S) -> list[LabPod]:
        """Return the pods of all ReplicaSets of the same Deployment."""
        deployment = controller_uid(replica_set)
        siblings = self._replica_sets.owned(deployment) if deployment else [replica_set]
        return [pod for sibling in siblings for pod in self._pods.owned(sibling.metadata.uid)]

    def _status(self, replica_set: S, active: list[LabPod]) -> Json:
        labels = ((replica_set.spec.template.get("metadata") or {}).get("labels") or {}).items()
        available = count_available(active, replica_set.spec.min_ready_seconds, self._clock.now())
        return {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(labels <= pod.metadata.labels.items() for pod in active),
            "readyReplicas": sum(map(is_ready, active)),
            "availableReplicas": available,
            "observedGeneration": replica_set.metadata.generation,
        }
