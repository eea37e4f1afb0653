"""A field of metrics that only our own kind has, and the annotation that carries it on a native HPA.

A real API server prunes the field from Kubernetes' own kind. The annotation says the same: a JSON object from a metric's
name to the field's value, `{"sqs_messages": {"policy": "Ignore"}}`. Where several metrics have one name, `[1]` means the
second metric of the spec.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.model.field_errors import FieldError, FieldPath, aggregate
from trimtab.model.hpa.metric_fields.naming import name_of
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, MetricSpec
from trimtab.model.json import shape, wire

Json = dict[str, Any]
T = TypeVar("T")


class MetricAnnotationError(ValueError):
    """An annotation cannot be used; the message says why, `annotation` which."""

    def __init__(self, annotation: str, message: str) -> None:
        super().__init__(message)
        self.annotation = annotation


@dataclass(frozen=True)
class MetricAnnotation(Generic[T]):
    """One such field."""

    name: str
    """The annotation."""
    field: str
    """The metric's field in JSON."""
    attribute: str
    """The same field of a `MetricSpec`."""
    values: str
    """What the values are, in the plural, for messages."""
    consequence: str
    """What follows from an annotation that cannot be used."""
    read: Callable[[FieldPath, Any], T | list[FieldError]]
    """Returns the value that JSON means, or what is wrong with it."""

    def values_of(self, text: str, metrics: Sequence[MetricSpec]) -> tuple[T | None, ...]:
        """Return the value of each metric; raise MetricAnnotationError if the text is wrong."""
        given = self._given(text)
        names = [name_of(metric) for metric in metrics]
        places = [f"[{index}]" for index in range(len(metrics))]
        if unknown := sorted(given.keys() - {*names, *places}):
            known = ", ".join(dict.fromkeys(names))
            raise self._error(f"{unknown[0]!r} is no metric of the spec; its metrics are {known}")
        return tuple(
            given[place] if place in given else given.get(name)
            for place, name in zip(places, names, strict=True)
        )

    def with_values(self, spec: HorizontalPodAutoscalerSpec, text: str) -> HorizontalPodAutoscalerSpec:
        """Return the spec of a native HPA with the values; raise MetricAnnotationError if the text is wrong."""
        values = self.values_of(text, spec.metrics)
        metrics = tuple(
            metric if value is None else msgspec.structs.replace(metric, **{self.attribute: value})
            for metric, value in zip(spec.metrics, values, strict=True)
        )
        return msgspec.structs.replace(spec, metrics=metrics)

    def into_annotation(self, data: Mapping[str, Any]) -> Json:
        """Return v2 JSON with the values in the annotation, as Kubernetes' own kind needs them."""
        metrics = (data.get("spec") or {}).get("metrics") or []
        kept = self._keyed(metrics)
        if not kept:
            return dict(data)
        metadata = data.get("metadata") or {}
        text = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
        annotations = {**(metadata.get("annotations") or {}), self.name: text}
        return {
            **data,
            "metadata": {**metadata, "annotations": annotations},
            "spec": {**data["spec"], "metrics": self.without(metrics)},
        }

    def into_fields(self, data: Mapping[str, Any]) -> Json:
        """Return v2 JSON with the values in their fields; raise MetricAnnotationError if the annotation is wrong."""
        metadata = data.get("metadata") or {}
        annotations = dict(metadata.get("annotations") or {})
        text = annotations.pop(self.name, None)
        metrics = (data.get("spec") or {}).get("metrics") or []
        if text is None:
            return dict(data)
        values = self.values_of(text, [wire.convert(dict(metric), MetricSpec) for metric in metrics])
        filled = [
            dict(metric) if value is None else {**metric, self.field: wire.to_builtins(value)}
            for metric, value in zip(metrics, values, strict=True)
        ]
        rest = {name: value for name, value in metadata.items() if name != "annotations"}
        return {
            **data,
            "metadata": {**rest, "annotations": annotations} if annotations else rest,
            "spec": {**(data.get("spec") or {}), "metrics": filled},
        }

    def without(self, metrics: Sequence[Mapping[str, Any]]) -> list[Json]:
        """Return the metrics without the field."""
        return [{name: value for name, value in metric.items() if name != self.field} for metric in metrics]

    def _given(self, text: str) -> dict[str, T]:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._error(f"is no JSON: {error}") from None
        if not isinstance(content, dict):
            shown = shape.describe(content)
            raise self._error(f"must be an object from metric names to {self.values}, not {shown}")
        found: dict[str, T] = {}
        for name, value in content.items():
            read = self.read(FieldPath(name), value)
            if isinstance(read, list):
                raise self._error(aggregate(read))
            found[name] = read
        return found

    def _keyed(self, metrics: Sequence[Mapping[str, Any]]) -> Json:
        """Return the values by the shortest key that tells their metrics apart."""
        names = [name_of(wire.convert(dict(metric), MetricSpec)) for metric in metrics]
        return {
            names[index] if names.count(names[index]) == 1 else f"[{index}]": metric[self.field]
            for index, metric in enumerate(metrics)
            if metric.get(self.field) is not None
        }

    def _error(self, message: str) -> MetricAnnotationError:
        return MetricAnnotationError(self.name, message)
