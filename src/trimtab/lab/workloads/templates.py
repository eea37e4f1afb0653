"""From a workload's template to a pod, and the short hash that names a template."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.cluster.resource import Json

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
