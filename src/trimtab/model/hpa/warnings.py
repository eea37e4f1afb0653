"""What is legal in an HPA but surely not meant: each finding is a field and a sentence.

These never stop an object from being stored; `trimtab validate` prints them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from trimtab.model.core.meta import group_of
from trimtab.model.hpa import selection_strategy
from trimtab.model.hpa.manifest import to_defaulted_v2
from trimtab.model.hpa.metric_fields.metric_annotation import (
    MetricAnnotation,
    MetricAnnotationError,
)
from trimtab.model.hpa.metric_fields.own_fields import OWN_METRIC_FIELDS
from trimtab.model.hpa.mode import MODE_ANNOTATION, mode_problem
from trimtab.model.hpa.selection_strategy import NATIVE_GROUP
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HPAScalingRules,
    LossPolicy,
    MetricSourceType,
    MetricSpec,
    MetricTarget,
    MetricTargetType,
    ScalingPolicySelect,
    ScalingPolicyType,
)
from trimtab.model.hpa.versions.v1_annotations import unreadable
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity

_NO_FIELD = "is dropped: Kubernetes' own kind has no such field. Say it in the annotation"
_OWN_KIND = "use autoscaling.trimtab.dev/v2"
_ONE = Quantity.from_int(1)


class HPAWarning(NamedTuple):
    """A field that is probably a mistake, and why."""

    field: str
    message: str


def warnings_for(hpa: HorizontalPodAutoscaler) -> list[HPAWarning]:
    """Return what is probably not meant in a valid, defaulted HPA."""
    found = _at_zero(hpa.spec) if hpa.spec.min_replicas == 0 else []
    found += _fixed_size(hpa.spec)
    for position, metric in enumerate(hpa.spec.metrics):
        found += _unused_target(metric, f"spec.metrics[{position}]")
        found += _idle_policy(metric, hpa.spec, f"spec.metrics[{position}].onLoss")
    return found


def strategy_of_native(data: Mapping[str, Any]) -> list[HPAWarning]:
    """Return that a native object says in a field which pods count; its API server drops the field."""
    spec = data.get("spec") or {}
    if group_of(str(data.get("apiVersion"))) != NATIVE_GROUP:
        return []
    return [
        HPAWarning(f"spec.{name}", f"{_NO_FIELD} {selection_strategy.ANNOTATION}, or {_OWN_KIND}")
        for name in (selection_strategy.FIELD, selection_strategy.PROPOSED)
        if spec.get(name) is not None
    ]


def unknown_annotations(data: Mapping[str, Any]) -> list[HPAWarning]:
    """Return our annotations whose value is not known, or which contradict each other: nothing is scaled by them."""
    annotations = (data.get("metadata") or {}).get("annotations") or {}
    found = [(MODE_ANNOTATION, mode_problem(str(annotations.get(MODE_ANNOTATION) or "")))]
    set_ones = [name for name in selection_strategy.ANNOTATIONS if annotations.get(name)]
    if set_ones:
        found.append((set_ones[0], selection_strategy.problem_of(data)))
    return [
        HPAWarning(f"metadata.annotations[{name}]", f"{problem}; nothing is scaled until then")
        for name, problem in found
        if problem
    ]


def metric_fields_of_native(data: Mapping[str, Any]) -> list[HPAWarning]:
    """Return what a native object says about its metrics in a place where nobody reads it, or wrongly."""
    if group_of(str(data.get("apiVersion"))) != NATIVE_GROUP:
        return []
    metrics = (data.get("spec") or {}).get("metrics") or []
    annotations = (data.get("metadata") or {}).get("annotations") or {}
    found: list[HPAWarning] = []
    for own in OWN_METRIC_FIELDS:
        found += [
            HPAWarning(f"spec.metrics[{position}].{own.field}", f"{_NO_FIELD} {own.name}, or {_OWN_KIND}")
            for position, metric in enumerate(metrics)
            if metric.get(own.field) is not None
        ]
        if own.name in annotations:
            found += _wrong_annotation(own, annotations[own.name], data)
    return found


def _wrong_annotation(own: MetricAnnotation[Any], text: str, data: Mapping[str, Any]) -> list[HPAWarning]:
    # An annotation may be about the metric that a server adds to a spec without any.
    specs = wire.convert({"metrics": to_defaulted_v2(data)["spec"]["metrics"]}, HorizontalPodAutoscalerSpec)
    try:
        own.values_of(text, specs.metrics)
    except MetricAnnotationError as error:
        message = f"is ignored, so {own.consequence}: {error}"
        return [HPAWarning(f"metadata.annotations[{own.name}]", message)]
    return []


def ignored_annotations(data: Mapping[str, Any]) -> list[HPAWarning]:
    """Return the annotations of a readable v1 or v2beta1 object that are ignored because they cannot be read."""
    annotations = (data.get("metadata") or {}).get("annotations") or {}
    if data.get("apiVersion") not in {"autoscaling/v1", "autoscaling/v2beta1"}:
        return []
    message = "cannot be read, so it is ignored and what it should say is lost: correct its JSON or use autoscaling/v2"
    return [HPAWarning(f"metadata.annotations[{name}]", message) for name in unreadable(annotations)]


def _at_zero(spec: HorizontalPodAutoscalerSpec) -> list[HPAWarning]:
    found = []
    up, down = _rules(spec)
    if down and down.tolerance is not None and down.tolerance >= _ONE:
        message = (
            f"a tolerance of {down.tolerance} covers even a metric of 0, so the workload never scales to zero "
            "although minReplicas is 0: use a tolerance below 1"
        )
        found.append(HPAWarning("spec.behavior.scaleDown.tolerance", message))
    if down and down.select_policy == ScalingPolicySelect.DISABLED:
        message = "scaling down is disabled, so minReplicas 0 is never reached: allow it or raise minReplicas"
        found.append(HPAWarning("spec.behavior.scaleDown.selectPolicy", message))
    if up and up.select_policy == ScalingPolicySelect.DISABLED:
        message = "scaling up is disabled, so a workload that reached zero stays there: allow it or raise minReplicas"
        found.append(HPAWarning("spec.behavior.scaleUp.selectPolicy", message))
    elif up and up.policies and all(policy.type == ScalingPolicyType.PERCENT for policy in up.policies):
        message = (
            "a percentage of zero replicas is zero, so Kubernetes' own autoscaler never leaves zero with Percent "
            "policies alone: add a Pods policy"
        )
        found.append(HPAWarning("spec.behavior.scaleUp.policies", message))
    return found + _never_zero(spec)


def _never_zero(spec: HorizontalPodAutoscalerSpec) -> list[HPAWarning]:
    """Find metrics of pods: they ask for at least one pod as long as one runs."""
    of_pods = {MetricSourceType.RESOURCE, MetricSourceType.CONTAINER_RESOURCE}
    return [
        HPAWarning(
            f"spec.metrics[{position}]",
            f"a {metric.type} metric asks for at least one replica while a pod uses anything, so minReplicas 0 "
            "is rarely reached: scale on Object or External metrics alone",
        )
        for position, metric in enumerate(spec.metrics)
        if metric.type in of_pods
    ]


def _fixed_size(spec: HorizontalPodAutoscalerSpec) -> list[HPAWarning]:
    if spec.min_replicas != spec.max_replicas:
        return []
    message = f"minReplicas is also {spec.max_replicas}, so nothing is ever scaled: raise maxReplicas"
    return [HPAWarning("spec.maxReplicas", message)]


def _idle_policy(metric: MetricSpec, spec: HorizontalPodAutoscalerSpec, path: str) -> list[HPAWarning]:
    """Find policies that can never do what they say."""
    policy, low, high = metric.on_loss, spec.min_replicas or 0, spec.max_replicas
    if policy is None:
        return []
    if policy.policy == LossPolicy.IGNORE and len(spec.metrics) == 1:
        message = "this is the only metric, and without any the workload holds: use LastGood or Replicas"
        return [HPAWarning(f"{path}.policy", message)]
    if policy.replicas is not None and not low <= policy.replicas <= high:
        message = f"is outside of minReplicas {low} and maxReplicas {high}, which bound it"
        return [HPAWarning(f"{path}.replicas", message)]
    return []


def _unused_target(metric: MetricSpec, path: str) -> list[HPAWarning]:
    """Find targets whose type names a number that is not there, or that is not the one used."""
    if metric.object is not None and metric.type == MetricSourceType.OBJECT:
        return _object_target(metric.object.target, f"{path}.object.target")
    if metric.external is not None and metric.type == MetricSourceType.EXTERNAL:
        target = metric.external.target
        if (
            target.type == MetricTargetType.VALUE
            and target.value is None
            and target.average_value is not None
        ):
            message = (
                "type is Value but only averageValue is set, and that is what is used: write AverageValue"
            )
            return [HPAWarning(f"{path}.external.target.type", message)]
    return []


def _object_target(target: MetricTarget, path: str) -> list[HPAWarning]:
    given = {
        MetricTargetType.VALUE: target.value,
        MetricTargetType.AVERAGE_VALUE: target.average_value,
    }
    names = {MetricTargetType.VALUE: "value", MetricTargetType.AVERAGE_VALUE: "averageValue"}
    found = []
    for kind, name in names.items():
        if target.type == kind and given[kind] is None:
            message = f"type is {kind} but {name} is not set, so the metric fails when it is read: set {name}"
            found.append(HPAWarning(f"{path}.type", message))
        if target.type != kind and given[kind] is not None and all(given.values()):
            message = f"type is {target.type}, so this number is ignored: remove it"
            found.append(HPAWarning(f"{path}.{name}", message))
    return found


def _rules(spec: HorizontalPodAutoscalerSpec) -> tuple[HPAScalingRules | None, HPAScalingRules | None]:
    return (spec.behavior.scale_up, spec.behavior.scale_down) if spec.behavior else (None, None)
