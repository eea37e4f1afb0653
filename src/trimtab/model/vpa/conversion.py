"""Turn VPAs, their scopes and checkpoints into Trimtab's own kind, and VPAs and checkpoints back into native ones.

Both kinds have one schema but for the scope, which upstream's definition may not have: a native VPA names it in an
annotation. Status and history come along.
"""

from collections.abc import Mapping
from typing import Any

from trimtab.model.core.meta import annotations_of, group_of, replace_annotations
from trimtab.model.field_errors import FieldError
from trimtab.model.groups import NATIVE_VPA_GROUP, OWN_GROUP, VPA_GROUPS, VPA_VERSION
from trimtab.model.json.shape import misfits
from trimtab.model.json.wire import Json, Wire, without_members
from trimtab.model.vpa.types import (
    SCOPE_ANNOTATION,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerCheckpoint,
    VPAScope,
)

VPA, SCOPE, CHECKPOINT = "VerticalPodAutoscaler", "VPAScope", "VerticalPodAutoscalerCheckpoint"
KINDS: Mapping[str, type[Wire]] = {
    VPA: VerticalPodAutoscaler,
    SCOPE: VPAScope,
    CHECKPOINT: VerticalPodAutoscalerCheckpoint,
}


class ScopeConflictError(ValueError):
    """The field and the annotation of a native VPA name different scopes."""


def is_vpa_kind(data: Any) -> bool:
    """Return whether an object is a VPA, a scope or a checkpoint of either group."""
    kind = data.get("kind") if isinstance(data, Mapping) else None
    return isinstance(kind, str) and kind in KINDS and group_of(str(data.get("apiVersion"))) in VPA_GROUPS


def decode_errors(data: Mapping[str, Any]) -> list[FieldError]:
    """Return why an object cannot be read."""
    return misfits(data, KINDS[data["kind"]])


def to_own(data: Mapping[str, Any]) -> Json:
    """Return the object as Trimtab's own kind. Raise ScopeConflictError if it names two scopes."""
    own = {**data, "apiVersion": f"{OWN_GROUP}/{VPA_VERSION}"}
    annotations = annotations_of(data)
    if (
        data["kind"] != VPA
        or group_of(data["apiVersion"]) == OWN_GROUP
        or SCOPE_ANNOTATION not in annotations
    ):
        return own
    name, spec = annotations[SCOPE_ANNOTATION], data.get("spec") or {}
    field = (spec.get("vpaScope") or {}).get("name")
    if field not in (None, name):
        raise ScopeConflictError(f"spec.vpaScope names {field!r} and annotation {SCOPE_ANNOTATION} {name!r}")
    kept = without_members(annotations, (SCOPE_ANNOTATION,))
    return replace_annotations({**own, "spec": {**spec, "vpaScope": {"name": name}}}, kept)


def to_native(data: Mapping[str, Any]) -> Json:
    """Return the object as upstream's kind. A VPAScope stays, because upstream has none."""
    if data["kind"] == SCOPE:
        return dict(data)
    native = {**data, "apiVersion": f"{NATIVE_VPA_GROUP}/{VPA_VERSION}"}
    spec = data.get("spec") or {}
    if data["kind"] != VPA or "vpaScope" not in spec:
        return native
    annotations = annotations_of(data) | {SCOPE_ANNOTATION: (spec["vpaScope"] or {}).get("name", "")}
    return replace_annotations({**native, "spec": without_members(spec, ("vpaScope",))}, annotations)


WRITERS = {"trimtab": to_own, "native": to_native}
"""The kinds that `trimtab convert` writes, by their name there."""
