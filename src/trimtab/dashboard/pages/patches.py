"""What a page offers to copy: the edits of a what-if as a patch, and a VPA's targets as requests."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from trimtab.dashboard.pages.what_if import Edits
from trimtab.decide.horizontal import Record
from trimtab.library.documents import to_yaml
from trimtab.model.core.pod import MEMORY
from trimtab.model.hpa.selection_strategy import ANNOTATION, ANNOTATIONS
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import RecommendedContainerResources

_MIB: Final = 1024 * 1024


def patch_command(record: Record, edits: Edits, *, is_native: bool) -> str:
    """Return the command that makes the spec of an HPA as edited, or an empty text if only its input was."""
    patch = hpa_patch(record, edits, is_native=is_native)
    if not patch:
        return ""
    metadata = record.observation.hpa.metadata
    kind = "horizontalpodautoscalers.v2.autoscaling" if is_native else "thpa"
    name, namespace = shlex.quote(metadata.name), shlex.quote(metadata.namespace)
    head = f"kubectl patch {kind} {name} -n {namespace} --type merge"
    return f"{head} \\\n  --patch \"$(cat <<'EOF'\n{to_yaml(patch)}EOF\n)\"\n"


def hpa_patch(record: Record, edits: Edits, *, is_native: bool) -> dict[str, Any]:
    """Return the edits of the spec as a merge patch of the HPA, as small as it can be."""
    hpa = record.observation.hpa
    spec: dict[str, Any] = wire.decode(wire.encode(hpa.spec), dict)
    wanted = {
        "minReplicas": edits.min_replicas,
        "maxReplicas": edits.max_replicas,
        "behavior": edits.behavior,
        "selectionStrategy": None if is_native else edits.selection_strategy,
    }
    changes = {name: value for name, value in wanted.items() if value is not None}
    patch: dict[str, Any] = {}
    if edits.selection_strategy is not None:
        # An annotation that is left would contradict the choice. Kubernetes' own kind has no field for it.
        annotations: dict[str, str | None] = dict.fromkeys(set(ANNOTATIONS) & set(hpa.metadata.annotations))
        if is_native:
            annotations[ANNOTATION] = edits.selection_strategy
        if annotations:
            patch["metadata"] = {"annotations": annotations}
    if difference := _difference({name: spec.get(name) for name in changes}, changes):
        patch["spec"] = difference
    return patch


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch from one JSON object to another (RFC 7396)."""
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := _difference(before, value):
                patch[name] = inner
        elif value != before:
            patch[name] = value
    return patch


def requests_yaml(recommendations: Iterable[RecommendedContainerResources]) -> str:
    """Return the targets as the `containers` of a pod template, or an empty text if there are none."""
    containers = [
        {
            "name": entry.container_name,
            "resources": {
                "requests": {name: _request(name, entry.target[name]) for name in sorted(entry.target)}
            },
        }
        for entry in recommendations
        if entry.target
    ]
    return to_yaml({"containers": containers}) if containers else ""


def _request(resource: str, target: Quantity) -> str:
    """Return a target as people write it. Bytes are rounded up to whole MiB."""
    if resource != MEMORY:
        return str(target)
    return f"{-(-target.milli_value() // (1000 * _MIB))}Mi"
