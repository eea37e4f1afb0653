"""Conversion from autoscaling/v1 to v2 and back, and from v2beta1 to v2, without loss.

Conversion works on JSON and keeps metadata and unknown fields. What v1 has no field for goes into annotations in
upstream's form. That form loses the type of a target, the place of the CPU metric and an absent value. Where that would
change the object, an annotation of Trimtab's own holds the exact metrics as well.
"""

from collections.abc import Callable, Mapping
from typing import Any

from trimtab.model.core.meta import annotations_of, replace_annotations
from trimtab.model.hpa import selection_strategy, types
from trimtab.model.hpa.defaults import DEFAULT_CPU_UTILIZATION, cpu_utilization_metric, default_behavior
from trimtab.model.hpa.versions import v1, v1_annotations
from trimtab.model.hpa.versions.canonical import canonical_as
from trimtab.model.hpa.versions.flat_metrics import flat_metric, nested_metric
from trimtab.model.json import shape
from trimtab.model.json.wire import Json, without_members

V1 = "autoscaling/v1"
V2 = "autoscaling/v2"

_ANNOTATED_SPEC = frozenset({"metrics", "behavior"})
_ANNOTATED_STATUS = frozenset({"currentMetrics", "conditions"})
_CPU_TARGET = "targetCPUUtilizationPercentage"
_CPU_CURRENT = "currentCPUUtilizationPercentage"


def v2_to_v1(data: Mapping[str, Any], *, exact: bool = True) -> Json:
    """Return a v2 object as v1, without `exact` in the very form that upstream writes."""
    out = selection_strategy.into_annotation(canonical_v2(data))
    spec, status = out["spec"], out.get("status") or {}
    metrics = spec.get("metrics") or []
    sent = (data.get("spec") or {}).get("behavior") or {}
    annotations = _spec_annotations(spec, sent, exact) | _status_annotations(status)
    if exact:
        annotations |= _exact_annotations(metrics, status)
    out["spec"] = without_members(spec, _ANNOTATED_SPEC)
    if (percent := _cpu_target(metrics)) is not None:
        out["spec"][_CPU_TARGET] = percent
    if "status" in out:
        out["status"] = without_members(status, _ANNOTATED_STATUS) | _current_cpu(status)
    return {**_with_round_trip(out, annotations), "apiVersion": V1}


def v1_to_v2(data: Mapping[str, Any]) -> Json:
    """Return a v1 object and the content of its annotations as v2."""
    out = selection_strategy.into_field(_canonical(data, v1.V1HorizontalPodAutoscaler))
    annotations = annotations_of(out)
    spec, status = out["spec"], out.get("status", {})
    spec |= {"metrics": _metrics_from(annotations, spec.pop(_CPU_TARGET, None))} | _behavior_from(annotations)
    if filled := status | _status_from(annotations, status.pop(_CPU_CURRENT, None)):
        out["status"] = filled
    return canonical_v2({**out, "apiVersion": V2})


def v2beta1_to_v2(data: Mapping[str, Any]) -> Json:
    """Return a v2beta1 object as v2, with the behavior of v1's annotation."""
    out = _canonical(data, v1.V2beta1HorizontalPodAutoscaler)
    if metrics := out["spec"].get("metrics"):
        out["spec"]["metrics"] = [nested_metric(metric, "target") for metric in metrics]
    if current := out.get("status", {}).get("currentMetrics"):
        out["status"]["currentMetrics"] = [nested_metric(metric, "current") for metric in current]
    out["spec"] |= _behavior_from(annotations_of(out))
    return canonical_v2({**out, "apiVersion": V2})


def canonical_v2(data: Mapping[str, Any]) -> Json:
    """Return a v2 object in canonical form, without annotations that belong to other versions."""
    return _with_round_trip(_canonical(data, types.HorizontalPodAutoscaler), {})


def _canonical(data: Mapping[str, Any], kind: type[Any]) -> Json:
    out = canonical_as(data, kind)
    if data.get("status") is None:
        del out["status"]  # a manifest has none, and conversion should not invent one
    return out


def _spec_annotations(spec: Mapping[str, Any], sent: Mapping[str, Any], exact: bool) -> dict[str, str]:
    """Return the annotations for what v1's spec has no field for.

    `sent` is the behavior as it was sent, before it became canonical.
    """
    annotations = {}
    if flat := _flat_metrics(spec.get("metrics") or []):
        annotations[v1.METRICS_ANNOTATION] = v1_annotations.dump(flat)
    if (behavior := spec.get("behavior")) is not None:
        kept = _annotated_behavior(behavior, sent, exact)
        annotations[v1.BEHAVIOR_ANNOTATION] = v1_annotations.dump_behavior(kept)
    return annotations


def _status_annotations(status: Mapping[str, Any]) -> dict[str, str]:
    annotations = {}
    if current := status.get("currentMetrics"):
        annotations[v1.CURRENT_METRICS_ANNOTATION] = v1_annotations.dump(_flat_current_metrics(current))
    if conditions := status.get("conditions"):
        annotations[v1.CONDITIONS_ANNOTATION] = v1_annotations.dump(conditions)
    return annotations


def _exact_annotations(metrics: list[Json], status: Mapping[str, Any]) -> dict[str, str]:
    """Return annotations with the exact metrics, where upstream's convert back into other ones."""
    annotations = {}
    back = [nested_metric(metric, "target") for metric in _flat_metrics(metrics)]
    if (percent := _cpu_target(metrics)) is not None:
        back.append(cpu_utilization_metric(percent))
    if metrics and metrics != _canonical_list(back, "metrics", types.HorizontalPodAutoscalerSpec):
        annotations[v1.EXACT_METRICS_ANNOTATION] = v1_annotations.dump(metrics)
    current = status.get("currentMetrics") or []
    back = [nested_metric(metric, "current") for metric in _flat_current_metrics(current)]
    if current and current != _canonical_list(back, "currentMetrics", types.HorizontalPodAutoscalerStatus):
        annotations[v1.EXACT_CURRENT_METRICS_ANNOTATION] = v1_annotations.dump(current)
    return annotations


def _flat_metrics(metrics: list[Json]) -> list[Json]:
    flat = [flat_metric(metric, "target") for metric in metrics if not _is_cpu(metric)]
    return _canonical_list(flat, "metrics", v1.AnnotatedLists)


def _flat_current_metrics(current: list[Json]) -> list[Json]:
    return _canonical_list(
        [flat_metric(metric, "current") for metric in current], "currentMetrics", v1.AnnotatedLists
    )


def _canonical_list(items: list[Json], field: str, kind: type[Any]) -> list[Json]:
    listed: list[Json] = canonical_as({field: items}, kind).get(field, [])
    return listed


def _read_exact(annotations: Mapping[str, str], annotation: str, field: str, kind: type[Any]) -> list[Json]:
    content = {field: v1_annotations.load(annotations, annotation)}
    if content[field] is None or shape.misfits(content, kind):
        return []
    return _canonical_list(content[field], field, kind)


def _metrics_from(annotations: Mapping[str, str], cpu_target: int | None) -> list[Json]:
    listed = v1_annotations.read_list(annotations, v1.METRICS_ANNOTATION, "metrics") or []
    metrics = [nested_metric(metric, "target") for metric in listed]
    if cpu_target is not None:
        metrics.append(cpu_utilization_metric(cpu_target))
    exact = _read_exact(
        annotations, v1.EXACT_METRICS_ANNOTATION, "metrics", types.HorizontalPodAutoscalerSpec
    )
    if exact and (_cpu_target(exact), _flat_metrics(exact)) == (cpu_target, listed):
        return exact
    # v1 itself cannot default the CPU target, because only here all the metrics are known.
    return metrics or [cpu_utilization_metric(DEFAULT_CPU_UTILIZATION)]


def _behavior_from(annotations: Mapping[str, str]) -> Json:
    behavior = v1_annotations.read_behavior(annotations)
    return {} if behavior is None else {"behavior": behavior}


def _status_from(annotations: Mapping[str, str], current_cpu: int | None) -> Json:
    out: Json = {}
    listed = v1_annotations.read_list(annotations, v1.CURRENT_METRICS_ANNOTATION, "currentMetrics")
    if listed is not None:
        out["currentMetrics"] = [nested_metric(metric, "current") for metric in listed]
    elif current_cpu is not None:
        current = {"averageUtilization": current_cpu}
        out["currentMetrics"] = [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    exact = _read_exact(
        annotations,
        v1.EXACT_CURRENT_METRICS_ANNOTATION,
        "currentMetrics",
        types.HorizontalPodAutoscalerStatus,
    )
    if exact and _flat_current_metrics(exact) == listed:
        out["currentMetrics"] = exact
    conditions = v1_annotations.read_list(annotations, v1.CONDITIONS_ANNOTATION, "conditions")
    if conditions is not None:
        out["conditions"] = conditions
    return out


def _is_cpu(metric: Mapping[str, Any]) -> bool:
    """Return whether the metric is CPU utilization, for which v1 has a field."""
    source = metric.get("resource") or {}
    has_utilization = "averageUtilization" in source.get("target", {})
    return metric["type"] == "Resource" and source.get("name") == "cpu" and has_utilization


def _cpu_target(metrics: list[Json]) -> int | None:
    return next(
        (metric["resource"]["target"]["averageUtilization"] for metric in metrics if _is_cpu(metric)), None
    )


def _current_cpu(status: Mapping[str, Any]) -> Json:
    """Return v1's field for the current CPU utilization, which upstream takes from the last metric."""
    readings = [
        metric["resource"]["current"]["averageUtilization"]
        for metric in status.get("currentMetrics") or []
        if metric["type"] == "Resource"
        and metric.get("resource", {}).get("name") == "cpu"
        and "averageUtilization" in metric["resource"]["current"]
    ]
    return {_CPU_CURRENT: readings[-1]} if readings else {}


def _annotated_behavior(behavior: Json, sent: Mapping[str, Any], exact: bool) -> Json:
    """Return the behavior as v1's annotation holds it, with `exact` including its defaults.

    An API server fills in no defaults there, and rejects rules without policies. The canonical form leaves out
    `policies: []`, which is a mistake and has to stay one.
    """
    out = dict(behavior)
    for direction in behavior.keys() & {"scaleUp", "scaleDown"}:
        if (sent.get(direction) or {}).get("policies") == []:
            out[direction] = {**behavior[direction], "policies": []}
    return default_behavior(out) if exact else out


def _with_round_trip(data: Mapping[str, Any], annotations: Mapping[str, str]) -> Json:
    """Return an object whose round-trip annotations are exactly `annotations`."""
    others = without_members(annotations_of(data), v1.ROUND_TRIP_ANNOTATIONS)
    return replace_annotations(data, {**others, **annotations})


TO_V2: dict[str, Callable[[Mapping[str, Any]], Json]] = {
    V1: v1_to_v2,
    V2: canonical_v2,
    "autoscaling/v2beta1": v2beta1_to_v2,
    "autoscaling/v2beta2": lambda data: canonical_v2({**data, "apiVersion": V2}),
    "autoscaling.trimtab.dev/v2": canonical_v2,
}
"""The conversion to v2 of each apiVersion that is read."""
