"""What controllers ask of a pod: is it ready, since when, does it count, who goes first."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base.kinds import RunPod
from trimtab.lab.controllers.base.write_through_cache import WriteThroughCache, controller_uid
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.times import ZERO_TIME

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_ready(pod: RunPod) -> bool:
    """Tell whether the pod is ready to serve."""
    condition = pod.status.condition("Ready")
    return condition is not None and condition.status == "True"


def is_going(pod: RunPod) -> bool:
    """Tell whether the pod is being deleted."""
    return pod.metadata.deletion_timestamp is not None


def is_active(pod: RunPod) -> bool:
    """Tell whether the pod counts as a replica: neither ended nor being deleted."""
    return not pod.is_finished and not is_going(pod)


def ready_since(pod: RunPod) -> datetime:
    """Return when the pod became ready; the zero time if it does not say."""
    condition = pod.status.condition("Ready")
    moment = condition.last_transition_time if condition is not None else None
    return moment or ZERO_TIME


def until_available(pod: RunPod, min_ready_seconds: int, now: datetime) -> float | None:
    """Return the seconds until the pod counts as available: 0 if it does, None while it is not ready."""
    if not is_ready(pod):
        return None
    left = ready_since(pod) + timedelta(seconds=min_ready_seconds) - now
    return max(left.total_seconds(), 0.0) if min_ready_seconds else 0.0


def count_available(pods: Iterable[RunPod], min_ready_seconds: int, now: datetime) -> int:
    """Count the pods that have been ready for long enough."""
    return sum(until_available(pod, min_ready_seconds, now) == 0.0 for pod in pods)


def next_available(pods: Iterable[RunPod], min_ready_seconds: int, now: datetime) -> float | None:
    """Return the seconds until one more pod becomes available by itself."""
    waits = [wait for pod in pods if (wait := until_available(pod, min_ready_seconds, now))]
    return min(waits, default=None)


def in_deletion_order(pods: Sequence[RunPod], related: Iterable[RunPod] = ()) -> list[RunPod]:
    """Order pods by who goes first: those whose loss is felt least.

    Unplaced before placed, pending before running, unready before ready, cheap before dear, the crowded node before
    the others, the shorter ready before the longer, the restarted before the steady, the new before the old.
    """
    crowd: dict[str, int] = {}
    for pod in related or pods:
        if is_active(pod) and pod.spec.node_name:
            crowd[pod.spec.node_name] = crowd.get(pod.spec.node_name, 0) + 1
    return sorted(pods, key=lambda pod: _rank(pod, crowd.get(pod.spec.node_name, 0)))


def _rank(pod: RunPod, crowd: int) -> tuple[bool, int, bool, int, int, float, int, float, str]:
    created = pod.metadata.creation_timestamp or ZERO_TIME
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        is_ready(pod),
        _cost(pod),
        -crowd,
        -(ready_since(pod) - ZERO_TIME).total_seconds(),
        -restarts,
        -(created - ZERO_TIME).total_seconds(),
        pod.metadata.uid,
    )


def _cost(pod: RunPod) -> int:
    """Return the pod's deletion cost; one that is no number counts as none, as upstream decided."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


async def claim_pods(
    pods: WriteThroughCache[RunPod], namespace: str, owner: Json, selector: Selector
) -> list[RunPod]:
    """Return the owner's pods, after adopting matching orphans and releasing what no longer matches."""
    claimed: list[RunPod] = []
    for pod in pods.owned(owner["uid"]):
        if selector.matches(pod.metadata.labels):
            claimed.append(pod)
        elif pod.metadata.deletion_timestamp is None:
            kept = [one for one in pod.metadata.owner_references if one.uid != owner["uid"]]
            await pods.patch(pod, {"metadata": {"ownerReferences": wire.to_builtins(kept) or None}})
    for pod in pods.orphans(namespace):
        is_active = pod.metadata.deletion_timestamp is None and not pod.is_finished
        if is_active and selector.matches(pod.metadata.labels):
            others = wire.to_builtins(pod.metadata.owner_references)
            claimed.append(await pods.patch(pod, {"metadata": {"ownerReferences": [*others, owner]}}))
    return claimed


def may_adopt(pod: RunPod) -> bool:
    """Tell whether some controller could want the pod: nobody controls it."""
    return not controller_uid(pod)


HASH_LABEL = "pod-template-hash"
REVISION_HASH_LABEL = "controller-revision-hash"
#: The letters of generated names: no vowels and no look-alikes, so that no word appears by chance.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH = 10


def new_pod(
    template: Mapping[str, Any], owner: Json, *, name: str = "", labels: Mapping[str, str] | None = None
) -> Json:
    """Return the pod that a template describes, under `name` or one that the server generates."""
    meta: Json = msgspec.json.decode(msgspec.json.encode(template.get("metadata") or {}))
    spec: Json = msgspec.json.decode(msgspec.json.encode(template.get("spec") or {}))
    made: Json = {"ownerReferences": [owner]}
    made |= {"name": name} if name else {"generateName": f"{owner['name']}-"}
    for field in ("annotations", "finalizers"):
        if meta.get(field):
            made[field] = meta[field]
    merged = {**(meta.get("labels") or {}), **(labels or {})}
    if merged:
        made["labels"] = merged
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec}


def template_hash(template: Mapping[str, Any], collisions: int = 0) -> str:
    """Return a short name for a template; `collisions` gives another one when the first is taken."""
    text = msgspec.json.encode([without_hash(template), collisions], order="deterministic")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
    letters: list[str] = []
    for _ in range(_HASH_LENGTH):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def without_hash(template: Mapping[str, Any]) -> Json:
    """Return the template without the label that a Deployment adds for its ReplicaSets."""
    meta = dict(template.get("metadata") or {})
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != HASH_LABEL}
    meta.pop("creationTimestamp", None)
    return {**template, "metadata": {**meta, "labels": labels}}


def same_template(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two templates make the same pods."""
    return without_hash(one) == without_hash(other)
