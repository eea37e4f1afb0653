"""Pods as controllers handle them: readiness, deletion order, adoption, and creation from templates."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from trimtab.cluster.resource import Json
from trimtab.model.core.meta import Condition
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.times import ZERO_TIME, format_time
from trimtab_lab.controllers.kinds import PODS, LabPod
from trimtab_lab.controllers.objects import Objects

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
POD_TEMPLATE_HASH_LABEL = "pod-template-hash"
REVISION_HASH_LABEL = "controller-revision-hash"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
#: Letters of generated names, as upstream's: no vowels and no look-alikes, so that no word appears by chance.
_SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH = 10


def is_ready(pod: LabPod) -> bool:
    """Return whether the pod's condition `Ready` is true."""
    condition = pod.status.condition("Ready")
    return condition is not None and condition.status == "True"


def is_terminating(pod: LabPod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def is_active(pod: LabPod) -> bool:
    """Return whether the pod counts as a replica: neither finished nor terminating."""
    return not pod.is_finished and not is_terminating(pod)


def seconds_until_available(pod: LabPod, min_ready_seconds: int, now: datetime) -> float | None:
    if not is_ready(pod):
        return None
    left = _ready_since(pod) + timedelta(seconds=min_ready_seconds) - now
    return max(left.total_seconds(), 0.0) if min_ready_seconds else 0.0


def count_available(pods: Iterable[LabPod], min_ready_seconds: int, now: datetime) -> int:
    return sum(seconds_until_available(pod, min_ready_seconds, now) == 0.0 for pod in pods)


def next_available_in(pods: Iterable[LabPod], min_ready_seconds: int, now: datetime) -> float | None:
    """Return the seconds until the next ready pod becomes available, or None."""
    waits = [wait for pod in pods if (wait := seconds_until_available(pod, min_ready_seconds, now))]
    return min(waits, default=None)


def in_deletion_order(pods: Sequence[LabPod], related: Iterable[LabPod] = ()) -> list[LabPod]:
    """Sort pods as a ReplicaSet deletes them, the first to delete first (upstream's ActivePodsWithRanks).

    Unscheduled before scheduled, pending before running, unready before ready, low before high deletion cost, pods on
    nodes with many of the `related` pods first, then the shortest time ready, the most restarts, the newest.
    """
    per_node: dict[str, int] = {}
    for pod in related or pods:
        if is_active(pod) and pod.spec.node_name:
            per_node[pod.spec.node_name] = per_node.get(pod.spec.node_name, 0) + 1
    return sorted(pods, key=lambda pod: _deletion_rank(pod, per_node.get(pod.spec.node_name, 0)))


def _ready_since(pod: LabPod) -> datetime:
    condition = pod.status.condition("Ready")
    since = condition.last_transition_time if condition is not None else None
    return since or ZERO_TIME


def _deletion_rank(pod: LabPod, on_node: int) -> tuple[bool, int, bool, int, int, float, int, float, str]:
    created = pod.metadata.creation_timestamp or ZERO_TIME
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    return (
        bool(pod.spec.node_name),
        _PHASE_ORDER.get(pod.status.phase, 0),
        is_ready(pod),
        _deletion_cost(pod),
        -on_node,
        -(_ready_since(pod) - ZERO_TIME).total_seconds(),
        -restarts,
        -(created - ZERO_TIME).total_seconds(),
        pod.metadata.uid,
    )


def _deletion_cost(pod: LabPod) -> int:
    try:
        return int(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0  # as upstream does


async def claim_pods(objects: Objects, owner: Json, namespace: str, selector: Selector) -> None:
    """Adopt matching orphans, and release pods that no longer match."""
    for pod in objects.owned(PODS, owner["uid"]):
        if not selector.matches(pod.metadata.labels) and not is_terminating(pod):
            kept = [ref for ref in pod.metadata.owner_references if ref.uid != owner["uid"]]
            await objects.patch(PODS, pod, {"metadata": {"ownerReferences": wire.to_builtins(kept) or None}})
    for pod in objects.orphans(PODS, namespace):
        if is_active(pod) and selector.matches(pod.metadata.labels):
            others = wire.to_builtins(pod.metadata.owner_references)
            await objects.patch(PODS, pod, {"metadata": {"ownerReferences": [*others, owner]}})


def new_pod(
    template: Mapping[str, Any], owner: Json, *, name: str = "", labels: Mapping[str, str] | None = None
) -> Json:
    """Return the pod of a template, under `name` or a name that the server generates."""
    meta: Json = msgspec.json.decode(msgspec.json.encode(template.get("metadata") or {}))
    spec: Json = msgspec.json.decode(msgspec.json.encode(template.get("spec") or {}))
    pod_meta: Json = {"ownerReferences": [owner]}
    pod_meta |= {"name": name} if name else {"generateName": f"{owner['name']}-"}
    for field in ("annotations", "finalizers"):
        if meta.get(field):
            pod_meta[field] = meta[field]
    merged = {**(meta.get("labels") or {}), **(labels or {})}
    if merged:
        pod_meta["labels"] = merged
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_meta, "spec": spec}


def template_hash(template: Mapping[str, Any], collisions: int = 0) -> str:
    """Return the hash of a template for use in names. Each number of collisions gives another."""
    text = msgspec.json.encode([_without_hash_label(template), collisions], order="deterministic")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
    letters: list[str] = []
    for _ in range(_HASH_LENGTH):
        number, letter = divmod(number, len(_SAFE_LETTERS))
        letters.append(_SAFE_LETTERS[letter])
    return "".join(letters)


def is_same_template(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Return whether two templates create the same pods."""
    return _without_hash_label(left) == _without_hash_label(right)


def _without_hash_label(template: Mapping[str, Any]) -> Json:
    """Return the template without the label that a Deployment adds for its ReplicaSets."""
    meta = dict(template.get("metadata") or {})
    labels = {
        name: value for name, value in (meta.get("labels") or {}).items() if name != POD_TEMPLATE_HASH_LABEL
    }
    meta.pop("creationTimestamp", None)
    return {**template, "metadata": {**meta, "labels": labels}}


def condition(
    before: Iterable[Condition], kind: str, *, holds: bool, reason: str = "", message: str = "", now: datetime
) -> Json:
    """Return a condition. Its transition time changes only with its status."""
    status = "True" if holds else "False"
    since = next(
        (former.last_transition_time for former in before if (former.type, former.status) == (kind, status)),
        None,
    )
    body: Json = {"type": kind, "status": status, "lastTransitionTime": format_time(since or now)}
    if reason:
        body["reason"] = reason
    if message:
        body["message"] = message
    return body
