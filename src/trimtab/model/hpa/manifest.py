"""Reading HPAs of every version that people have, and writing them back without loss.

All versions become v2 JSON first; the typed value is read from that. Which pods count may be spelt or annotated in
several ways, which `selection_strategy` turns into one.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

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
from trimtab.model.hpa import types
from trimtab.model.hpa.defaults import default
from trimtab.model.hpa.selection_strategy import (
    in_one_spelling,
    spelling_errors,
    with_annotation,
)
from trimtab.model.hpa.versions import v1, v2beta
from trimtab.model.hpa.versions.conversion import TO_V2, V1, v2_to_v1
from trimtab.model.json import shape, wire
from trimtab.model.json.overlay import overlay

Json = dict[str, Any]

KIND = "HorizontalPodAutoscaler"

_ROOT = FieldPath()
_SHAPES: dict[str, type[Any]] = {
    V1: v1.V1HorizontalPodAutoscaler,
    "autoscaling/v2beta1": v2beta.V2beta1HorizontalPodAutoscaler,
}


class InvalidObjectError(ValueError):
    """An object cannot be read; `errors` says why, field by field."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__(aggregate(errors))
        self.errors = tuple(errors)


def decode_errors(data: Any) -> list[FieldError]:
    """Say why `data` is not an HPA of any known version; nothing if it can be read."""
    if not isinstance(data, Mapping):
        return [type_invalid(_ROOT, str(data)[:80], f"must be an object, not {shape.describe(data)}")]
    if errors := _identity_errors(data):
        return errors
    try:
        return spelling_errors(data) or _shape_errors(data)
    except RecursionError:
        return [invalid(_ROOT, "{...}", "is nested too deeply to be read")]
    except (ValueError, OverflowError) as error:
        # A number of thousands of digits cannot even be shown.
        return [invalid(_ROOT, "{...}", f"cannot be read: {error}")]


def to_v2(data: Mapping[str, Any]) -> Json:
    """Return an HPA of any version as canonical v2 JSON; raise InvalidObjectError if it is none."""
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
    # Defaults come first, for they tell `policies: []` from no policies, which the canonical form does not.
    return default(convert(checked)) if checked["apiVersion"] in _SHAPES else convert(default(checked))


def read(data: Mapping[str, Any]) -> types.HorizontalPodAutoscaler:
    """Return the typed value of an HPA of any version; raise InvalidObjectError if it is none."""
    return _typed(to_v2(data))


def write(data: Mapping[str, Any], hpa: types.HorizontalPodAutoscaler) -> Json:
    """Return v2 JSON that reads as `hpa` and keeps everything in `data`, from which it was read and then changed."""
    raw = to_v2(data)
    return overlay(raw, _typed(raw), hpa)


def _typed(data: Json) -> types.HorizontalPodAutoscaler:
    """Return the typed value of v2 JSON; the annotation of the strategy counts as its field."""
    hpa = wire.convert(data, types.HorizontalPodAutoscaler)
    return msgspec.structs.replace(hpa, spec=with_annotation(hpa.spec, hpa.metadata.annotations))


def _checked(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return data that can be read, in the canonical spelling; raise InvalidObjectError otherwise."""
    if errors := decode_errors(data):
        raise InvalidObjectError(errors)
    return in_one_spelling(data)


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
    return errors + shape.misfits({name: value for name, value in data.items() if name != "metadata"}, kind)
