"""Read one document of any of Trimtab's kinds, and validate it offline, for `trimtab validate`.

Nothing raises: a document that cannot be read has field errors, a valid but doubtful one has warnings.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.model import hpa
from trimtab.model.bundle import Member
from trimtab.model.core.meta import group_of
from trimtab.model.core.metadata_validation import WholeMeta, validate_metadata
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.field_errors import (
    FieldError,
    FieldPath,
    FieldWarning,
    not_supported,
    required,
    type_invalid,
)
from trimtab.model.groups import OWN_GROUP, VPA_GROUPS, VPA_VERSION
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.hpa.validation.limits import validate_limits
from trimtab.model.hpa.versions import v1
from trimtab.model.hpa.versions.conversion import V1
from trimtab.model.json import shape, wire
from trimtab.model.json.wire import without_members, without_nulls
from trimtab.model.vpa.defaults import options_for
from trimtab.model.vpa.types import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint, VPAScope
from trimtab.model.vpa.validation import schema_errors, validate_scope, validate_vpa

DEFAULT_NAMESPACE = "default"

_VPA_KINDS: dict[
    str, type[VerticalPodAutoscaler] | type[VPAScope] | type[VerticalPodAutoscalerCheckpoint]
] = {
    "VerticalPodAutoscaler": VerticalPodAutoscaler,
    "VPAScope": VPAScope,
    "VerticalPodAutoscalerCheckpoint": VerticalPodAutoscalerCheckpoint,
}
_KNOWN: dict[tuple[str, str], dict[str, type[wire.Wire]]] = {
    ("autoscaling", "HorizontalPodAutoscaler"): {
        V1: v1.V1HorizontalPodAutoscaler,
        "autoscaling/v2": HorizontalPodAutoscaler,
        "autoscaling/v2beta1": v1.V2beta1HorizontalPodAutoscaler,
        "autoscaling/v2beta2": HorizontalPodAutoscaler,
    },
    (OWN_GROUP, "HorizontalPodAutoscaler"): {"autoscaling.trimtab.dev/v2": HorizontalPodAutoscaler},
    **{
        (group, kind): {f"{group}/{VPA_VERSION}": struct}
        for group in VPA_GROUPS
        for kind, struct in _VPA_KINDS.items()
        if group == OWN_GROUP or struct is not VPAScope
    },
}
"""The type of each version of each kind that is read."""

_UNKNOWN = "unknown field, an API server drops it"
_PREFIXED = re.compile(r"([a-z][\w.\[\]]*): (.*)\Z", re.DOTALL)


@dataclass(frozen=True)
class Manifest:
    """A document's kind and name, the typed object if it can be read, its errors and warnings."""

    kind: str
    key: str
    object: Member | None = None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldWarning, ...] = ()
    is_known: bool = True


def read_manifest(data: Any, gates: FeatureGates) -> Manifest:
    """Read a document and validate it as an API server with these gates would on create."""
    if not isinstance(data, Mapping):
        error = type_invalid(
            FieldPath("."), shape.describe(data), "a manifest must be an object with apiVersion and kind"
        )
        return Manifest("document", "", errors=(error,))
    errors = tuple(_type_errors(data))
    kind, key = _text(data.get("kind")) or "document", _key_of(data)
    if errors:
        return Manifest(kind, key, errors=errors)
    versions = _KNOWN.get((group_of(data["apiVersion"]), kind))
    if versions is None:
        return Manifest(kind, key, is_known=False)
    if data["apiVersion"] not in versions:
        error = not_supported(FieldPath("apiVersion"), data["apiVersion"], versions)
        return Manifest(kind, key, errors=(error,))
    data = _in_namespace(without_nulls(data))
    validate = _validate_hpa if kind == "HorizontalPodAutoscaler" else _validate_vpa_kinds
    obj, found, warnings = validate(data, gates)
    unknown = [] if obj is None else _unknown_fields(data, versions[data["apiVersion"]])
    return Manifest(kind, _key_of(data), obj, tuple(found), (*unknown, *warnings))


def _type_errors(data: Mapping[str, Any]) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        given = data.get(name)
        if given is None or given == "":
            yield required(FieldPath(name), "must be text")
        elif not isinstance(given, str):
            yield shape.wrong_type(FieldPath(name), given, "text")


def _validate_hpa(
    data: Mapping[str, Any], gates: FeatureGates
) -> tuple[Member | None, list[FieldError], list[FieldWarning]]:
    errors = hpa.decode_errors(data)
    if errors:
        return None, errors, []
    obj = hpa.read(data)
    errors = hpa.validate_create(data, gates)
    warnings = [
        *hpa.ignored_annotations(data),
        *hpa.unknown_annotations(data),
        *hpa.strategy_of_native(data),
        *hpa.metric_fields_of_native(data),
    ]
    if not errors:
        warnings += hpa.warnings_for(hpa.read(hpa.default(data)))
    warnings += _dropped_by_gates(obj, gates)
    excessive = validate_limits(obj.spec)
    if group_of(data["apiVersion"]) == OWN_GROUP:
        return obj, errors + excessive, warnings
    # Kubernetes' own API server stores these; they fail, if at all, when they are used.
    return obj, errors, warnings + [FieldWarning(error.field, error.body) for error in excessive]


def _dropped_by_gates(obj: HorizontalPodAutoscaler, gates: FeatureGates) -> list[FieldWarning]:
    """Warn of fields that an API server with these gates drops silently."""
    warnings = []
    if obj.spec.selection_strategy is not None and not gates.hpa_selection_strategy:
        warnings.append(_dropped("spec.selectionStrategy", "HPASelectionStrategy"))
    behavior = obj.spec.behavior
    directions = {"scaleUp": behavior.scale_up, "scaleDown": behavior.scale_down} if behavior else {}
    for name, direction in directions.items():
        if direction and direction.tolerance is not None and not gates.hpa_configurable_tolerance:
            warnings.append(_dropped(f"spec.behavior.{name}.tolerance", "HPAConfigurableTolerance"))
    return warnings


def _dropped(field: str, gate: str) -> FieldWarning:
    return FieldWarning(field, f"is dropped while the feature gate {gate} is off")


def _validate_vpa_kinds(
    data: Mapping[str, Any], gates: FeatureGates
) -> tuple[Member | None, list[FieldError], list[FieldWarning]]:
    kind = _VPA_KINDS[data["kind"]]
    metadata = {} if data.get("metadata") is None else data["metadata"]
    errors = shape.misfits(metadata, WholeMeta, FieldPath("metadata"))
    errors += shape.misfits(without_members(data, ("metadata",)), kind)
    if errors:
        return None, errors, []
    obj = wire.convert(data, kind)
    errors = validate_metadata(wire.convert(metadata, WholeMeta))
    warnings: list[FieldWarning] = []
    if isinstance(obj, VerticalPodAutoscaler):
        findings = validate_vpa(obj, options_for(gates))
        errors += [*schema_errors(obj), *findings.errors]
        warnings = [_split_field(text) for text in findings.warnings]
    elif isinstance(obj, VPAScope):
        errors += validate_scope(obj)
    else:
        errors += _checkpoint_errors(obj)
    return obj, errors, warnings


def _checkpoint_errors(checkpoint: VerticalPodAutoscalerCheckpoint) -> list[FieldError]:
    given = {
        "vpaObjectName": checkpoint.spec.vpa_object_name,
        "containerName": checkpoint.spec.container_name,
    }
    return [required(FieldPath("spec").child(name)) for name, text in given.items() if not text]


def _unknown_fields(data: Mapping[str, Any], kind: type[wire.Wire]) -> list[FieldWarning]:
    body = without_members(data, ("metadata",))  # real metadata has more fields than our type
    return [
        FieldWarning(path.text, f"{_UNKNOWN}; did you mean {near}?" if near else _UNKNOWN)
        for path, near in shape.unknown_fields(body, kind)
    ]


def _split_field(warning: str) -> FieldWarning:
    """Split upstream's `field: text`."""
    match = _PREFIXED.match(warning)
    return FieldWarning(match[1], match[2]) if match else FieldWarning("", warning)


def _in_namespace(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in the default namespace and a generated name, as an API server would."""
    metadata = data.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        return data
    filled = dict(metadata or {})
    if filled.get("namespace") in (None, ""):
        filled["namespace"] = DEFAULT_NAMESPACE
    if filled.get("name") in (None, "") and (prefix := _text(filled.get("generateName"))):
        filled["name"] = f"{prefix}x"
    return {**data, "metadata": filled}


def _key_of(data: Mapping[str, Any]) -> str:
    metadata = data.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    name = _text(metadata.get("name")) or _text(metadata.get("generateName"))
    return f"{_text(metadata.get('namespace')) or DEFAULT_NAMESPACE}/{name}" if name else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
