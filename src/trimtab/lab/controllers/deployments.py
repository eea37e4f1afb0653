"""Deployments: one ReplicaSet per template, replaced step by step."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.subscriptions import Delta
from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base import pods as podstate
from trimtab.lab.controllers.base.kinds import DEPLOYMENTS, PodSet, RunPod, SetCondition, owner_reference
from trimtab.lab.controllers.base.pods import HASH_LABEL, same_template, template_hash
from trimtab.lab.controllers.base.status_writer import StatusPatcher, condition
from trimtab.lab.controllers.base.work_queue import WorkQueue
from trimtab.lab.controllers.base.write_through_cache import Key, WriteThroughCache
from trimtab.lab.controllers.rollout import (
    SetSize,
    SurgeLimits,
    grow_new,
    limits_of,
    share_out,
    shrink_old,
)
from trimtab.model.json import wire
from trimtab.model.times import ZERO_TIME, format_time


def deployment_status(
    one: PodSet, new: PodSet | None, sets: Sequence[PodSet], now: datetime
) -> tuple[Json, bool]:
    """Return the status, and whether the rollout is complete."""
    wanted = one.spec.replicas
    total = sum(s.status.replicas for s in sets)
    available = sum(s.status.available_replicas for s in sets)
    updated = new.status.replicas if new is not None else 0
    is_complete = updated == wanted == total == available
    unavailable = max(sum(s.spec.replicas for s in sets) - available, 0)
    status: Json = {
        "replicas": total or None,
        "updatedReplicas": updated or None,
        "readyReplicas": sum(s.status.ready_replicas for s in sets) or None,
        "availableReplicas": available or None,
        "unavailableReplicas": unavailable or None,
        "observedGeneration": one.metadata.generation,
        "conditions": [
            _available(one, available, now),
            _progressing(
                one,
                new,
                now,
                has_progressed=_has_progressed(one, updated, available),
                is_complete=is_complete,
            ),
        ],
    }
    return status, is_complete


def _has_progressed(one: PodSet, updated: int, available: int) -> bool:
    before = one.status
    return updated > before.updated_replicas or available > before.available_replicas


def _available(one: PodSet, available: int, now: datetime) -> Json:
    least = one.spec.replicas - limits_of(one.spec.strategy, one.spec.replicas).unavailable
    holds = available >= least
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if holds
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    made = condition(one.status.conditions, "Available", holds=holds, reason=reason, message=message, now=now)
    return made | {"lastUpdateTime": made["lastTransitionTime"]}


def _progressing(
    one: PodSet, new: PodSet | None, now: datetime, *, has_progressed: bool, is_complete: bool
) -> Json:
    known = next((c for c in one.status.conditions if c.type == "Progressing"), None)
    name = new.metadata.name if new is not None else ""
    if one.spec.paused:
        reason, message = "DeploymentPaused", "Deployment is paused"
    elif is_complete:
        reason, message = "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.'
    elif not has_progressed and _is_late(one, known, now):
        reason, message = "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.'
    else:
        reason, message = "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
    holds = reason != "ProgressDeadlineExceeded"
    made = condition(
        one.status.conditions, "Progressing", holds=holds, reason=reason, message=message, now=now
    )
    is_same = known is not None and (known.reason, known.message) == (reason, message) and not has_progressed
    return made | {"lastUpdateTime": _updated_at(known) if is_same else format_time(now)}


def _is_late(one: PodSet, known: SetCondition | None, now: datetime) -> bool:
    if known is None or known.reason in ("NewReplicaSetAvailable", "DeploymentPaused"):
        return False
    if known.reason == "ProgressDeadlineExceeded":
        return True
    since = known.last_update_time or known.last_transition_time
    return since is not None and since + timedelta(seconds=one.spec.progress_deadline_seconds) < now


def _updated_at(known: SetCondition | None) -> str | None:
    moment = (known.last_update_time or known.last_transition_time) if known is not None else None
    return format_time(moment) if moment is not None else None


REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
#: Annotations that speak of the Deployment object itself and are not handed down.
_OWN_ANNOTATIONS = (REVISION, DESIRED, MOST, "kubectl.kubernetes.io/last-applied-configuration")


class DeploymentController:
    """Rolls each Deployment out."""

    def __init__(
        self,
        clock: Clock,
        deployments: WriteThroughCache[PodSet],
        sets: WriteThroughCache[PodSet],
        pods: WriteThroughCache[RunPod],
    ) -> None:
        self._clock = clock
        self._deployments = deployments
        self._sets = sets
        self._pods = pods
        self._statuses = StatusPatcher(deployments)
        self.queue = WorkQueue("deployments", clock, self.reconcile)
        deployments.subscribe(self._changed)
        sets.subscribe(self._set_changed)
        pods.subscribe(self._pod_changed)

    def _changed(self, delta: Delta[PodSet]) -> None:
        if delta.new is not None:
            self.queue.add((delta.new.metadata.namespace, delta.new.metadata.name))

    def _set_changed(self, delta: Delta[PodSet]) -> None:
        for one in filter(None, (delta.old, delta.new)):
            for owner in one.metadata.owner_references:
                if owner.controller and owner.kind == "Deployment":
                    self.queue.add((one.metadata.namespace, owner.name))

    def _pod_changed(self, delta: Delta[RunPod]) -> None:
        """Look again when a pod is gone: Recreate waits for that."""
        if delta.new is None and delta.old is not None:
            for owner in delta.old.metadata.owner_references:
                one = self._sets.get(owner.name, delta.old.metadata.namespace)
                if owner.kind == "ReplicaSet" and one is not None:
                    self._set_changed(Delta(delta.change, new=one))

    async def reconcile(self, key: Key) -> None:
        """Take the next step of a rollout and say where it stands."""
        namespace, name = key
        one = self._deployments.get(name, namespace)
        if one is None or one.metadata.deletion_timestamp is not None:
            return
        sets = sorted(self._sets.owned(one.metadata.uid), key=_age)
        new = next((s for s in sets if same_template(s.spec.template, one.spec.template)), None)
        old = [s for s in sets if s is not new and s.metadata.deletion_timestamp is None]
        if self._is_scaling(one, sets) or one.spec.paused:
            await self._scale(one, [*old, new] if new is not None else old)
        else:
            new = await self._ensure_new(one, new, old)
            await self._step(one, new, old)
        await self._write_status(one)

    @staticmethod
    def _is_scaling(one: PodSet, sets: list[PodSet]) -> bool:
        """Tell whether the wanted number changed since the ReplicaSets were sized for it."""
        wanted = str(one.spec.replicas)
        return any(s.spec.replicas and s.metadata.annotations.get(DESIRED, wanted) != wanted for s in sets)

    async def _scale(self, one: PodSet, sets: list[PodSet]) -> None:
        limits = limits_of(one.spec.strategy, one.spec.replicas)
        active = [s for s in sets if s.spec.replicas > 0]
        former = sum(s.spec.replicas for s in active)
        total = one.spec.replicas + (limits.surge if len(active) > 1 and one.spec.replicas else 0)
        sizes = share_out([size_of(s) for s in active], total, former)
        for s in active:
            await self._resize(one, s, sizes[s.metadata.name], limits)

    async def _step(self, one: PodSet, new: PodSet, old: list[PodSet]) -> None:
        replicas, limits = one.spec.replicas, limits_of(one.spec.strategy, one.spec.replicas)
        sizes = [size_of(s) for s in old]
        if one.spec.strategy.type == "Recreate":
            for s in old:
                await self._resize(one, s, 0, limits)
            if not any(self._has_pods(s) for s in old):
                await self._resize(one, new, replicas, limits)
            return
        new = await self._resize(one, new, grow_new(size_of(new), sizes, replicas, limits), limits)
        for name, size in shrink_old(size_of(new), sizes, replicas, limits).items():
            await self._resize(one, next(s for s in old if s.metadata.name == name), size, limits)

    def _has_pods(self, s: PodSet) -> bool:
        return any(not pod.is_finished for pod in self._pods.owned(s.metadata.uid))

    async def _resize(self, one: PodSet, s: PodSet, size: int, limits: SurgeLimits) -> PodSet:
        marks = {DESIRED: str(one.spec.replicas), MOST: str(one.spec.replicas + limits.surge)}
        if s.spec.replicas == size and (not size or marks.items() <= s.metadata.annotations.items()):
            return s
        return await self._sets.patch(s, {"metadata": {"annotations": marks}, "spec": {"replicas": size}})

    async def _ensure_new(self, one: PodSet, new: PodSet | None, old: list[PodSet]) -> PodSet:
        """Return the ReplicaSet of the current template, with the highest revision; make it if need be."""
        revision = str(max((_revision(s) for s in old), default=0) + 1)
        if new is None:
            new = await self._create_set(one, old, revision)
        elif _revision(new) < int(revision):
            new = await self._sets.patch(new, {"metadata": {"annotations": {REVISION: revision}}})
        revision = new.metadata.annotations.get(REVISION, revision)
        if one.metadata.annotations.get(REVISION) != revision:
            await self._deployments.patch(one, {"metadata": {"annotations": {REVISION: revision}}})
        return new

    async def _create_set(self, one: PodSet, old: list[PodSet], revision: str) -> PodSet:
        name_hash = template_hash(one.spec.template, one.status.collision_count)
        limits = limits_of(one.spec.strategy, one.spec.replicas)
        first = SetSize("", 0, 0, 0)
        waits = one.spec.strategy.type == "Recreate" and any(self._has_pods(s) for s in old)
        size = 0 if waits else grow_new(first, [size_of(s) for s in old], one.spec.replicas, limits)
        body = _new_set(one, name_hash, size)
        body["metadata"]["annotations"] |= {
            REVISION: revision,
            DESIRED: str(one.spec.replicas),
            MOST: str(one.spec.replicas + limits.surge),
        }
        try:
            return await self._sets.create(body, one.metadata.namespace)
        except errors.AlreadyExists:
            # The name is taken by another template: count the collision, so that the next name differs.
            status = {"collisionCount": one.status.collision_count + 1}
            await self._deployments.patch(one, {"status": status}, subresource="status")
            raise

    async def _write_status(self, one: PodSet) -> None:
        now = self._clock.now()
        one = self._deployments.get(one.metadata.name, one.metadata.namespace) or one
        sets = [s for s in self._sets.owned(one.metadata.uid) if s.metadata.deletion_timestamp is None]
        new = next((s for s in sets if same_template(s.spec.template, one.spec.template)), None)
        status, is_complete = deployment_status(one, new, sets, now)
        await self._statuses.write(one, status)
        key = (one.metadata.namespace, one.metadata.name)
        if is_complete:
            await self._clean_up(one, [s for s in sets if s is not new])
        elif not one.spec.paused:
            self.queue.add_after(key, float(one.spec.progress_deadline_seconds + 1), is_deadline=True)
        pods = [pod for s in sets for pod in self._pods.owned(s.metadata.uid) if podstate.is_active(pod)]
        wait = podstate.next_available(pods, one.spec.min_ready_seconds, now)
        if wait is not None:
            self.queue.add_after(key, wait)

    async def _clean_up(self, one: PodSet, old: list[PodSet]) -> None:
        """Delete empty ReplicaSets beyond the history that is to be kept."""
        empty = [s for s in sorted(old, key=_revision) if not s.spec.replicas and not s.status.replicas]
        for s in empty[: max(len(empty) - one.spec.revision_history_limit, 0)]:
            await self._sets.delete(s, self._clock.now())


def size_of(s: PodSet) -> SetSize:
    """Return what a rollout needs to know of a ReplicaSet."""
    return SetSize(s.metadata.name, s.spec.replicas, s.status.replicas, s.status.available_replicas)


def _revision(s: PodSet) -> int:
    text = s.metadata.annotations.get(REVISION, "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _age(s: PodSet) -> tuple[timedelta, str]:
    return ((s.metadata.creation_timestamp or ZERO_TIME) - ZERO_TIME, s.metadata.name)


def _new_set(one: PodSet, name_hash: str, replicas: int) -> Json:
    template = dict(one.spec.template)
    meta = dict(template.get("metadata") or {})
    labels = {**(meta.get("labels") or {}), HASH_LABEL: name_hash}
    selector = wire.to_builtins(one.spec.selector) if one.spec.selector is not None else {}
    selector = {**selector, "matchLabels": {**selector.get("matchLabels", {}), HASH_LABEL: name_hash}}
    annotations = {k: v for k, v in one.metadata.annotations.items() if k not in _OWN_ANNOTATIONS}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{one.metadata.name}-{name_hash}",
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(DEPLOYMENTS, one.metadata)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": one.spec.min_ready_seconds,
            "selector": selector,
            "template": {**template, "metadata": {**meta, "labels": labels}},
        },
    }
