"""Annotations that carry Trimtab's metric fields on a native HPA.

A real API server prunes `onLoss`, `maxAgeSeconds` and `activation` from Kubernetes' own kind. The annotation says the same: a JSON
object from a metric's name to the value of the field, `{"sqs_messages": {"policy": "Ignore"}}`. Where several metrics
have one name, `[1]` means the second metric of the spec.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from trimtab.model.core.meta import annotations_of, replace_annotations
from trimtab.model.field_errors import FieldError, FieldPath, aggregate, invalid
from trimtab.model.hpa.defaults import DEFAULT_CPU_UTILIZATION, cpu_utilization_metric
from trimtab.model.hpa.metric_fields import validate_activation, validate_loss, validate_max_age
from trimtab.model.hpa.metric_kinds import KINDS, kind_of, name_of
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, MetricLoss, MetricSpec
from trimtab.model.json import shape, wire
from trimtab.model.json.wire import Json, without_members
from trimtab.model.quantity import Quantity


class MetricAnnotationError(ValueError):
    """The annotation `annotation` cannot be used, for the reason in the message."""

    def __init__(self, annotation: str, message: str) -> None:
        super().__init__(message)
        self.annotation = annotation


def load_annotation(name: str, text: str) -> Any:
    """Return the JSON of an annotation, or raise MetricAnnotationError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MetricAnnotationError(name, f"it is no JSON: {error}") from None


def shape_errors(content: Any, kind: type[Any], path: FieldPath) -> list[FieldError]:
    """Return why JSON is no value of a type, fields included that the type has not."""
    return shape.misfits(content, kind, path) or [
        invalid(field, "", f"unknown field; did you mean {near}?" if near else "unknown field")
        for field, near in shape.unknown_fields(content, kind, path)
    ]


@dataclass(frozen=True)
class MetricAnnotation:
    """The annotation of one metric field."""

    name: str
    """The annotation's key."""
    field: str
    """The metric's field in JSON."""
    values: str
    """What the values are, in the plural, for messages."""
    consequence: str
    """What follows from an annotation that cannot be used."""
    kind: type[Any]
    """The type of a value."""
    validate: Callable[[Any, FieldPath], list[FieldError]]
    """Return the errors of a value."""
    is_in_source: bool = False
    """Whether the field is beside the target, in the sources that have it."""

    def parse_values(self, text: str, metrics: Sequence[MetricSpec]) -> tuple[Any, ...]:
        """Return the value for each metric in JSON, or None.

        Raise MetricAnnotationError if the text is wrong.
        """
        values = self._parse(text)
        names = [name_of(metric) for metric in metrics]
        places = [f"[{index}]" for index in range(len(metrics))]
        if unknown := sorted(values.keys() - {*names, *places}):
            known = ", ".join(dict.fromkeys(names))
            raise self._error(f"{unknown[0]!r} is no metric of the spec; its metrics are {known}")
        found = tuple(
            values[place] if place in values else values.get(name)
            for place, name in zip(places, names, strict=True)
        )
        for value, metric, name in zip(found, metrics, names, strict=True):
            kind = kind_of(metric)
            if value is not None and self.is_in_source and not (kind and kind.has(self.field)):
                raise self._error(f"{name} is a {metric.type} metric, which has no {self.field}")
        return found

    def path(self, metric: Mapping[str, Any]) -> str:
        """Return the path of the field in a metric in JSON."""
        return f"{_source_field(metric)}.{self.field}" if self.is_in_source else self.field

    def read(self, metric: Mapping[str, Any]) -> Any:
        """Return the field of a metric in JSON, or None if it is not set."""
        part = metric.get(_source_field(metric)) if self.is_in_source else metric
        return part.get(self.field) if isinstance(part, Mapping) else None

    def write(self, metric: Mapping[str, Any], value: Any) -> Json:
        """Return a metric in JSON with the field, or without it if the value is None."""
        if self.is_in_source:
            field = _source_field(metric)
            part = metric.get(field)
            if not isinstance(part, Mapping):
                return dict(metric)
            return {**metric, field: _with_member(part, self.field, value)}
        return _with_member(metric, self.field, value)

    def apply(self, spec: HorizontalPodAutoscalerSpec, text: str) -> HorizontalPodAutoscalerSpec:
        """Return the spec of a native HPA with the annotation's values.

        Raise MetricAnnotationError if the text is wrong.
        """
        metrics = tuple(
            metric if value is None else wire.convert(self.write(wire.to_builtins(metric), value), MetricSpec)
            for metric, value in zip(spec.metrics, self.parse_values(text, spec.metrics), strict=True)
        )
        return msgspec.structs.replace(spec, metrics=metrics)

    def into_annotation(self, data: Mapping[str, Any]) -> Json:
        """Return v2 JSON with the values in the annotation, as Kubernetes' own kind needs them."""
        metrics = (data.get("spec") or {}).get("metrics") or []
        values = self._values_by_key(metrics)
        if not values:
            return dict(data)
        text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
        annotated = replace_annotations(data, {**annotations_of(data), self.name: text})
        return {
            **annotated,
            "spec": {**data["spec"], "metrics": [self.write(metric, None) for metric in metrics]},
        }

    def into_field(self, data: Mapping[str, Any]) -> Json:
        """Return v2 JSON with the values in the field of each metric.

        Raise MetricAnnotationError if the annotation is wrong.
        """
        annotations = annotations_of(data)
        if self.name not in annotations:
            return dict(data)
        spec = data.get("spec") or {}
        metrics = spec.get("metrics") or []
        typed = [wire.convert(dict(metric), MetricSpec) for metric in metrics]
        filled = [
            dict(metric) if value is None else self.write(metric, value)
            for metric, value in zip(metrics, self.parse_values(annotations[self.name], typed), strict=True)
        ]
        rest = replace_annotations(data, without_members(annotations, (self.name,)))
        return {**rest, "spec": {**spec, "metrics": filled}}

    def _parse(self, text: str) -> Json:
        content = load_annotation(self.name, text)
        if not isinstance(content, dict):
            given = shape.describe(content)
            raise self._error(f"it must be an object from metric names to {self.values}, not {given}")
        for name, value in content.items():
            path = FieldPath(name)
            if errors := shape_errors(value, self.kind, path) or self.validate(
                wire.convert(value, self.kind), path
            ):
                raise self._error(aggregate(errors))
        return content

    def _values_by_key(self, metrics: Sequence[Mapping[str, Any]]) -> Json:
        """Return the values by metric name, or by position where several metrics have one name."""
        names = [name_of(wire.convert(dict(metric), MetricSpec)) for metric in metrics]
        return {
            names[index] if names.count(names[index]) == 1 else f"[{index}]": value
            for index, metric in enumerate(metrics)
            if (value := self.read(metric)) is not None
        }

    def _error(self, message: str) -> MetricAnnotationError:
        return MetricAnnotationError(self.name, message)


ON_LOSS = MetricAnnotation(
    name="autoscaling.trimtab.dev/on-loss",
    field="onLoss",
    values="policies",
    consequence="every metric that is lost holds",
    kind=MetricLoss,
    validate=validate_loss,
)
"""`{"sqs_messages": {"policy": "Ignore"}}`."""

MAX_AGE = MetricAnnotation(
    name="autoscaling.trimtab.dev/max-age-seconds",
    field="maxAgeSeconds",
    values="seconds",
    consequence="the operator's limits hold for every metric",
    kind=int,
    validate=validate_max_age,
)
"""`{"sqs_messages": 600}`."""

ACTIVATION = MetricAnnotation(
    name="autoscaling.trimtab.dev/activation",
    field="activation",
    values="quantities",
    consequence="any value above 0 asks for a pod",
    kind=Quantity,
    validate=validate_activation,
    is_in_source=True,
)
"""`{"sqs_messages": "5"}`."""

METRIC_ANNOTATIONS: tuple[MetricAnnotation, ...] = (ON_LOSS, MAX_AGE, ACTIVATION)
"""Every metric field of Trimtab's own; a new field is one more entry."""


def apply_annotations(
    spec: HorizontalPodAutoscalerSpec, annotations: Mapping[str, str]
) -> HorizontalPodAutoscalerSpec:
    """Return the spec of a native HPA with the values of its annotations, except wrong ones."""
    for annotation in METRIC_ANNOTATIONS:
        if annotation.name in annotations:
            try:
                spec = annotation.apply(spec, annotations[annotation.name])
            except MetricAnnotationError:
                continue  # the decision reports it
    return spec


def into_annotations(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with every metric field of Trimtab's in its annotation."""
    for annotation in METRIC_ANNOTATIONS:
        data = annotation.into_annotation(data)
    return dict(data)


def into_fields(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with every such annotation in its field.

    Raise MetricAnnotationError if an annotation is wrong. An annotation may be about the metric that a server adds to a
    spec without metrics, which then has to be written down.
    """
    annotations, spec = annotations_of(data), data.get("spec") or {}
    if not spec.get("metrics") and any(annotation.name in annotations for annotation in METRIC_ANNOTATIONS):
        data = {**data, "spec": {**spec, "metrics": [cpu_utilization_metric(DEFAULT_CPU_UTILIZATION)]}}
    for annotation in METRIC_ANNOTATIONS:
        data = annotation.into_field(data)
    return dict(data)


def without_fields(metrics: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the metrics without the fields that only Trimtab's own kind has."""
    for annotation in METRIC_ANNOTATIONS:
        metrics = [annotation.write(metric, None) for metric in metrics]
    return [dict(metric) for metric in metrics]


def _source_field(metric: Mapping[str, Any]) -> str:
    kind = KINDS.get(metric.get("type") or "")
    return "" if kind is None else kind.field


def _with_member(data: Mapping[str, Any], name: str, value: Any) -> Json:
    return without_members(data, (name,)) if value is None else {**data, name: value}
