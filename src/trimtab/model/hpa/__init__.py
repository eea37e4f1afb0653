"""HorizontalPodAutoscaler: autoscaling/v2 with the seeds' fields, and every older form people still have.

`types` is the one shape the rest of the project knows. `defaults`, `validation`, `conversion` and `strategy` are
what an API server does to an object before it is stored; the lab's server, `trimtab validate` and the operator
share them. They work on JSON data (dicts) of any version, so that nothing they do not know is lost.
"""

from collections.abc import Mapping
from typing import Any

from trimtab.model.feature_gates import FeatureGates
from trimtab.model.field_errors import FieldError
from trimtab.model.hpa import admission
from trimtab.model.hpa.manifest import (
    InvalidObjectError,
    decode_errors,
    read,
    to_defaulted_v2,
    to_v1,
    to_v2,
    write,
)
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.hpa.versions.canonical import canonical
from trimtab.model.hpa.warnings import (
    HPAWarning,
    ignored_annotations,
    metric_fields_of_native,
    strategy_of_native,
    unknown_annotations,
    warnings_for,
)
from trimtab.model.json import wire

__all__ = [
    "HPAWarning",
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
    "write",
]

Manifest = Mapping[str, Any] | HorizontalPodAutoscaler
"""An HPA as JSON data of any version, or its typed value."""


def default(hpa: Manifest) -> dict[str, Any]:
    """Return v2 JSON with the API server's defaults filled in."""
    return to_defaulted_v2(_data(hpa))


def validate_create(hpa: Manifest, gates: FeatureGates, namespace: str = "") -> list[FieldError]:
    """Say why an API server would refuse to create the HPA, sent to `namespace` if it names none itself."""
    data = _data(hpa)
    if errors := decode_errors(data):
        return errors
    completed = {**data, "metadata": _completed(data.get("metadata") or {}, namespace)}
    return list(admission.create(completed, gates).errors)


def _completed(metadata: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return the metadata with what the server itself takes from the request or makes up."""
    out = dict(metadata)
    if namespace and not out.get("namespace"):
        out["namespace"] = namespace
    if out.get("generateName") and not out.get("name"):
        out["name"] = f"{out['generateName']}xxxxx"
    return out


def validate_update(hpa: Manifest, old: Manifest, gates: FeatureGates) -> list[FieldError]:
    """Say why an API server would refuse to replace `old` by the HPA."""
    return list(admission.update(_data(hpa), to_v2(_data(old)), gates).errors)


def _data(hpa: Manifest) -> Mapping[str, Any]:
    if isinstance(hpa, HorizontalPodAutoscaler):
        typed = wire.decode(wire.encode(hpa), dict[str, Any])
        return {"apiVersion": hpa.api_version, "kind": hpa.kind, **typed}
    return hpa
