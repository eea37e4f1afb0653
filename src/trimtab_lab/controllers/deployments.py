"""The Deployment controller: one ReplicaSet per pod template, replaced step by step.

The next sizes of the ReplicaSets (surge, unavailability and proportions) are computed without I/O.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trimtab.cluster import errors
from trimtab.cluster.resource import Json
from trimtab.model.json import wire
from trimtab.model.times import ZERO_TIME, format_time
from trimtab_lab.controllers.controller import Controller
from trimtab_lab.controllers.kinds import (
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    LabWorkload,
    UpdateStrategy,
    WorkloadCondition,
    owner_reference,
    scaled_value,
)
from trimtab_lab.controllers.objects import Key
from trimtab_lab.controllers.pods import (
    POD_TEMPLATE_HASH_LABEL,
    condition,
    is_active,
    is_same_template,
    next_available_in,
    template_hash,
)
from trimtab_lab.storage.store import WatchCacheEvent


@dataclass(frozen=True, slots=True)
class ReplicaSetSize:
    """The name of a ReplicaSet, its desired replicas and its available ones."""

    name: str
    desired: int
    available: int


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """How many pods a rollout may have above and below the desired replicas."""

    max_surge: int
    max_unavailable: int


def rollout_limits(strategy: UpdateStrategy, replicas: int) -> RolloutLimits:
    """Resolve percentages. Surge rounds up, unavailability down, and they are never both 0."""
    if strategy.type == "Recreate":
        return RolloutLimits(0, 0)
    rolling = strategy.rolling_update
    surge = scaled_value(rolling.max_surge, replicas, rounds_up=True)
    unavailable = min(scaled_value(rolling.max_unavailable, replicas, rounds_up=False), replicas)
    return RolloutLimits(surge, unavailable or int(surge == 0))


def scale_up_new(
    new: ReplicaSetSize, old: Sequence[ReplicaSetSize], replicas: int, limits: RolloutLimits
) -> int:
    """Return the next size of the new ReplicaSet, as far up as the surge allows."""
    if new.desired >= replicas:
        return replicas
    total = new.desired + sum(size.desired for size in old)
    allowed = replicas + limits.max_surge - total
    return new.desired + max(min(allowed, replicas - new.desired), 0)


def scale_down_old(
    new: ReplicaSetSize, old: Sequence[ReplicaSetSize], replicas: int, limits: RolloutLimits
) -> dict[str, int]:
    """Return the next sizes of the old ReplicaSets, which come oldest first.

    Unavailable pods go first, then as many available ones as may be missing.
    """
    sizes = {size.name: size.desired for size in old}
    if not any(sizes.values()):
        return sizes
    min_available = replicas - limits.max_unavailable
    total = new.desired + sum(sizes.values())
    budget = total - min_available - (new.desired - new.available)
    if budget <= 0:
        return sizes
    for size in old:
        unavailable = min(size.desired - size.available, budget)
        if unavailable > 0:
            sizes[size.name] -= unavailable
            budget -= unavailable
    spare = new.available + sum(size.available for size in old) - min_available
    for size in old:
        removed = min(sizes[size.name], max(spare, 0))
        sizes[size.name] -= removed
        spare -= removed
    return sizes


def scale_proportionally(
    replica_sets: Sequence[ReplicaSetSize], total: int, former_total: int
) -> dict[str, int]:
    """Spread a changed total over the ReplicaSets in proportion to their sizes.

    `former_total` is the total of their present sizes. The rest of the rounding goes to the largest.
    """
    sizes = {size.name: size.desired for size in replica_sets}
    current = sum(sizes.values())
    missing = total - current
    if not missing or not current:
        return sizes
    ordered = sorted(replica_sets, key=lambda size: size.desired, reverse=missing > 0)
    left = missing
    for size in ordered:
        fair = round(size.desired * total / (former_total or current)) - size.desired
        step = min(max(fair, 0), left) if missing > 0 else max(min(fair, 0), left, -size.desired)
        sizes[size.name] += step
        left -= step
    for size in ordered:
        step = left if missing > 0 else max(left, -sizes[size.name])
        sizes[size.name] += step
        left -= step
    return sizes


REVISION = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
#: Annotations of a Deployment that its ReplicaSets do not inherit.
_OWN_ANNOTATIONS = (
    REVISION,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "kubectl.kubernetes.io/last-applied-configuration",
)


class DeploymentController(Controller):
    """Keeps a ReplicaSet for the template of each Deployment and rolls out changes."""

    def on_other(self, storage: str, change: WatchCacheEvent) -> None:
        """Enqueue the Deployment of a deleted pod, for which `Recreate` waits."""
        if storage == "pods" and change.action == "DELETED":
            for uid in change.entry.owners:
                owner = self.objects.store.by_uid(uid)
                for above in owner[1].owners if owner is not None else ():
                    deployment = self.objects.store.by_uid(above)
                    if deployment is not None and deployment[0] == "deployments.apps":
                        self.enqueue((deployment[1].namespace, deployment[1].name))

    async def reconcile(self, key: Key) -> None:
        """Take the next step of a rollout and write the status."""
        deployment = self.objects.get(DEPLOYMENTS, key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return
        replica_sets = sorted(self.objects.owned(REPLICA_SETS, deployment.metadata.uid), key=_age)
        new = _find_new(deployment, replica_sets)
        old = [rs for rs in replica_sets if rs is not new and rs.metadata.deletion_timestamp is None]
        if deployment.spec.paused or _is_scaling(deployment, replica_sets):
            await self._scale(deployment, [*old, new] if new is not None else old)
        else:
            new = await self._ensure_new(deployment, new, old)
            await self._roll_out(deployment, new, old)
        await self._write_status(key)

    async def _scale(self, deployment: LabWorkload, replica_sets: list[LabWorkload]) -> None:
        replicas, limits = _target(deployment)
        active = [rs for rs in replica_sets if rs.spec.replicas > 0]
        former = sum(rs.spec.replicas for rs in active)
        total = replicas + (limits.max_surge if len(active) > 1 and replicas else 0)
        sizes = scale_proportionally([_size(rs) for rs in active], total, former)
        for rs in active:
            await self._resize(deployment, rs, sizes[rs.metadata.name])

    async def _roll_out(self, deployment: LabWorkload, new: LabWorkload, old: list[LabWorkload]) -> None:
        replicas, limits = _target(deployment)
        if deployment.spec.strategy.type == "Recreate":
            for rs in old:
                await self._resize(deployment, rs, 0)
            if not any(self._has_pods(rs) for rs in old):
                await self._resize(deployment, new, replicas)
            return
        # A ReplicaSet that was lowered a moment ago still has its pods, and they count for the surge.
        present = [replace(_size(rs), desired=max(rs.spec.replicas, self._count_active(rs))) for rs in old]
        new = await self._resize(deployment, new, scale_up_new(_size(new), present, replicas, limits))
        sizes = [_size(rs) for rs in old]
        lowered = scale_down_old(_size(new), sizes, replicas, limits)
        for rs in old:
            await self._resize(deployment, rs, lowered[rs.metadata.name])

    def _count_active(self, rs: LabWorkload) -> int:
        return sum(map(is_active, self.objects.owned(PODS, rs.metadata.uid)))

    def _has_pods(self, rs: LabWorkload) -> bool:
        return any(not pod.is_finished for pod in self.objects.owned(PODS, rs.metadata.uid))

    async def _resize(self, deployment: LabWorkload, rs: LabWorkload, size: int) -> LabWorkload:
        annotations = _size_annotations(deployment)
        if rs.spec.replicas == size and (not size or annotations.items() <= rs.metadata.annotations.items()):
            return rs
        patch = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
        return await self.objects.patch(REPLICA_SETS, rs, patch)

    async def _ensure_new(
        self, deployment: LabWorkload, new: LabWorkload | None, old: list[LabWorkload]
    ) -> LabWorkload:
        """Return the ReplicaSet of the current template, created if needed, with the highest revision."""
        revision = str(max(map(_revision, old), default=0) + 1)
        if new is None:
            new = await self._create_replica_set(deployment, old, revision)
        elif _revision(new) < int(revision):
            new = await self.objects.patch(
                REPLICA_SETS, new, {"metadata": {"annotations": {REVISION: revision}}}
            )
        revision = new.metadata.annotations.get(REVISION, revision)
        if deployment.metadata.annotations.get(REVISION) != revision:
            await self.objects.patch(
                DEPLOYMENTS, deployment, {"metadata": {"annotations": {REVISION: revision}}}
            )
        return new

    async def _create_replica_set(
        self, deployment: LabWorkload, old: list[LabWorkload], revision: str
    ) -> LabWorkload:
        replicas, limits = _target(deployment)
        waits = deployment.spec.strategy.type == "Recreate" and any(self._has_pods(rs) for rs in old)
        none = ReplicaSetSize("", 0, 0)
        size = 0 if waits else scale_up_new(none, [_size(rs) for rs in old], replicas, limits)
        body = _new_replica_set(deployment, size, revision)
        try:
            return await self.objects.create(REPLICA_SETS, body, deployment.metadata.namespace)
        except errors.AlreadyExists:
            # Another template has the name. The collision count gives the next attempt another name.
            status = {"collisionCount": deployment.status.collision_count + 1}
            await self.objects.patch(DEPLOYMENTS, deployment, {"status": status}, "status")
            raise

    async def _write_status(self, key: Key) -> None:
        deployment = self.objects.get(DEPLOYMENTS, key)
        if deployment is None:
            return
        now = self.clock.now()
        owned = self.objects.owned(REPLICA_SETS, deployment.metadata.uid)
        replica_sets = [rs for rs in owned if rs.metadata.deletion_timestamp is None]
        new = _find_new(deployment, replica_sets)
        status, is_complete = deployment_status(deployment, new, replica_sets, now)
        await self.objects.write_status(DEPLOYMENTS, deployment, status)
        if is_complete:
            await self._clean_up(deployment, [rs for rs in replica_sets if rs is not new])
        elif not deployment.spec.paused:
            self.queue.add_after(key, float(deployment.spec.progress_deadline_seconds + 1), is_deadline=True)
        pods = [
            pod for rs in replica_sets for pod in self.objects.owned(PODS, rs.metadata.uid) if is_active(pod)
        ]
        wait = next_available_in(pods, deployment.spec.min_ready_seconds, now)
        if wait is not None:
            self.queue.add_after(key, wait)

    async def _clean_up(self, deployment: LabWorkload, old: list[LabWorkload]) -> None:
        """Delete empty ReplicaSets beyond `revisionHistoryLimit`."""
        empty = [rs for rs in sorted(old, key=_revision) if not rs.spec.replicas and not rs.status.replicas]
        for rs in empty[: max(len(empty) - deployment.spec.revision_history_limit, 0)]:
            await self.objects.delete(REPLICA_SETS, rs)


def _find_new(deployment: LabWorkload, replica_sets: Iterable[LabWorkload]) -> LabWorkload | None:
    template = deployment.spec.template
    return next((rs for rs in replica_sets if is_same_template(rs.spec.template, template)), None)


def _is_scaling(deployment: LabWorkload, replica_sets: Iterable[LabWorkload]) -> bool:
    """Return whether the Deployment's replicas changed since its ReplicaSets were sized."""
    desired = str(deployment.spec.replicas)
    return any(
        rs.spec.replicas and rs.metadata.annotations.get(DESIRED_REPLICAS, desired) != desired
        for rs in replica_sets
    )


def _target(deployment: LabWorkload) -> tuple[int, RolloutLimits]:
    replicas = deployment.spec.replicas
    return replicas, rollout_limits(deployment.spec.strategy, replicas)


def _size(rs: LabWorkload) -> ReplicaSetSize:
    return ReplicaSetSize(rs.metadata.name, rs.spec.replicas, rs.status.available_replicas)


def _size_annotations(deployment: LabWorkload) -> dict[str, str]:
    replicas, limits = _target(deployment)
    return {DESIRED_REPLICAS: str(replicas), MAX_REPLICAS: str(replicas + limits.max_surge)}


def _revision(rs: LabWorkload) -> int:
    text = rs.metadata.annotations.get(REVISION, "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _age(rs: LabWorkload) -> tuple[timedelta, str]:
    return ((rs.metadata.creation_timestamp or ZERO_TIME) - ZERO_TIME, rs.metadata.name)


def _new_replica_set(deployment: LabWorkload, replicas: int, revision: str) -> Json:
    spec = deployment.spec
    name_hash = template_hash(spec.template, deployment.status.collision_count)
    meta = dict(spec.template.get("metadata") or {})
    labels = {**(meta.get("labels") or {}), POD_TEMPLATE_HASH_LABEL: name_hash}
    selector = wire.to_builtins(spec.selector) if spec.selector is not None else {}
    match_labels = {**selector.get("matchLabels", {}), POD_TEMPLATE_HASH_LABEL: name_hash}
    inherited = {k: v for k, v in deployment.metadata.annotations.items() if k not in _OWN_ANNOTATIONS}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{deployment.metadata.name}-{name_hash}",
            "labels": labels,
            "annotations": {**inherited, REVISION: revision, **_size_annotations(deployment)},
            "ownerReferences": [owner_reference(DEPLOYMENTS, deployment.metadata)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": spec.min_ready_seconds,
            "selector": {**selector, "matchLabels": match_labels},
            "template": {**spec.template, "metadata": {**meta, "labels": labels}},
        },
    }


def deployment_status(
    deployment: LabWorkload, new: LabWorkload | None, replica_sets: Sequence[LabWorkload], now: datetime
) -> tuple[Json, bool]:
    """Return the status, and whether the rollout is complete."""
    total = sum(rs.status.replicas for rs in replica_sets)
    available = sum(rs.status.available_replicas for rs in replica_sets)
    updated = new.status.replicas if new is not None else 0
    is_complete = updated == deployment.spec.replicas == total == available
    before = deployment.status
    has_progressed = updated > before.updated_replicas or available > before.available_replicas
    status: Json = {
        "replicas": total or None,
        "updatedReplicas": updated or None,
        "readyReplicas": sum(rs.status.ready_replicas for rs in replica_sets) or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(sum(rs.spec.replicas for rs in replica_sets) - available, 0) or None,
        "observedGeneration": deployment.metadata.generation,
        "conditions": [
            _available(deployment, available, now),
            _progressing(deployment, new, now, has_progressed=has_progressed, is_complete=is_complete),
        ],
    }
    return status, is_complete


def _available(deployment: LabWorkload, available: int, now: datetime) -> Json:
    replicas, limits = _target(deployment)
    holds = available >= replicas - limits.max_unavailable
    reason, message = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if holds
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    body = condition(
        deployment.status.conditions, "Available", holds=holds, reason=reason, message=message, now=now
    )
    return body | {"lastUpdateTime": body["lastTransitionTime"]}


def _progressing(
    deployment: LabWorkload,
    new: LabWorkload | None,
    now: datetime,
    *,
    has_progressed: bool,
    is_complete: bool,
) -> Json:
    conditions = deployment.status.conditions
    before = next((former for former in conditions if former.type == "Progressing"), None)
    name = new.metadata.name if new is not None else ""
    if deployment.spec.paused:
        reason, message = "DeploymentPaused", "Deployment is paused"
    elif is_complete:
        reason, message = "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.'
    elif not has_progressed and _is_past_deadline(deployment, before, now):
        reason, message = "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.'
    else:
        reason, message = "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
    holds = reason != "ProgressDeadlineExceeded"
    body = condition(conditions, "Progressing", holds=holds, reason=reason, message=message, now=now)
    updated: datetime | None = now
    if before is not None and (before.reason, before.message) == (reason, message) and not has_progressed:
        updated = _last_update(before)
    return body | {"lastUpdateTime": format_time(updated) if updated is not None else None}


def _is_past_deadline(deployment: LabWorkload, before: WorkloadCondition | None, now: datetime) -> bool:
    if before is None or before.reason in ("NewReplicaSetAvailable", "DeploymentPaused"):
        return False
    if before.reason == "ProgressDeadlineExceeded":
        return True
    since = _last_update(before)
    return since is not None and since + timedelta(seconds=deployment.spec.progress_deadline_seconds) < now


def _last_update(before: WorkloadCondition) -> datetime | None:
    return before.last_update_time or before.last_transition_time
