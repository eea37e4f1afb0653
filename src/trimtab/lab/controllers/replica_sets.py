"""ReplicaSets and ReplicationControllers: as many pods as asked for."""

from typing import Generic, TypeVar

from trimtab.clock import Clock
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base import pods as podstate
from trimtab.lab.controllers.base.kinds import OldPodSet, PodSet, RunPod, owner_reference
from trimtab.lab.controllers.base.pods import claim_pods, may_adopt, new_pod
from trimtab.lab.controllers.base.status_writer import StatusPatcher
from trimtab.lab.controllers.base.work_queue import WorkQueue
from trimtab.lab.controllers.base.write_through_cache import Key, WriteThroughCache

S = TypeVar("S", PodSet, OldPodSet)
#: Pods made or deleted in one go, as upstream's burst.
BURST = 500


class ReplicaController(Generic[S]):
    """Keeps the number of pods of each set."""

    def __init__(self, clock: Clock, sets: WriteThroughCache[S], pods: WriteThroughCache[RunPod]) -> None:
        self._clock = clock
        self._sets: WriteThroughCache[S] = sets
        self._pods = pods
        self._statuses: StatusPatcher[S] = StatusPatcher(sets)
        self.queue = WorkQueue(sets.resource.plural, clock, self.reconcile)
        sets.subscribe(self._set_changed)
        pods.subscribe(self._pod_changed)

    def _set_changed(self, delta: Delta[S]) -> None:
        if delta.new is not None:
            self.queue.add((delta.new.metadata.namespace, delta.new.metadata.name))

    def _pod_changed(self, delta: Delta[RunPod]) -> None:
        for pod in (delta.old, delta.new):
            if pod is None:
                continue
            namespace = pod.metadata.namespace
            for owner in pod.metadata.owner_references:
                if owner.controller and owner.kind == self._sets.resource.kind:
                    self.queue.add((namespace, owner.name))
        if delta.new is not None and may_adopt(delta.new):
            for one in self._sets.all(delta.new.metadata.namespace):
                if one.selector.matches(delta.new.metadata.labels):
                    self.queue.add((one.metadata.namespace, one.metadata.name))

    async def reconcile(self, key: Key) -> None:
        """Make or delete pods until there are as many as asked for, and say how many there are."""
        namespace, name = key
        one = self._sets.get(name, namespace)
        if one is None or one.metadata.deletion_timestamp is not None:
            return
        owner = owner_reference(self._sets.resource, one.metadata)
        pods = await claim_pods(self._pods, namespace, owner, one.selector)
        active = [pod for pod in pods if podstate.is_active(pod)]
        await self._resize(one, owner, active)
        counted = [pod for pod in self._pods.owned(one.metadata.uid) if podstate.is_active(pod)]
        now = self._clock.now()
        await self._statuses.write(one, self._status(one, counted))
        wait = podstate.next_available(counted, one.spec.min_ready_seconds, now)
        if wait is not None:
            self.queue.add_after(key, wait)

    async def _resize(self, one: S, owner: Json, active: list[RunPod]) -> None:
        missing = one.spec.replicas - len(active)
        for _ in range(min(missing, BURST)):
            await self._pods.create(new_pod(one.spec.template, owner), one.metadata.namespace)
        if missing < 0:
            doomed = podstate.in_deletion_order(active, self._siblings(one))
            for pod in doomed[: min(-missing, BURST)]:
                await self._pods.delete(pod, self._clock.now())
        if abs(missing) > BURST:
            self.queue.add((one.metadata.namespace, one.metadata.name))

    def _siblings(self, one: S) -> list[RunPod]:
        """Return the pods of every set of the same Deployment: they crowd a node together."""
        parents = {owner.uid for owner in one.metadata.owner_references if owner.controller}
        related = (
            [one]
            if not parents
            else [
                other
                for other in self._sets.all(one.metadata.namespace)
                if any(owner.uid in parents for owner in other.metadata.owner_references)
            ]
        )
        return [pod for other in related for pod in self._pods.owned(other.metadata.uid)]

    def _status(self, one: S, counted: list[RunPod]) -> Json:
        labels = ((one.spec.template.get("metadata") or {}).get("labels") or {}).items()
        available = podstate.count_available(counted, one.spec.min_ready_seconds, self._clock.now())
        return {
            "replicas": len(counted),
            "fullyLabeledReplicas": sum(labels <= pod.metadata.labels.items() for pod in counted),
            "readyReplicas": sum(map(podstate.is_ready, counted)),
            "availableReplicas": available,
            "observedGeneration": one.metadata.generation,
        }
