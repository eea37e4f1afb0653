"""Annotations that carry Trimtab's metric fields on a native HPA.

A real API server prunes `onLoss` and `maxAgeSeconds` from Kubernetes' own kind. The annotation says the same: a JSON
object from a metric's name to the value of the field, `{"sqs_messages": {"policy": "Ignore"}}`. Where several metrics
have one name, `[1]` means the second metric of the spec.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.model.core.meta import annotations_of, replace_annotations
from trimtab.model.field_errors import FieldError, FieldPath, aggregate, invalid
from trimtab.model.hpa.defaults import DEFAULT_CPU_UTILIZATION, cpu_utilization_metric
from trimtab.model.hpa.metric_fields import default_loss, validate_loss, validate_max_age
from trimtab.model.hpa.metric_kinds import name_of
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, MetricLoss, MetricSpec
from trimtab.model.json import shape, wire
from trimtab.model.json.wire import Json, without_members

T = TypeVar("T")


class MetricAnnotationError(ValueError):
    """The annotation `annotation` cannot be used, for the reason in the message."""

    def __init__(self, annotation: str, message: str) -> None:
        super().__init__(message)
        self.annotation = annotation


@dataclass(frozen=True)
class MetricAnnotation(Generic[T]):
    """The annotation of one metric field."""

    name: str
    """The annotation's key."""
    field: str
    """The metric's field in JSON."""
    attribute: str
    """The same field of a `MetricSpec`."""
    values: str
    """What the values are, in the plural, for messages."""
    consequence: str
    """What follows from an annotation that cannot be used."""
    parse: Callable[[FieldPath, Any], T | list[FieldError]]
    """Return the value that JSON means, or its errors."""

    def parse_values(self, text: str, metrics: Sequence[MetricSpec]) -> tuple[T | None, ...]:
        """Return the value for each metric.

        Raise MetricAnnotationError if the text is wrong.
        """
        values = self._parse(text)
        names = [name_of(metric) for metric in metrics]
        places = [f"[{index}]" for index in range(len(metrics))]
        if unknown := sorted(values.keys() - {*names, *places}):
            known = ", ".join(dict.fromkeys(names))
            raise self._error(f"{unknown[0]!r} is no metric of the spec; its metrics are {known}")
        return tuple(
            values[place] if place in values else values.get(name)
            for place, name in zip(places, names, strict=True)
        )

    def apply(self, spec: HorizontalPodAutoscalerSpec, text: str) -> HorizontalPodAutoscalerSpec:
        """Return the spec of a native HPA with the annotation's values.

        Raise MetricAnnotationError if the text is wrong.
        """
        metrics = tuple(
            metric if value is None else msgspec.structs.replace(metric, **{self.attribute: value})
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
        return {**annotated, "spec": {**data["spec"], "metrics": self.without_field(metrics)}}

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
            dict(metric) if value is None else {**metric, self.field: wire.to_builtins(value)}
            for metric, value in zip(metrics, self.parse_values(annotations[self.name], typed), strict=True)
        ]
        rest = replace_annotations(data, without_members(annotations, (self.name,)))
        return {**rest, "spec": {**spec, "metrics": filled}}

    def without_field(self, metrics: Sequence[Mapping[str, Any]]) -> list[Json]:
        """Return the metrics without the field."""
        return [without_members(metric, (self.field,)) for metric in metrics]

    def _parse(self, text: str) -> dict[str, T]:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._error(f"it is no JSON: {error}") from None
        if not isinstance(content, dict):
            given = shape.describe(content)
            raise self._error(f"it must be an object from metric names to {self.values}, not {given}")
        values: dict[str, T] = {}
        for name, value in content.items():
            parsed = self.parse(FieldPath(name), value)
            if isinstance(parsed, list):
                raise self._error(aggregate(parsed))
            values[name] = parsed
        return values

    def _values_by_key(self, metrics: Sequence[Mapping[str, Any]]) -> Json:
        """Return the values by metric name, or by position where several metrics have one name."""
        names = [name_of(wire.convert(dict(metric), MetricSpec)) for metric in metrics]
        return {
            names[index] if names.count(names[index]) == 1 else f"[{index}]": metric[self.field]
            for index, metric in enumerate(metrics)
            if metric.get(self.field) is not None
        }

    def _error(self, message: str) -> MetricAnnotationError:
        return MetricAnnotationError(self.name, message)


def _parse_loss(path: FieldPath, content: Any) -> MetricLoss | list[FieldError]:
    errors = shape.misfits(content, MetricLoss, path) or [
        invalid(field, "", "unknown field; policy, maxAgeSeconds and replicas are known")
        for field, _ in shape.unknown_fields(content, MetricLoss)
    ]
    if errors:
        return errors
    loss = wire.convert(default_loss(content), MetricLoss)
    return validate_loss(loss, path) or loss


def _parse_max_age(path: FieldPath, content: Any) -> int | list[FieldError]:
    errors = shape.misfits(content, int, path)
    return errors or validate_max_age(content, path) or int(content)


ON_LOSS = MetricAnnotation[MetricLoss](
    name="autoscaling.trimtab.dev/on-loss",
    field="onLoss",
    attribute="on_loss",
    values="policies",
    consequence="every metric that is lost holds",
    parse=_parse_loss,
)
"""`{"sqs_messages": {"policy": "Ignore"}}`."""

MAX_AGE = MetricAnnotation[int](
    name="autoscaling.trimtab.dev/max-age-seconds",
    field="maxAgeSeconds",
    attribute="max_age_seconds",
    values="seconds",
    consequence="the operator's limits hold for every metric",
    parse=_parse_max_age,
)
"""`{"sqs_messages": 600}`."""

METRIC_ANNOTATIONS: tuple[MetricAnnotation[Any], ...] = (ON_LOSS, MAX_AGE)
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
    return [
        without_members(metric, [annotation.field for annotation in METRIC_ANNOTATIONS]) for metric in metrics
    ]
