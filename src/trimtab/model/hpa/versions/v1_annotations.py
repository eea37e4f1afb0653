"""Annotations of autoscaling/v1 that hold metrics, conditions and the behavior.

An annotation that cannot be read is ignored, as upstream does: a typo in it must not make the whole object unreadable
through v2.
"""

import json
from collections.abc import Mapping
from typing import Any

from trimtab.model.core.meta import annotations_of
from trimtab.model.hpa.types import HorizontalPodAutoscalerBehavior
from trimtab.model.hpa.versions import v1
from trimtab.model.hpa.versions.canonical import canonical_as
from trimtab.model.json import shape
from trimtab.model.json.wire import Json

_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY = ("type", "value", "periodSeconds")
_DIRECTIONS = ("scaleUp", "scaleDown")
_NO_BEHAVIOR = {"ScaleUp": None, "ScaleDown": None}
_SPEC_ANNOTATIONS = {
    "autoscaling/v1": (v1.METRICS_ANNOTATION, v1.BEHAVIOR_ANNOTATION),
    "autoscaling/v2beta1": (v1.BEHAVIOR_ANNOTATION,),
}
_BEHAVIOR_NAMES = {name.lower(): name for name in (*_DIRECTIONS, *_RULES, *_POLICY)}


def dump(value: Any) -> str:
    """Write the content of an annotation."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def read_list(annotations: Mapping[str, str], annotation: str, field: str) -> list[Json] | None:
    """Return the canonical list in an annotation, or None if it cannot be read.

    `field` names the member of `v1.AnnotatedLists` that has the elements' type.
    """
    content = {field: load(annotations, annotation)}
    if content[field] is None:
        # `null` is an empty list; an absent annotation is not.
        return [] if annotations.get(annotation, "").strip() == "null" else None
    if shape.misfits(content, v1.AnnotatedLists):
        return None
    listed: list[Json] = canonical_as(content, v1.AnnotatedLists).get(field, [])
    return listed


def unreadable(annotations: Mapping[str, str]) -> list[str]:
    """Return the annotations that are ignored because they cannot be read."""
    lists = {
        v1.METRICS_ANNOTATION: "metrics",
        v1.CURRENT_METRICS_ANNOTATION: "currentMetrics",
        v1.CONDITIONS_ANNOTATION: "conditions",
    }
    names = [name for name, field in lists.items() if read_list(annotations, name, field) is None]
    if read_behavior(annotations) is None and load(annotations, v1.BEHAVIOR_ANNOTATION) != _NO_BEHAVIOR:
        names.append(v1.BEHAVIOR_ANNOTATION)
    return [name for name in names if annotations.get(name)]


def unreadable_spec(data: Mapping[str, Any]) -> list[str]:
    """Return the unreadable annotations that would hold a part of the object's spec."""
    holding = _SPEC_ANNOTATIONS.get(str(data.get("apiVersion")), ())
    return [name for name in unreadable(annotations_of(data)) if name in holding] if holding else []


def load(annotations: Mapping[str, str], annotation: str) -> Any:
    """Return the JSON of an annotation, or None if it is absent or broken."""
    try:
        return json.loads(annotations[annotation])
    except (KeyError, ValueError, RecursionError):
        return None


def dump_behavior(behavior: Mapping[str, Any]) -> str:
    """Write a behavior as v1 keeps it, with capital letters and null for absent fields."""
    return dump({_capital(name): _capital_rules(behavior.get(name)) for name in _DIRECTIONS})


def read_behavior(annotations: Mapping[str, str]) -> Json | None:
    """Return the behavior in v1's annotation, or None if it is empty or cannot be read."""
    content = _renamed(load(annotations, v1.BEHAVIOR_ANNOTATION))
    if not isinstance(content, dict) or shape.misfits(content, HorizontalPodAutoscalerBehavior):
        return None
    behavior = canonical_as(content, HorizontalPodAutoscalerBehavior)
    return behavior if any(name in behavior for name in _DIRECTIONS) else None


def _capital_rules(rules: Mapping[str, Any] | None) -> Json | None:
    if rules is None:
        return None
    out = {_capital(name): rules.get(name) for name in _RULES}
    if out["Policies"] is not None:
        out["Policies"] = [
            {_capital(name): policy.get(name) for name in _POLICY} for policy in out["Policies"]
        ]
    return out


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _renamed(data: Any) -> Any:
    """Return v2's spelling of names in any case, as Go's JSON decoder matches them."""
    if isinstance(data, dict):
        return {_BEHAVIOR_NAMES.get(name.lower(), name): _renamed(value) for name, value in data.items()}
    return [_renamed(item) for item in data] if isinstance(data, list) else data
