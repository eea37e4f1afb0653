"""Read HPAs of every version, and write them as any version without loss.

All versions become v2 JSON first, from which the typed value is read. The selection strategy may be spelt or annotated
in several ways, which `selection_strategy` turns into one. Between Trimtab's own kind and Kubernetes' own, fields that
only the former has move into annotations and back.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trimtab.model.core.meta import group_of
from trimtab.model.core.metadata_validation import WholeMeta
from trimtab.model.field_errors import (
    FieldError,
    FieldPath,
    aggregate,
    invalid,
    not_supported,
    required,
    type_invalid,
)
from trimtab.model.hpa import metric_annotations, replica_policies, selection_strategy, types
from trimtab.model.hpa.defaults import default
from trimtab.model.hpa.versions import v1
from trimtab.model.hpa.versions.conversion import TO_V2, V1, V2, v2_to_v1
from trimtab.model.json import shape, wire
from trimtab.model.json.wire import Json, without_members

KIND = "HorizontalPodAutoscaler"
OWN = "autoscaling.trimtab.dev/v2"

_ROOT = FieldPath()
_SHAPES: dict[str, type[Any]] = {
    V1: v1.V1HorizontalPodAutoscaler,
    "autoscaling/v2beta1": v1.V2beta1HorizontalPodAutoscaler,
}
"""The versions that are not v2 under another name."""


class InvalidObjectError(ValueError):
    """An object cannot be read, for the reasons in `errors`."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__(aggregate(errors))
        self.errors = tuple(errors)


def decode_errors(data: Any) -> list[FieldError]:
    """Return why `data` cannot be read as an HPA of any known version."""
    if not isinstance(data, Mapping):
        return [type_invalid(_ROOT, str(data)[:80], f"must be an object, not {shape.describe(data)}")]
    if errors := _identity_errors(data):
        return errors
    try:
        return selection_strategy.spelling_errors(data) or _shape_errors(data)
    except RecursionError:
        return [invalid(_ROOT, "{...}", "is nested too deeply to be read")]
    except (ValueError, OverflowError) as error:
        # A number of thousands of digits cannot even be shown.
        return [invalid(_ROOT, "{...}", f"cannot be read: {error}")]


def to_v2(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as canonical v2 JSON, or raise InvalidObjectError."""
    checked = _checked(data)
    return TO_V2[checked["apiVersion"]](checked)


def to_v1(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as v1 JSON from which `to_v2` makes the same object again."""
    checked = _checked(data)
    version = checked["apiVersion"]
    # v2 itself goes in as it is: its canonical form no longer shows that a list was given, but empty.
    return v2_to_v1(TO_V2[version](checked) if version in _SHAPES else checked)


def to_defaulted_v2(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as v2 JSON with the API server's defaults filled in."""
    checked = _checked(data)
    convert = TO_V2[checked["apiVersion"]]
    # Defaults come first: the canonical form of `policies: []` is the same as that of absent policies.
    return default(convert(checked)) if checked["apiVersion"] in _SHAPES else convert(default(checked))


def read(data: Mapping[str, Any]) -> types.HorizontalPodAutoscaler:
    """Return the typed value of an HPA of any version, or raise InvalidObjectError."""
    hpa = wire.convert(to_v2(data), types.HorizontalPodAutoscaler)
    spec = selection_strategy.with_annotation(hpa.spec, hpa.metadata.annotations)
    return msgspec.structs.replace(hpa, spec=spec)


def to_own(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as Trimtab's own kind.

    Raise MetricAnnotationError if an annotation is wrong.
    """
    with_fields = replica_policies.into_field(metric_annotations.into_fields(to_v2(data)))
    own = selection_strategy.into_field(with_fields)
    return {**own, "apiVersion": OWN}


def to_native_v2(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as autoscaling/v2, without fields that its API server prunes."""
    native = selection_strategy.into_annotation(to_v2(_fields_in_annotations(data)))
    return {**native, "apiVersion": V2}


def to_native_v1(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as autoscaling/v1."""
    return to_v1(_fields_in_annotations(data))


WRITERS: dict[str, Callable[[Mapping[str, Any]], Json]] = {
    "v1": to_native_v1,
    "v2": to_native_v2,
    "trimtab": to_own,
}
"""The versions that `trimtab convert` writes, by their name there."""


def _fields_in_annotations(data: Mapping[str, Any]) -> Mapping[str, Any]:
    if group_of(data["apiVersion"]) != group_of(OWN):
        return data
    return replica_policies.into_annotation(metric_annotations.into_annotations(to_v2(data)))


def _checked(data: Mapping[str, Any]) -> Mapping[str, Any]:
    if errors := decode_errors(data):
        raise InvalidObjectError(errors)
    return selection_strategy.in_one_spelling(data)


def _identity_errors(data: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    for name, known in {"apiVersion": TO_V2.keys(), "kind": {KIND}}.items():
        value = data.get(name)
        if not value:
            errors.append(required(FieldPath(name), f"must be one of {', '.join(sorted(known))}"))
        elif not isinstance(value, str) or value not in known:
            errors.append(not_supported(FieldPath(name), value, known))
    return errors


def _shape_errors(data: Mapping[str, Any]) -> list[FieldError]:
    kind = _SHAPES.get(data["apiVersion"], types.HorizontalPodAutoscaler)
    metadata = data.get("metadata")
    errors = [] if metadata is None else shape.misfits(metadata, WholeMeta, FieldPath("metadata"))
    return errors + shape.misfits(without_members(data, ("metadata",)), kind)
