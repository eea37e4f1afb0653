"""autoscaling/v1 to v2 and back, and v2beta1 to v2, without loss.

Conversion works on JSON and keeps metadata and unknown fields. What v1 has no field for goes into annotations in
upstream's form. That form itself loses a target's type, the place of the CPU metric and a value that is not set;
where that would change the object, the metrics are kept once more, exactly, in an annotation of our own.
"""

from collections.abc import Callable, Mapping
from typing import Any

from trimtab.model.hpa import selection_strategy, types
from trimtab.model.hpa.defaults import DEFAULT_CPU_UTILIZATION, cpu_utilization_metric, default_behavior
from trimtab.model.hpa.versions import v1, v2beta
from trimtab.model.hpa.versions import v1_annotations as notes
from trimtab.model.hpa.versions.canonical import canonical_as
from trimtab.model.hpa.versions.flat_metrics import (
    flat_spec,
    flat_status,
    nested_spec,
    nested_status,
)
from trimtab.model.json import shape

Json = dict[str, Any]

V1 = "autoscaling/v1"
V2 = "autoscaling/v2"

_SPEC_IN_NOTES = frozenset({"metrics", "behavior"})
_STATUS_IN_NOTES = frozenset({"currentMetrics", "conditions"})
_CPU_TARGET = "targetCPUUtilizationPercentage"
_CPU_CURRENT = "currentCPUUtilizationPercentage"


def v2_to_v1(data: Mapping[str, Any], *, exact: bool = True) -> Json:
    """Return a v2 object as v1; without `exact`, only the annotations that upstream would write."""
    out = selection_strategy.into_annotation(canonical_v2(data))
    spec, status = out["spec"], out.get("status") or {}
    metrics = spec.get("metrics") or []
    kept = _kept_spec(spec, (data.get("spec") or {}).get("behavior") or {}, exact) | _kept_status(status)
    if exact:
        kept |= _exact_notes(metrics, status)
    out["spec"] = _without(spec, _SPEC_IN_NOTES)
    if (percent := _cpu_target(metrics)) is not None:
        out["spec"][_CPU_TARGET] = percent
    if "status" in out:
        out["status"] = _without(status, _STATUS_IN_NOTES) | _current_cpu(status)
    out["metadata"] = _annotated(out["metadata"], kept)
    return {**out, "apiVersion": V1}


def v1_to_v2(data: Mapping[str, Any]) -> Json:
    """Return a v1 object as v2, with what its annotations hold."""
    out = selection_strategy.into_field(_canonical(data, v1.V1HorizontalPodAutoscaler))
    found: dict[str, str] = out["metadata"].get("annotations") or {}
    spec, status = out["spec"], out.get("status", {})
    spec |= {"metrics": _metrics_from(found, spec.pop(_CPU_TARGET, None))} | _behavior_from(found)
    if filled := status | _status_from(found, status.pop(_CPU_CURRENT, None)):
        out["status"] = filled
    return _finished(out)


def v2beta1_to_v2(data: Mapping[str, Any]) -> Json:
    """Return a v2beta1 object as v2; a behavior may stand in the annotation that v1 uses."""
    out = _canonical(data, v2beta.V2beta1HorizontalPodAutoscaler)
    if metrics := out["spec"].get("metrics"):
        out["spec"]["metrics"] = [nested_spec(metric) for metric in metrics]
    if current := out.get("status", {}).get("currentMetrics"):
        out["status"]["currentMetrics"] = [nested_status(metric) for metric in current]
    out["spec"] |= _behavior_from(out["metadata"].get("annotations") or {})
    return _finished(out)


def canonical_v2(data: Mapping[str, Any]) -> Json:
    """Return a v2 object in canonical form, without annotations that belong to other versions."""
    out = _canonical(data, types.HorizontalPodAutoscaler)
    out["metadata"] = _annotated(out["metadata"], {})
    return out


def _canonical(data: Mapping[str, Any], kind: type[Any]) -> Json:
    out = canonical_as(data, kind)
    if data.get("status") is None:
        del out["status"]  # a manifest has none, and conversion should not invent one
    return out


def _finished(data: Json) -> Json:
    """Return what was put together as canonical v2."""
    return canonical_v2({**data, "apiVersion": V2})


def _kept_spec(spec: Mapping[str, Any], given: Mapping[str, Any], exact: bool) -> dict[str, str]:
    """Return the annotations for what v1's spec has no field for; `given` is the behavior as it was sent."""
    kept = {}
    if flat := _flattened(spec.get("metrics") or []):
        kept[v1.METRICS_ANNOTATION] = notes.dump(flat)
    if (behavior := spec.get("behavior")) is not None:
        kept[v1.BEHAVIOR_ANNOTATION] = notes.dump_behavior(_annotated_behavior(behavior, given, exact))
    return kept


def _flattened(metrics: list[Json]) -> list[Json]:
    """Return the metrics that v1 keeps in its annotation, as it keeps them."""
    return _canonical_list([flat_spec(metric) for metric in metrics if not _is_cpu(metric)], "metrics")


def _kept_status(status: Mapping[str, Any]) -> dict[str, str]:
    kept = {}
    if current := status.get("currentMetrics"):
        kept[v1.CURRENT_METRICS_ANNOTATION] = notes.dump(_flattened_status(current))
    if conditions := status.get("conditions"):
        kept[v1.CONDITIONS_ANNOTATION] = notes.dump(conditions)
    return kept


def _flattened_status(current: list[Json]) -> list[Json]:
    return _canonical_list([flat_status(metric) for metric in current], "currentMetrics")


def _canonical_list(items: list[Json], field: str) -> list[Json]:
    listed: list[Json] = canonical_as({field: items}, v1.AnnotatedLists).get(field, [])
    return listed


def _exact_notes(metrics: list[Json], status: Mapping[str, Any]) -> dict[str, str]:
    """Return the exact metrics where upstream's annotations would bring others back."""
    kept = {}
    back = [nested_spec(metric) for metric in _flattened(metrics)]
    if (percent := _cpu_target(metrics)) is not None:
        back.append(cpu_utilization_metric(percent))
    if metrics and metrics != _canonical_v2_list(back, "metrics", types.HorizontalPodAutoscalerSpec):
        kept[v1.EXACT_METRICS_ANNOTATION] = notes.dump(metrics)
    current = status.get("currentMetrics") or []
    back = [nested_status(metric) for metric in _flattened_status(current)]
    if current and current != _canonical_v2_list(back, "currentMetrics", types.HorizontalPodAutoscalerStatus):
        kept[v1.EXACT_CURRENT_METRICS_ANNOTATION] = notes.dump(current)
    return kept


def _exact(found: Mapping[str, str], annotation: str, field: str, kind: type[Any]) -> list[Json]:
    """Return the metrics of one of our own annotations; none if it is absent or broken."""
    content = {field: notes.load(found, annotation)}
    if content[field] is None or shape.misfits(content, kind):
        return []
    return _canonical_v2_list(content[field], field, kind)


def _canonical_v2_list(items: list[Json], field: str, kind: type[Any]) -> list[Json]:
    listed: list[Json] = canonical_as({field: items}, kind).get(field, [])
    return listed


def _metrics_from(found: Mapping[str, str], cpu_target: int | None) -> list[Json]:
    listed = notes.read_list(found, v1.METRICS_ANNOTATION, "metrics") or []
    metrics = [nested_spec(metric) for metric in listed]
    if cpu_target is not None:
        metrics.append(cpu_utilization_metric(cpu_target))
    exact = _exact(found, v1.EXACT_METRICS_ANNOTATION, "metrics", types.HorizontalPodAutoscalerSpec)
    if exact and (_cpu_target(exact), _flattened(exact)) == (cpu_target, listed):
        return exact
    # v1 has no default of its own for the CPU target, because only here all the metrics are known.
    return metrics or [cpu_utilization_metric(DEFAULT_CPU_UTILIZATION)]


def _behavior_from(found: Mapping[str, str]) -> Json:
    behavior = notes.read_behavior(found)
    return {} if behavior is None else {"behavior": behavior}


def _status_from(found: Mapping[str, str], current_cpu: int | None) -> Json:
    out: Json = {}
    listed = notes.read_list(found, v1.CURRENT_METRICS_ANNOTATION, "currentMetrics")
    if listed is not None:
        out["currentMetrics"] = [nested_status(metric) for metric in listed]
    elif current_cpu is not None:
        current = {"averageUtilization": current_cpu}
        out["currentMetrics"] = [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    exact = _exact(
        found, v1.EXACT_CURRENT_METRICS_ANNOTATION, "currentMetrics", types.HorizontalPodAutoscalerStatus
    )
    if exact and _flattened_status(exact) == listed:
        out["currentMetrics"] = exact
    if (conditions := notes.read_list(found, v1.CONDITIONS_ANNOTATION, "conditions")) is not None:
        out["conditions"] = conditions
    return out


def _is_cpu(metric: Mapping[str, Any]) -> bool:
    """Whether v1 has a field for the metric: utilization of CPU."""
    source = metric.get("resource") or {}
    has_utilization = "averageUtilization" in source.get("target", {})
    return metric["type"] == "Resource" and source.get("name") == "cpu" and has_utilization


def _cpu_target(metrics: list[Json]) -> int | None:
    return next(
        (metric["resource"]["target"]["averageUtilization"] for metric in metrics if _is_cpu(metric)), None
    )


def _current_cpu(status: Mapping[str, Any]) -> Json:
    """Return v1's CPU reading: the last one, where upstream's loop ends."""
    readings = [
        metric["resource"]["current"]["averageUtilization"]
        for metric in status.get("currentMetrics") or []
        if metric["type"] == "Resource"
        and metric.get("resource", {}).get("name") == "cpu"
        and "averageUtilization" in metric["resource"]["current"]
    ]
    return {_CPU_CURRENT: readings[-1]} if readings else {}


def _annotated_behavior(behavior: Json, given: Mapping[str, Any], exact: bool) -> Json:
    """Return the behavior as v1's annotation holds it: with its defaults, unless only upstream's form is wanted.

    An API server fills in no defaults there, and refuses rules without policies. The canonical form leaves out
    `policies: []`, which is no rule without policies but a mistake, and has to stay one.
    """
    out = dict(behavior)
    for direction in behavior.keys() & {"scaleUp", "scaleDown"}:
        if (given.get(direction) or {}).get("policies") == []:
            out[direction] = {**behavior[direction], "policies": []}
    return default_behavior(out) if exact else out


def _annotated(metadata: Mapping[str, Any], kept: Mapping[str, str]) -> Json:
    """Return metadata whose round-trip annotations are exactly `kept`."""
    others = _without(metadata.get("annotations") or {}, v1.ROUND_TRIP_ANNOTATIONS)
    annotations = {**others, **kept}
    out = _without(metadata, frozenset({"annotations"}))
    return {**out, "annotations": annotations} if annotations else out


def _without(data: Mapping[str, Any], names: frozenset[str]) -> Json:
    return {name: value for name, value in data.items() if name not in names}


TO_V2: dict[str, Callable[[Mapping[str, Any]], Json]] = {
    V1: v1_to_v2,
    V2: canonical_v2,
    "autoscaling/v2beta1": v2beta1_to_v2,
    "autoscaling/v2beta2": lambda data: canonical_v2({**data, "apiVersion": V2}),
    "autoscaling.trimtab.dev/v2": canonical_v2,
}
"""Every apiVersion that is read, and how it becomes v2."""
