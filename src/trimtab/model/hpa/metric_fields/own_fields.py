"""The fields of metrics that only our own kind has, all together."""

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.model.hpa.defaults import DEFAULT_CPU_UTILIZATION, cpu_utilization_metric
from trimtab.model.hpa.metric_fields.metric_annotation import (
    MetricAnnotation,
    MetricAnnotationError,
)
from trimtab.model.hpa.metric_fields.on_loss import ON_LOSS
from trimtab.model.hpa.metric_fields.sample_age import MAX_AGE
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec

Json = dict[str, Any]

OWN_METRIC_FIELDS: tuple[MetricAnnotation[Any], ...] = (ON_LOSS, MAX_AGE)
"""A new field is one more entry."""


def with_annotations(
    spec: HorizontalPodAutoscalerSpec, annotations: Mapping[str, str]
) -> HorizontalPodAutoscalerSpec:
    """Return the spec of a native HPA with what its annotations say; a wrong one is left out."""
    for own in OWN_METRIC_FIELDS:
        if own.name in annotations:
            try:
                spec = own.with_values(spec, annotations[own.name])
            except MetricAnnotationError:
                continue  # the decision tells
    return spec


def texts_of(annotations: Mapping[str, str]) -> tuple[str | None, ...]:
    """Return the annotations that stand for fields of metrics."""
    return tuple(annotations.get(own.name) for own in OWN_METRIC_FIELDS)


def into_annotations(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with every such field in its annotation."""
    for own in OWN_METRIC_FIELDS:
        data = own.into_annotation(data)
    return dict(data)


def into_fields(data: Mapping[str, Any]) -> Json:
    """Return v2 JSON with every such annotation in its field; raise MetricAnnotationError if one is wrong.

    An annotation may be about the metric that a server adds to a spec without any, which then has to be written down.
    """
    annotations, spec = (data.get("metadata") or {}).get("annotations") or {}, data.get("spec") or {}
    if not spec.get("metrics") and any(own.name in annotations for own in OWN_METRIC_FIELDS):
        data = {**data, "spec": {**spec, "metrics": [cpu_utilization_metric(DEFAULT_CPU_UTILIZATION)]}}
    for own in OWN_METRIC_FIELDS:
        data = own.into_fields(data)
    return dict(data)


def without_fields(metrics: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the metrics without these fields."""
    for own in OWN_METRIC_FIELDS:
        metrics = own.without(metrics)
    return [dict(metric) for metric in metrics]
