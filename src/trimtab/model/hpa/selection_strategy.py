"""The places where an HPA names its selection strategy: a field, KEP-5625's spelling of it, and annotations.

`selectionStrategy` is the field that Trimtab writes. KEP-5625 writes `SelectionStrategy`, which is read as the same
field. Kubernetes' own kind has neither, and a real API server prunes both; there an annotation holds the value.
Annotations are also read on Trimtab's own kind, so that one rule serves both.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.core.meta import annotations_of, replace_annotations
from trimtab.model.field_errors import FieldError, FieldPath, invalid
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, SelectionStrategy
from trimtab.model.json.wire import Json, without_members
from trimtab.model.plugin_names import is_plugin_name

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
    """Return an HPA's JSON with `selectionStrategy` instead of KEP-5625's spelling."""
    spec = data.get("spec") or {}
    if PROPOSED not in spec:
        return data
    rest = without_members(spec, (PROPOSED,))
    if spec[PROPOSED] is not None:
        rest[FIELD] = spec[PROPOSED]
    return {**data, "spec": rest}


def annotated_strategy(annotations: Mapping[str, str]) -> str | None:
    """Return the strategy that an HPA's annotations name."""
    return next((annotations[name] for name in ANNOTATIONS if annotations.get(name)), None)


def named_strategies(annotations: Mapping[str, str], field: str | None = None) -> dict[str, str]:
    """Return the strategies that an HPA names, by place.

    The field is left out where an annotation has the same value, because that value is read into the field, too.
    """
    strategies = {
        f"annotation {name}": str(annotations[name]) for name in ANNOTATIONS if annotations.get(name)
    }
    if field and field not in strategies.values():
        strategies[f"field spec.{FIELD}"] = field
    return strategies


def strategy_problem(annotations: Mapping[str, str], field: str | None = None) -> str:
    """Return the problem with an HPA's strategy, empty if it names none or a known one."""
    if problem := strategy_conflict(annotations, field):
        return problem
    known = [strategy.value for strategy in SelectionStrategy]
    for place, value in named_strategies(annotations, field).items():
        if value not in known and not is_plugin_name(value):
            return (
                f"{place} is {value!r}, which is not known: write {' or '.join(known)}, "
                "or a plug-in's name with its domain"
            )
    return ""


def strategy_conflict(annotations: Mapping[str, str], field: str | None = None) -> str:
    """Return where an HPA names two different strategies, empty if it does not."""
    strategies = named_strategies(annotations, field)
    if len(set(strategies.values())) < 2:
        return ""
    places = " and ".join(f"{place} is {value!r}" for place, value in strategies.items())
    return f"{places}: remove all but one"


def conflict_of(data: Mapping[str, Any]) -> str:
    """Return `strategy_conflict` of JSON of any version."""
    return strategy_conflict(annotations_of(data), _field(data))


def problem_of(data: Mapping[str, Any]) -> str:
    """Return `strategy_problem` of JSON of any version."""
    return strategy_problem(annotations_of(data), _field(data))


def with_annotation(
    spec: HorizontalPodAutoscalerSpec, annotations: Mapping[str, str]
) -> HorizontalPodAutoscalerSpec:
    """Return the spec of an HPA with the strategy of its annotations, if it has no other."""
    strategy = annotated_strategy(annotations)
    if strategy is None or spec.selection_strategy is not None:
        return spec
    return msgspec.structs.replace(spec, selection_strategy=strategy)


def into_field(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with the strategy in its field alone, as Trimtab's own kind needs it."""
    strategy, rest = _take_strategy(data)
    if strategy is not None:
        rest["spec"][FIELD] = strategy
    return rest


def into_annotation(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with the strategy in its annotation alone, as Kubernetes' own kind needs it."""
    strategy, rest = _take_strategy(data)
    return (
        rest
        if strategy is None
        else replace_annotations(rest, {**annotations_of(rest), ANNOTATION: strategy})
    )


def _take_strategy(data: Mapping[str, Any]) -> tuple[str | None, Json]:
    """Return the strategy of v2 JSON in one spelling, and the JSON without it."""
    annotations, spec = annotations_of(data), data.get("spec") or {}
    strategy = annotated_strategy(annotations) if spec.get(FIELD) is None else spec[FIELD]
    rest = {**data, "spec": without_members(spec, (FIELD,))}
    if not annotations.keys().isdisjoint(ANNOTATIONS):
        rest = replace_annotations(rest, without_members(annotations, ANNOTATIONS))
    return strategy, rest


def _field(data: Mapping[str, Any]) -> str | None:
    field: str | None = (in_one_spelling(data).get("spec") or {}).get(FIELD)
    return field
