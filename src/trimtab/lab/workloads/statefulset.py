"""StatefulSets: pods with lasting names, made, renewed and deleted in order."""

from trimtab.clock import Clock
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Json
from trimtab.lab.workloads import podstate
from trimtab.lab.workloads.kinds import STATEFUL_SETS, ControllerRevision, PodSet, RunPod, owner_reference
from trimtab.lab.workloads.mirror import Key, Mirror
from trimtab.lab.workloads.ordinals import (
    INDEX_LABEL,
    NAME_LABEL,
    Moves,
    next_moves,
    ordinal_of,
    revision_of,
)
from trimtab.lab.workloads.queue import WorkQueue
from trimtab.lab.workloads.revisions import Revisions, template_of
from trimtab.lab.workloads.statuses import StatusWriter
from trimtab.lab.workloads.templates import REVISION_HASH_LABEL, new_pod


class StatefulSetController:
    """Keeps the pods of each StatefulSet; claims for volumes are not made, the lab has no storage."""

    def __init__(
        self,
        clock: Clock,
        sets: Mirror[PodSet],
        revisions: Mirror[ControllerRevision],
        pods: Mirror[RunPod],
    ) -> None:
        self._clock = clock
        self._sets = sets
        self._pods = pods
        self._revisions = Revisions(clock, revisions, STATEFUL_SETS)
        self._statuses = StatusWriter(sets)
        self.queue = WorkQueue("statefulsets", clock, self.reconcile)
        sets.subscribe(self._changed)
        pods.subscribe(self._pod_changed)

    def _changed(self, delta: Delta[PodSet]) -> None:
        if delta.new is not None:
            self.queue.add((delta.new.metadata.namespace, delta.new.metadata.name))

    def _pod_changed(self, delta: Delta[RunPod]) -> None:
        for pod in filter(None, (delta.old, delta.new)):
            for owner in pod.metadata.owner_references:
                if owner.controller and owner.kind == "StatefulSet":
                    self.queue.add((pod.metadata.namespace, owner.name))

    async def reconcile(self, key: Key) -> None:
        """Take the next step and say how many pods there are."""
        namespace, name = key
        one = self._sets.get(name, namespace)
        if one is None or one.metadata.deletion_timestamp is not None:
            return
        update = await self._revisions.current(one)
        current = self._revisions.find(one, one.status.current_revision) or update
        pods = self._pods_of(one)
        moves = next_moves(one, pods, _hash(current), _hash(update))
        await self._move(one, moves, current, update)
        await self._write_status(one, current, update)
        wait = podstate.next_available(pods.values(), one.spec.min_ready_seconds, self._clock.now())
        if wait is not None:
            self.queue.add_after(key, wait)

    def _pods_of(self, one: PodSet) -> dict[int, RunPod]:
        found: dict[int, RunPod] = {}
        for pod in self._pods.owned(one.metadata.uid):
            ordinal = ordinal_of(one.metadata.name, pod)
            if ordinal is not None:
                found[ordinal] = pod
        return found

    async def _move(
        self, one: PodSet, moves: Moves, current: ControllerRevision, update: ControllerRevision
    ) -> None:
        for pod in moves.delete:
            await self._pods.delete(pod, self._clock.now())
        for ordinal, is_new in moves.create:
            await self._pods.create(
                _new_member(one, ordinal, update if is_new else current), one.metadata.namespace
            )
        if moves.create and one.spec.pod_management_policy != "OrderedReady":
            self.queue.add((one.metadata.namespace, one.metadata.name))

    async def _write_status(
        self, one: PodSet, current: ControllerRevision, update: ControllerRevision
    ) -> None:
        pods = [pod for pod in self._pods_of(one).values() if podstate.is_active(pod)]
        ready = sum(map(podstate.is_ready, pods))
        updated = sum(revision_of(pod) == _hash(update) for pod in pods)
        is_complete = updated == len(pods) == one.spec.replicas == ready
        shown = update if is_complete else current
        status = {
            "replicas": len(pods),
            "readyReplicas": ready or None,
            "availableReplicas": podstate.count_available(
                pods, one.spec.min_ready_seconds, self._clock.now()
            ),
            "currentReplicas": sum(revision_of(pod) == _hash(shown) for pod in pods) or None,
            "updatedReplicas": updated or None,
            "currentRevision": shown.metadata.name,
            "updateRevision": update.metadata.name,
            "observedGeneration": one.metadata.generation,
            "collisionCount": one.status.collision_count,
        }
        await self._statuses.write(one, status)
        if is_complete:
            await self._revisions.clean_up(one, {update.metadata.name})


def _new_member(one: PodSet, ordinal: int, revision: ControllerRevision) -> Json:
    name = f"{one.metadata.name}-{ordinal}"
    labels = {NAME_LABEL: name, INDEX_LABEL: str(ordinal), REVISION_HASH_LABEL: _hash(revision)}
    pod = new_pod(
        template_of(revision), owner_reference(STATEFUL_SETS, one.metadata), name=name, labels=labels
    )
    pod["spec"] |= {"hostname": name}
    if one.spec.service_name:
        pod["spec"]["subdomain"] = one.spec.service_name
    return pod


def _hash(revision: ControllerRevision) -> str:
    """Return what pods are labelled with; for StatefulSets that is the revision's whole name, as upstream."""
    return revision.metadata.name
