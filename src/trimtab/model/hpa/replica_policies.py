"""Replica policies of an HPA: a field of Trimtab's own kind, an annotation on Kubernetes' own.

The annotation holds the JSON of the field: `[{"name": "example.com/StepPlan", "parameters": {"metric": "rps"}}]`.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.core.meta import annotations_of, replace_annotations
from trimtab.model.field_errors import FieldError, FieldPath, aggregate, duplicate, invalid, too_many
from trimtab.model.hpa.metric_annotations import MetricAnnotationError, load_annotation, shape_errors
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, ReplicaPolicySpec
from trimtab.model.json import wire
from trimtab.model.json.wire import Json, without_members
from trimtab.model.plugin_names import RULE, is_plugin_name

FIELD = "replicaPolicies"
ANNOTATION = "autoscaling.trimtab.dev/replica-policies"
MAX_POLICIES = 4
"""Policies of one HPA; each may keep 1 KiB in its status."""
MAX_PARAMETER_BYTES = 4096


def validate_policies(policies: tuple[ReplicaPolicySpec, ...], path: FieldPath) -> list[FieldError]:
    """Return what is wrong with the policies of a spec."""
    errors = [too_many(path, len(policies), MAX_POLICIES)] if len(policies) > MAX_POLICIES else []
    seen: set[str] = set()
    for position, policy in enumerate(policies):
        place = path.index(position)
        if not is_plugin_name(policy.name):
            errors.append(invalid(place.child("name"), policy.name, RULE))
        elif policy.name in seen:
            errors.append(duplicate(place.child("name"), policy.name))
        seen.add(policy.name)
        if (size := len(msgspec.json.encode(policy.parameters))) > MAX_PARAMETER_BYTES:
            detail = f"must be at most {MAX_PARAMETER_BYTES} bytes of JSON, not {size}"
            errors.append(invalid(place.child("parameters"), "{...}", detail))
    return errors


def parse_annotation(text: str) -> tuple[ReplicaPolicySpec, ...]:
    """Return the policies that an annotation names, or raise MetricAnnotationError."""
    path = FieldPath(FIELD)
    content = load_annotation(ANNOTATION, text)
    errors = shape_errors(content, tuple[ReplicaPolicySpec, ...], path)
    if not errors:
        policies = wire.convert(content, tuple[ReplicaPolicySpec, ...])
        errors = validate_policies(policies, path)
        if not errors:
            return policies
    raise MetricAnnotationError(ANNOTATION, aggregate(errors))


def annotation_error(spec: HorizontalPodAutoscalerSpec, annotations: Mapping[str, str]) -> str:
    """Return what is wrong with the annotation of a native HPA, or an empty text."""
    text = annotations.get(ANNOTATION)
    if not text or spec.replica_policies:
        return ""  # absent, or taken into the spec
    try:
        parse_annotation(text)
    except MetricAnnotationError as error:
        return str(error)
    return ""


def apply_annotation(
    spec: HorizontalPodAutoscalerSpec, annotations: Mapping[str, str]
) -> HorizontalPodAutoscalerSpec:
    """Return the spec of a native HPA with the policies of its annotation, unless that is wrong."""
    if ANNOTATION not in annotations:
        return spec
    try:
        return msgspec.structs.replace(spec, replica_policies=parse_annotation(annotations[ANNOTATION]))
    except MetricAnnotationError:
        return spec  # the decision reports it


def into_annotation(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with the policies in the annotation, as Kubernetes' own kind needs them."""
    spec = data.get("spec") or {}
    if not spec.get(FIELD):
        return dict(data)
    text = json.dumps(spec[FIELD], separators=(",", ":"), ensure_ascii=False)
    annotated = replace_annotations(data, {**annotations_of(data), ANNOTATION: text})
    return {**annotated, "spec": without_members(spec, (FIELD,))}


def into_field(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with the policies in the field. Raise MetricAnnotationError if the annotation is wrong."""
    annotations = annotations_of(data)
    if ANNOTATION not in annotations:
        return dict(data)
    policies = [wire.to_builtins(policy) for policy in parse_annotation(annotations[ANNOTATION])]
    rest = replace_annotations(data, without_members(annotations, (ANNOTATION,)))
    return {**rest, "spec": {**(data.get("spec") or {}), FIELD: policies}}
