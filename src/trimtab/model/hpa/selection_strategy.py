"""Where an HPA says which pods count: a field, KEP-5625's spelling of it, and annotations.

`selectionStrategy` is the field that we write. KEP-5625 writes `SelectionStrategy`, which is read as the same field.
Kubernetes' own kind has neither, and a real API server prunes both; there an annotation holds the value. It is read on
our own kind as well: one rule for both, so that nobody's choice is passed over because of the kind.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.field_errors import FieldError, FieldPath, invalid
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, SelectionStrategy

Json = dict[str, Any]

FIELD = "selectionStrategy"
PROPOSED = "SelectionStrategy"
ANNOTATION = "autoscaling.trimtab.dev/selection-strategy"
V1_ANNOTATION = "autoscaling.alpha.kubernetes.io/pod-selection-strategy"
"""What conversion to v1 wrote before there was one name for all versions; read, never written."""

ANNOTATIONS = (ANNOTATION, V1_ANNOTATION)
"""Every annotation that is read; where several are set, they must agree, and the first one counts."""

NATIVE_GROUP = "autoscaling"


def spelling_errors(data: Mapping[str, Any]) -> list[FieldError]:
    """Return the error of a spec whose two spellings have two values."""
    spec = data.get("spec")
    if not isinstance(spec, Mapping):
        return []
    proposed, value = spec.get(PROPOSED), spec.get(FIELD)
    if proposed is None or not isinstance(proposed, str) or value in (None, proposed):
        return []
    detail = f"{FIELD} is also set, to another value: remove {PROPOSED}"
    return [invalid(FieldPath("spec").child(PROPOSED), proposed, detail)]


def in_one_spelling(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return JSON of an HPA that spells the field as we write it."""
    spec = data.get("spec") or {}
    if PROPOSED not in spec:
        return data
    rest = {name: value for name, value in spec.items() if name != PROPOSED}
    if spec[PROPOSED] is not None:
        rest[FIELD] = spec[PROPOSED]
    return {**data, "spec": rest}


def annotated(annotations: Mapping[str, str]) -> str | None:
    """Return the value that the annotations of an HPA hold."""
    return next((annotations[name] for name in ANNOTATIONS if annotations.get(name)), None)


def named(annotations: Mapping[str, str], field: str | None = None) -> dict[str, str]:
    """Return the strategies that an HPA names, by place; `field` counts if no annotation says the same.

    An API server that knows the field keeps it. The value of an annotation is read into the field, too.
    """
    found = {f"annotation {name}": str(annotations[name]) for name in ANNOTATIONS if annotations.get(name)}
    if field and field not in found.values():
        found[f"field spec.{FIELD}"] = field
    return found


def strategy_problem(annotations: Mapping[str, str], field: str | None = None) -> str:
    """Return what is wrong with the strategy of an HPA; nothing if one that is known, or none, is named."""
    found, known = named(annotations, field), [strategy.value for strategy in SelectionStrategy]
    if problem := strategy_conflict(annotations, field):
        return problem
    for place, value in found.items():
        if value not in known:
            return f"{place} is {value!r}, which is not known: write {' or '.join(known)}"
    return ""


def strategy_conflict(annotations: Mapping[str, str], field: str | None = None) -> str:
    """Return that an HPA names two different strategies, and where; nothing if it does not."""
    found = named(annotations, field)
    if len(set(found.values())) < 2:
        return ""
    places = " and ".join(f"{place} is {value!r}" for place, value in found.items())
    return f"{places}: remove all but one"


def conflict_of(data: Mapping[str, Any]) -> str:
    """Return `strategy_conflict` of JSON of any version."""
    return strategy_conflict(*_places(data))


def problem_of(data: Mapping[str, Any]) -> str:
    """Return `strategy_problem` of JSON of any version."""
    return strategy_problem(*_places(data))


def _places(data: Mapping[str, Any]) -> tuple[Mapping[str, str], str | None]:
    spec = in_one_spelling(data).get("spec") or {}
    return (data.get("metadata") or {}).get("annotations") or {}, spec.get(FIELD)


def with_annotation(
    spec: HorizontalPodAutoscalerSpec, annotations: Mapping[str, str]
) -> HorizontalPodAutoscalerSpec:
    """Return the spec of an HPA with the strategy of its annotations, if it has no other."""
    value = annotated(annotations)
    if value is None or spec.selection_strategy is not None:
        return spec
    return msgspec.structs.replace(spec, selection_strategy=value)


def into_field(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with the strategy in its field and in no annotation, as our own kind needs it."""
    value = _value(data)
    spec = _without(data.get("spec") or {}, (FIELD,))
    return _unannotated(data) | {"spec": spec if value is None else {**spec, FIELD: value}}


def into_annotation(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with the strategy in the annotation, as Kubernetes' own kind needs it."""
    value = _value(data)
    out = _unannotated(data) | {"spec": _without(data.get("spec") or {}, (FIELD,))}
    if value is not None:
        metadata = out.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), ANNOTATION: value}
        out["metadata"] = {**metadata, "annotations": annotations}
    return out


def _value(data: Mapping[str, Any]) -> str | None:
    """Return the strategy of an HPA in one spelling."""
    value: str | None = (data.get("spec") or {}).get(FIELD)
    return annotated((data.get("metadata") or {}).get("annotations") or {}) if value is None else value


def _unannotated(data: Mapping[str, Any]) -> Json:
    metadata = data.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if annotations.keys().isdisjoint(ANNOTATIONS):
        return dict(data)
    rest = _without(metadata, ("annotations",))
    if kept := _without(annotations, ANNOTATIONS):
        rest["annotations"] = kept
    return {**data, "metadata": rest}


def _without(data: Mapping[str, Any], names: tuple[str, ...]) -> Json:
    return {name: value for name, value in data.items() if name not in names}
