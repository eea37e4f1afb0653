"""The ReplicaSet controller, which also serves ReplicationControllers."""

from typing import Any

from trimtab.cluster.resource import Json
from trimtab_lab.controllers.controller import Controller
from trimtab_lab.controllers.kinds import PODS, LabPod, LabReplicationController, LabWorkload, owner_reference
from trimtab_lab.controllers.objects import Key, controller_uid
from trimtab_lab.controllers.pods import (
    claim_pods,
    count_available,
    in_deletion_order,
    is_active,
    is_ready,
    new_pod,
    next_available_in,
)
from trimtab_lab.storage.store import WatchCacheEvent

ReplicaSet = LabWorkload | LabReplicationController
#: Pods created or deleted per reconcile, as upstream's burst.
BURST = 500


class ReplicaSetController(Controller):
    """Creates and deletes pods until each ReplicaSet has its replicas."""

    def on_other(self, storage: str, change: WatchCacheEvent) -> None:
        """Enqueue the ReplicaSets that may adopt a pod."""
        if storage == "pods" and not change.entry.owners and change.action != "DELETED":
            self.enqueue_matching(change.entry)

    async def reconcile(self, key: Key) -> None:
        """Create or delete pods of one ReplicaSet, and write its status."""
        replica_set = self._find(key)
        if replica_set is None:
            return
        owner = owner_reference(self.resource, replica_set.metadata)
        await claim_pods(self.objects, owner, key[0], replica_set.selector)
        for _ in range(BURST):
            if not await self._step(key, owner):
                break
        else:
            self.queue.add(key)
        replica_set = self._find(key)
        if replica_set is None:
            return
        active = self._active(replica_set)
        await self.objects.write_status(self.resource, replica_set, self._status(replica_set, active))
        wait = next_available_in(active, replica_set.spec.min_ready_seconds, self.clock.now())
        if wait is not None:
            self.queue.add_after(key, wait)

    def _find(self, key: Key) -> ReplicaSet | None:
        replica_set: ReplicaSet | None = self.objects.get(self.resource, key)
        if replica_set is None or replica_set.metadata.deletion_timestamp is not None:
            return None
        return replica_set

    def _active(self, replica_set: ReplicaSet) -> list[LabPod]:
        return [pod for pod in self.objects.owned(PODS, replica_set.metadata.uid) if is_active(pod)]

    async def _step(self, key: Key, owner: Json) -> bool:
        """Create or delete one pod, and return whether that was needed. A webhook may take time over each."""
        replica_set = self._find(key)
        if replica_set is None or replica_set.metadata.uid != owner["uid"]:
            return False
        active = self._active(replica_set)
        missing = replica_set.spec.replicas - len(active)
        if missing > 0:
            await self.objects.create(PODS, new_pod(replica_set.spec.template, owner), key[0])
        elif missing < 0:
            await self.objects.delete(PODS, in_deletion_order(active, self._sibling_pods(replica_set))[0])
        return missing != 0

    def _sibling_pods(self, replica_set: ReplicaSet) -> list[LabPod]:
        """Return the pods of all ReplicaSets of the same Deployment."""
        deployment = controller_uid(replica_set)
        siblings: list[Any] = self.objects.owned(self.resource, deployment) if deployment else [replica_set]
        return [pod for sibling in siblings for pod in self.objects.owned(PODS, sibling.metadata.uid)]

    def _status(self, replica_set: ReplicaSet, active: list[LabPod]) -> Json:
        labels = ((replica_set.spec.template.get("metadata") or {}).get("labels") or {}).items()
        available = count_available(active, replica_set.spec.min_ready_seconds, self.clock.now())
        return {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(labels <= pod.metadata.labels.items() for pod in active),
            "readyReplicas": sum(map(is_ready, active)),
            "availableReplicas": available,
            "observedGeneration": replica_set.metadata.generation,
        }
