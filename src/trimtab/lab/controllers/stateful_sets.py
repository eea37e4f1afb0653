"""StatefulSets: pods with lasting names, made, renewed and deleted in order."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trimtab.clock import Clock
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base import pods as podstate
from trimtab.lab.controllers.base.kinds import (
    STATEFUL_SETS,
    ControllerRevision,
    PodSet,
    RunPod,
    owner_reference,
)
from trimtab.lab.controllers.base.pods import REVISION_HASH_LABEL, is_going, is_ready, new_pod
from trimtab.lab.controllers.base.status_writer import StatusPatcher
from trimtab.lab.controllers.base.work_queue import WorkQueue
from trimtab.lab.controllers.base.write_through_cache import Key, WriteThroughCache
from trimtab.lab.controllers.revisions import Revisions, template_of
from trimtab.lab.controllers.rollout import resolve

INDEX_LABEL = "apps.kubernetes.io/pod-index"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"


@dataclass(frozen=True, slots=True)
class Moves:
    """Ordinals to create, with whether they get the new template, and pods to delete."""

    create: tuple[tuple[int, bool], ...] = ()
    delete: tuple[RunPod, ...] = ()


def ordinal_of(name: str, pod: RunPod) -> int | None:
    """Return the ordinal in a pod's name."""
    match = re.fullmatch(rf"{re.escape(name)}-(\d+)", pod.metadata.name)
    return int(match[1]) if match else None


def next_moves(one: PodSet, pods: Mapping[int, RunPod], current: str, update: str) -> Moves:
    """Return the next step: fill up in order, then shrink from the end, then renew from the end.

    OrderedReady takes one step at a time and waits for each pod; Parallel fills up and shrinks all at once.
    """
    wanted = range(one.spec.ordinals.start, one.spec.ordinals.start + one.spec.replicas)
    filling, is_waiting = _fill(one, pods, wanted, current, update)
    if filling.create or filling.delete or is_waiting:
        return filling
    shrinking, is_waiting = _shrink(one, pods, wanted)
    if shrinking.delete or is_waiting:
        return shrinking
    return _renew(one, pods, wanted, update)


def _fill(
    one: PodSet, pods: Mapping[int, RunPod], wanted: Sequence[int], current: str, update: str
) -> tuple[Moves, bool]:
    create: list[tuple[int, bool]] = []
    delete: list[RunPod] = []
    is_ordered = one.spec.pod_management_policy == "OrderedReady"
    for ordinal in wanted:
        pod = pods.get(ordinal)
        if pod is None:
            create.append((ordinal, _is_new(one, ordinal, current, update)))
        elif pod.is_finished and not is_going(pod):
            delete.append(pod)  # it is made again under the same name once it is gone
        elif not is_ordered or _is_healthy(pod):
            continue
        if is_ordered:
            return Moves(tuple(create), tuple(delete)), True
    return Moves(tuple(create), tuple(delete)), False


def _is_new(one: PodSet, ordinal: int, current: str, update: str) -> bool:
    """Tell whether a missing pod gets the new template: not below the partition, not before its turn."""
    if current == update or one.spec.update_strategy.type == "OnDelete":
        return True
    return ordinal >= one.spec.ordinals.start + one.spec.update_strategy.rolling_update.partition


def _shrink(one: PodSet, pods: Mapping[int, RunPod], wanted: Sequence[int]) -> tuple[Moves, bool]:
    surplus = sorted((ordinal for ordinal in pods if ordinal not in wanted), reverse=True)
    if one.spec.pod_management_policy != "OrderedReady":
        return Moves(delete=tuple(pods[o] for o in surplus if not is_going(pods[o]))), False
    for ordinal in surplus:
        if is_going(pods[ordinal]):
            return Moves(), True  # the next one goes when this one is gone
        return Moves(delete=(pods[ordinal],)), True
    return Moves(), False


def _renew(one: PodSet, pods: Mapping[int, RunPod], wanted: Sequence[int], update: str) -> Moves:
    strategy = one.spec.update_strategy
    if strategy.type == "OnDelete":
        return Moves()
    most = _most_unavailable(one)
    unhealthy = sum(not _is_healthy(pods[ordinal]) for ordinal in wanted if ordinal in pods)
    delete: list[RunPod] = []
    for ordinal in reversed(wanted):
        pod = pods.get(ordinal)
        if ordinal < one.spec.ordinals.start + strategy.rolling_update.partition or pod is None:
            break
        if revision_of(pod) != update and not is_going(pod):
            # A broken pod may go beyond the limit only as the one being renewed: it is already unavailable.
            if unhealthy + len(delete) >= most and _is_healthy(pod):
                break
            delete.append(pod)
        if unhealthy + len(delete) >= most and not _is_healthy(pod):
            break
    return Moves(delete=tuple(delete))


def _most_unavailable(one: PodSet) -> int:
    value = one.spec.update_strategy.rolling_update.max_unavailable
    return max(resolve(value, one.spec.replicas, rounds_up=True), 1)


def revision_of(pod: RunPod) -> str:
    """Return the name part of the revision that a pod was made from."""
    return pod.metadata.labels.get(REVISION_HASH_LABEL, "")


def _is_healthy(pod: RunPod) -> bool:
    return pod.status.phase == "Running" and is_ready(pod) and not is_going(pod)


class StatefulSetController:
    """Keeps the pods of each StatefulSet; claims for volumes are not made, the lab has no storage."""

    def __init__(
        self,
        clock: Clock,
        sets: WriteThroughCache[PodSet],
        revisions: WriteThroughCache[ControllerRevision],
        pods: WriteThroughCache[RunPod],
    ) -> None:
        self._clock = clock
        self._sets = sets
        self._pods = pods
        self._revisions = Revisions(clock, revisions, STATEFUL_SETS)
        self._statuses = StatusPatcher(sets)
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
