"""What a Deployment says about itself: counts, availability and progress (pure)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from trimtab.cluster.resource import Json
from trimtab.lab.workloads.kinds import PodSet, SetCondition
from trimtab.lab.workloads.rollout import limits_of
from trimtab.lab.workloads.statuses import condition
from trimtab.model.times import format_time


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
