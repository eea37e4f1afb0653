"""HorizontalPodAutoscaler: autoscaling/v2 with Trimtab's own fields, and every older version.

`types` is the form that the rest of the project uses; `manifest` reads every version into it. `defaults`, `validation`,
`versions` and `create_update` do what an API server does before it stores an object, for the lab, `trimtab validate`
and the operator. They work on JSON of any version, so that unknown fields stay. Trimtab's own fields are in
`selection_strategy`, `metric_fields`, `metric_annotations` and `dry_run`. `metric_kinds` has a class per type of metric.
`warnings` is for `trimtab validate`.
"""

from collections.abc import Mapping
from typing import Any

from trimtab.model.feature_gates import FeatureGates
from trimtab.model.field_errors import FieldError
from trimtab.model.hpa import create_update
from trimtab.model.hpa.manifest import InvalidObjectError, decode_errors, read, to_defaulted_v2, to_v1, to_v2
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.hpa.versions.canonical import canonical
from trimtab.model.hpa.warnings import (
    ignored_annotations,
    metric_fields_of_native,
    strategy_of_native,
    unknown_annotations,
    warnings_for,
)
from trimtab.model.json import wire

__all__ = [
    "InvalidObjectError",
    "canonical",
    "decode_errors",
    "default",
    "ignored_annotations",
    "metric_fields_of_native",
    "read",
    "strategy_of_native",
    "to_v1",
    "to_v2",
    "unknown_annotations",
    "validate_create",
    "validate_update",
    "warnings_for",
]

Manifest = Mapping[str, Any] | HorizontalPodAutoscaler
"""An HPA as JSON data of any version, or its typed value."""


def default(hpa: Manifest) -> dict[str, Any]:
    """Return v2 JSON with the API server's defaults filled in."""
    return to_defaulted_v2(_data(hpa))


def validate_create(hpa: Manifest, gates: FeatureGates, namespace: str = "") -> list[FieldError]:
    """Return why an API server would refuse to create the HPA, by default in `namespace`."""
    data = _data(hpa)
    if errors := decode_errors(data):
        return errors
    metadata = dict(data.get("metadata") or {})
    if namespace and not metadata.get("namespace"):
        metadata["namespace"] = namespace
    if metadata.get("generateName") and not metadata.get("name"):
        metadata["name"] = f"{metadata['generateName']}xxxxx"
    return list(create_update.create({**data, "metadata": metadata}, gates).errors)


def validate_update(hpa: Manifest, old: Manifest, gates: FeatureGates) -> list[FieldError]:
    """Return why an API server would refuse to replace `old` by the HPA."""
    return list(create_update.update(_data(hpa), to_v2(_data(old)), gates).errors)


def _data(hpa: Manifest) -> Mapping[str, Any]:
    if isinstance(hpa, HorizontalPodAutoscaler):
        typed = wire.decode(wire.encode(hpa), dict[str, Any])
        return {"apiVersion": hpa.api_version, "kind": hpa.kind, **typed}
    return hpa
