"""The StatefulSet controller: pods with stable names, created, updated and deleted in order."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trimtab.clock import Clock
from trimtab.cluster.resource import Json
from trimtab_lab.controllers.controller import Controller, Lag
from trimtab_lab.controllers.kinds import (
    PODS,
    STATEFUL_SETS,
    ControllerRevision,
    LabPod,
    LabWorkload,
    owner_reference,
    scaled_value,
)
from trimtab_lab.controllers.objects import Key, Objects
from trimtab_lab.controllers.pods import (
    REVISION_HASH_LABEL,
    count_available,
    is_active,
    is_ready,
    is_terminating,
    new_pod,
    next_available_in,
)
from trimtab_lab.controllers.revisions import RevisionHistory, pod_revision, revision_template

INDEX_LABEL = "apps.kubernetes.io/pod-index"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"


class StatefulSetController(Controller):
    """Keeps the pods of each StatefulSet. The lab has no storage, so it creates no volume claims."""

    def __init__(self, objects: Objects, clock: Clock, lag: Lag) -> None:
        super().__init__(STATEFUL_SETS, objects, clock, lag)
        self._history = RevisionHistory(objects, STATEFUL_SETS)

    async def reconcile(self, key: Key) -> None:
        """Take the next steps of one StatefulSet and write its status."""
        while True:
            stateful_set = self.objects.get(STATEFUL_SETS, key)
            if stateful_set is None or stateful_set.metadata.deletion_timestamp is not None:
                return
            update = await self._history.current(stateful_set)
            current = self._history.find(stateful_set, stateful_set.status.current_revision) or update
            pods = self._pods_by_ordinal(stateful_set)
            changes = next_changes(stateful_set, pods, current.metadata.name, update.metadata.name)
            if not (changes.delete or changes.create):
                break
            await self._apply(stateful_set, changes, current, update)
        await self._write_status(stateful_set, current, update)
        wait = next_available_in(pods.values(), stateful_set.spec.min_ready_seconds, self.clock.now())
        if wait is not None:
            self.queue.add_after(key, wait)

    def _pods_by_ordinal(self, stateful_set: LabWorkload) -> dict[int, LabPod]:
        name = stateful_set.metadata.name
        pods = self.objects.owned(PODS, stateful_set.metadata.uid)
        return {
            ordinal: pod for pod in pods if (ordinal := parse_ordinal(name, pod.metadata.name)) is not None
        }

    async def _apply(
        self,
        stateful_set: LabWorkload,
        changes: "StatefulSetChanges",
        current: ControllerRevision,
        update: ControllerRevision,
    ) -> None:
        """Delete or create one pod. A webhook may take time over each, so the rest is decided anew."""
        for pod in changes.delete[:1]:
            await self.objects.delete(PODS, pod)
            return
        for ordinal, is_updated in changes.create[:1]:
            body = _new_pod(stateful_set, ordinal, update if is_updated else current)
            await self.objects.create(PODS, body, stateful_set.metadata.namespace)

    async def _write_status(
        self, stateful_set: LabWorkload, current: ControllerRevision, update: ControllerRevision
    ) -> None:
        spec = stateful_set.spec
        pods = [pod for pod in self._pods_by_ordinal(stateful_set).values() if is_active(pod)]
        ready = sum(map(is_ready, pods))
        updated = sum(pod_revision(pod) == update.metadata.name for pod in pods)
        is_complete = updated == len(pods) == spec.replicas == ready
        shown = (update if is_complete else current).metadata.name
        status = {
            "replicas": len(pods),
            "readyReplicas": ready or None,
            "availableReplicas": count_available(pods, spec.min_ready_seconds, self.clock.now()),
            "currentReplicas": sum(pod_revision(pod) == shown for pod in pods) or None,
            "updatedReplicas": updated or None,
            "currentRevision": shown,
            "updateRevision": update.metadata.name,
            "observedGeneration": stateful_set.metadata.generation,
            "collisionCount": stateful_set.status.collision_count,
        }
        await self.objects.write_status(STATEFUL_SETS, stateful_set, status)
        if is_complete:
            await self._history.clean_up(stateful_set, {update.metadata.name})


def _new_pod(stateful_set: LabWorkload, ordinal: int, revision: ControllerRevision) -> Json:
    name = f"{stateful_set.metadata.name}-{ordinal}"
    # Upstream labels these pods with the whole name of the revision, unlike those of a DaemonSet.
    labels = {NAME_LABEL: name, INDEX_LABEL: str(ordinal), REVISION_HASH_LABEL: revision.metadata.name}
    owner = owner_reference(STATEFUL_SETS, stateful_set.metadata)
    pod = new_pod(revision_template(revision), owner, name=name, labels=labels)
    pod["spec"] |= {"hostname": name}
    if stateful_set.spec.service_name:
        pod["spec"]["subdomain"] = stateful_set.spec.service_name
    return pod


def parse_ordinal(stateful_set: str, pod: str) -> int | None:
    """Return the ordinal in a pod's name."""
    match = re.fullmatch(rf"{re.escape(stateful_set)}-(\d+)", pod)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class StatefulSetChanges:
    """Ordinals to create, each with whether it gets the updated template, and pods to delete."""

    create: tuple[tuple[int, bool], ...] = ()
    delete: tuple[LabPod, ...] = ()


def next_changes(
    stateful_set: LabWorkload, pods: Mapping[int, LabPod], current: str, update: str
) -> StatefulSetChanges:
    """Return the next step: create in order, then scale down from the end, then update from the end.

    `OrderedReady` takes one step at a time and waits for each pod. `Parallel` scales all pods at once.
    """
    start = stateful_set.spec.ordinals.start
    desired = range(start, start + stateful_set.spec.replicas)
    changes, is_waiting = _scale_up(stateful_set, pods, desired, is_updated=current == update)
    if changes.create or changes.delete or is_waiting:
        return changes
    changes, is_waiting = _scale_down(stateful_set, pods, desired)
    if changes.delete or is_waiting:
        return changes
    return _rolling_update(stateful_set, pods, desired, update)


def _is_ordered(stateful_set: LabWorkload) -> bool:
    return stateful_set.spec.pod_management_policy == "OrderedReady"


def _scale_up(
    stateful_set: LabWorkload, pods: Mapping[int, LabPod], desired: Sequence[int], *, is_updated: bool
) -> tuple[StatefulSetChanges, bool]:
    create: list[tuple[int, bool]] = []
    delete: list[LabPod] = []
    is_ordered = _is_ordered(stateful_set)
    # Below the partition a missing pod gets the current template while an update is under way.
    if stateful_set.spec.update_strategy.type == "OnDelete":
        is_updated = True
    for ordinal in desired:
        pod = pods.get(ordinal)
        if pod is None:
            create.append((ordinal, is_updated or ordinal >= _first_updated(stateful_set)))
        elif pod.is_finished and not is_terminating(pod):
            delete.append(pod)  # it is created again under the same name
        elif not is_ordered or _is_healthy(pod):
            continue
        if is_ordered:
            return StatefulSetChanges(tuple(create), tuple(delete)), True
    return StatefulSetChanges(tuple(create), tuple(delete)), False


def _first_updated(stateful_set: LabWorkload) -> int:
    spec = stateful_set.spec
    return spec.ordinals.start + spec.update_strategy.rolling_update.partition


def _scale_down(
    stateful_set: LabWorkload, pods: Mapping[int, LabPod], desired: Sequence[int]
) -> tuple[StatefulSetChanges, bool]:
    surplus = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in desired]
    if not _is_ordered(stateful_set):
        return StatefulSetChanges(delete=tuple(pod for pod in surplus if not is_terminating(pod))), False
    if surplus and is_terminating(surplus[0]):
        return StatefulSetChanges(), True
    return StatefulSetChanges(delete=tuple(surplus[:1])), bool(surplus)


def _rolling_update(
    stateful_set: LabWorkload, pods: Mapping[int, LabPod], desired: Sequence[int], update: str
) -> StatefulSetChanges:
    strategy = stateful_set.spec.update_strategy
    if strategy.type == "OnDelete":
        return StatefulSetChanges()
    limit = strategy.rolling_update.max_unavailable
    max_unavailable = max(scaled_value(limit, stateful_set.spec.replicas, rounds_up=True), 1)
    unhealthy = sum(not _is_healthy(pods[ordinal]) for ordinal in desired if ordinal in pods)
    delete: list[LabPod] = []
    for ordinal in reversed(desired):
        pod = pods.get(ordinal)
        if ordinal < _first_updated(stateful_set) or pod is None:
            break
        if pod_revision(pod) != update and not is_terminating(pod):
            # An unhealthy pod is unavailable already, so it may be replaced beyond the limit.
            if unhealthy + len(delete) >= max_unavailable and _is_healthy(pod):
                break
            delete.append(pod)
        if unhealthy + len(delete) >= max_unavailable and not _is_healthy(pod):
            break
    return StatefulSetChanges(delete=tuple(delete))


def _is_healthy(pod: LabPod) -> bool:
    return pod.status.phase == "Running" and is_ready(pod) and not is_terminating(pod)
