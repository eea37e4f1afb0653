"""What a metric counts as while it cannot be read: the rules of `onLoss`, and where a native HPA carries it.

Kubernetes' own kind has no such field, and a real API server prunes it. There an annotation says the same: a JSON
object from a metric's name to its policy, `{"sqs_messages": {"policy": "Ignore"}}`. Where several metrics have one
name, `[1]` means the second metric of the spec.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trimtab.model import shape, wire
from trimtab.model.fielderror import (
    FieldError,
    FieldPath,
    aggregate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from trimtab.model.hpa.naming import name_of
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, LossPolicy, MetricLoss, MetricSpec

Json = dict[str, Any]

ANNOTATION = "autoscaling.trimtab.dev/on-loss"

DEFAULT_MAX_AGE_SECONDS = 300
"""How long a last good value counts: as long as the default scale-down window, so that the two end together."""

MOST_MAX_AGE_SECONDS = 3600
"""Longer than the longest window a last good value would be a fixed size; that is what Replicas is for."""

_FIELD = "onLoss"


class LossAnnotationError(ValueError):
    """The annotation cannot be used; the message says why."""


def validate_loss(loss: MetricLoss, path: FieldPath) -> list[FieldError]:
    """Check the policy of one metric."""
    errors = []
    if not loss.policy:
        errors.append(required(path.child("policy"), f"must be one of {', '.join(LossPolicy)}"))
    elif loss.policy not in set(LossPolicy):
        errors.append(not_supported(path.child("policy"), loss.policy, LossPolicy))
    return (
        errors
        + _validate_age(loss, path.child("maxAgeSeconds"))
        + _validate_replicas(loss, path.child("replicas"))
    )


def _validate_age(loss: MetricLoss, path: FieldPath) -> list[FieldError]:
    age = loss.max_age_seconds
    if age is None:
        return []
    if loss.policy != LossPolicy.LAST_GOOD:
        return [forbidden(path, "may only be set with policy LastGood")]
    if not 1 <= age <= MOST_MAX_AGE_SECONDS:
        return [invalid(path, age, f"must be between 1 and {MOST_MAX_AGE_SECONDS}")]
    return []


def _validate_replicas(loss: MetricLoss, path: FieldPath) -> list[FieldError]:
    if loss.policy != LossPolicy.REPLICAS:
        return [] if loss.replicas is None else [forbidden(path, "may only be set with policy Replicas")]
    if loss.replicas is None:
        return [required(path, "must be set with policy Replicas")]
    # Zero would stop a workload because nobody knows its load.
    return [] if loss.replicas >= 1 else [invalid(path, loss.replicas, "must be greater than or equal to 1")]


def default_loss(loss: Mapping[str, Any]) -> Json:
    """Return a policy with its age filled in."""
    if loss.get("policy") != LossPolicy.LAST_GOOD or loss.get("maxAgeSeconds") is not None:
        return dict(loss)
    return {**loss, "maxAgeSeconds": DEFAULT_MAX_AGE_SECONDS}


def with_annotation(spec: HorizontalPodAutoscalerSpec, text: str) -> HorizontalPodAutoscalerSpec:
    """Return the spec of a native HPA with the policies of its annotation; raise LossAnnotationError if it is wrong."""
    policies = policies_of(text, spec.metrics)
    metrics = tuple(
        metric if loss is None else msgspec.structs.replace(metric, on_loss=loss)
        for metric, loss in zip(spec.metrics, policies, strict=True)
    )
    return msgspec.structs.replace(spec, metrics=metrics)


def policies_of(text: str, metrics: tuple[MetricSpec, ...]) -> tuple[MetricLoss | None, ...]:
    """Return the policy that an annotation gives to each metric; raise LossAnnotationError if it is wrong."""
    given = _read(text)
    names = [name_of(metric) for metric in metrics]
    places = [f"[{index}]" for index in range(len(metrics))]
    if unknown := sorted(given.keys() - {*names, *places}):
        known = ", ".join(dict.fromkeys(names))
        raise LossAnnotationError(f"{unknown[0]!r} is no metric of the spec; its metrics are {known}")
    return tuple(given.get(place) or given.get(name) for place, name in zip(places, names, strict=True))


def _read(text: str) -> dict[str, MetricLoss]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LossAnnotationError(f"is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise LossAnnotationError(
            f"must be an object from metric names to policies, not {shape.describe(content)}"
        )
    return {name: _read_one(FieldPath(name), loss) for name, loss in content.items()}


def _read_one(path: FieldPath, content: Any) -> MetricLoss:
    errors = shape.misfits(content, MetricLoss, path)
    if not errors:
        errors = [
            invalid(where, "", "unknown field; policy, maxAgeSeconds and replicas are known")
            for where, _ in shape.unknown_fields(content, MetricLoss)
        ]
    if not errors:
        loss = wire.convert(default_loss(content), MetricLoss)
        errors = validate_loss(loss, path)
    if errors:
        raise LossAnnotationError(aggregate(errors))
    return loss


def into_annotation(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON whose policies stand in the annotation, as Kubernetes' own kind needs them."""
    metrics = (data.get("spec") or {}).get("metrics") or []
    kept = _keyed(metrics)
    if not kept:
        return dict(data)
    metadata = data.get("metadata") or {}
    text = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
    annotations = {**(metadata.get("annotations") or {}), ANNOTATION: text}
    return {
        **data,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**data["spec"], "metrics": without_losses(metrics)},
    }


def _keyed(metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the policies by the shortest key that tells them apart."""
    names = [name_of(wire.convert(dict(metric), MetricSpec)) for metric in metrics]
    return {
        names[index] if names.count(names[index]) == 1 else f"[{index}]": metric[_FIELD]
        for index, metric in enumerate(metrics)
        if metric.get(_FIELD) is not None
    }


def without_losses(metrics: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the metrics without their policies."""
    return [{name: value for name, value in metric.items() if name != _FIELD} for metric in metrics]


def from_annotation(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON whose policies stand in their fields; raise LossAnnotationError if the annotation is wrong."""
    metadata = data.get("metadata") or {}
    annotations = dict(metadata.get("annotations") or {})
    text = annotations.pop(ANNOTATION, None)
    metrics = (data.get("spec") or {}).get("metrics") or []
    if text is None:
        return dict(data)
    policies = policies_of(text, tuple(wire.convert(dict(metric), MetricSpec) for metric in metrics))
    filled = [
        dict(metric) if loss is None else {**metric, _FIELD: wire.to_builtins(loss)}
        for metric, loss in zip(metrics, policies, strict=True)
    ]
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return {
        **data,
        "metadata": {**rest, "annotations": annotations} if annotations else rest,
        "spec": {**(data.get("spec") or {}), "metrics": filled},
    }
