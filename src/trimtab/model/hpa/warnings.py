"""Warnings about HPAs that are valid but probably not meant.

`trimtab validate` prints them. They never stop an object from being stored.
"""

from collections.abc import Mapping
from typing import Any

from trimtab.model.core.meta import annotations_of, group_of
from trimtab.model.field_errors import FieldWarning
from trimtab.model.hpa import replica_policies, selection_strategy
from trimtab.model.hpa.annotations import misplaced_annotations, misspelt_annotations
from trimtab.model.hpa.dry_run import MODE_ANNOTATION, mode_problem
from trimtab.model.hpa.manifest import to_defaulted_v2
from trimtab.model.hpa.metric_annotations import METRIC_ANNOTATIONS, MetricAnnotation, MetricAnnotationError
from trimtab.model.hpa.metric_kinds import kind_of, measured_by, target_of
from trimtab.model.hpa.selection_strategy import NATIVE_GROUP
from trimtab.model.hpa.types import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HPAScalingRules,
    LossPolicy,
    MetricSpec,
    ScalingPolicySelect,
    ScalingPolicyType,
)
from trimtab.model.hpa.versions.v1_annotations import unreadable
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity

_NO_FIELD = "is dropped: Kubernetes' own kind has no such field. Say it in the annotation"
_OWN_KIND = "use autoscaling.trimtab.dev/v2"
_ONE = Quantity.from_int(1)


def warnings_for(hpa: HorizontalPodAutoscaler) -> list[FieldWarning]:
    """Return what is probably not meant in a valid, defaulted HPA."""
    warnings = _zero_warnings(hpa.spec) if hpa.spec.min_replicas == 0 else []
    warnings += _fixed_size(hpa.spec)
    for position, metric in enumerate(hpa.spec.metrics):
        path, kind = f"spec.metrics[{position}]", kind_of(metric)
        if kind is not None:
            warnings += kind.unused_target(target_of(metric), f"{path}.{kind.field}.target")
            if kind.activation(kind.part(metric)) is not None and hpa.spec.min_replicas != 0:
                message = f"has no effect with minReplicas {hpa.spec.min_replicas}: set minReplicas to 0"
                warnings.append(FieldWarning(f"{path}.{kind.field}.activation", message))
        warnings += _unused_loss_policy(metric, hpa.spec, f"{path}.onLoss")
    return warnings


def strategy_of_native(data: Mapping[str, Any]) -> list[FieldWarning]:
    """Warn of a native object's strategy fields, which its API server drops."""
    spec = data.get("spec") or {}
    if group_of(str(data.get("apiVersion"))) != NATIVE_GROUP:
        return []
    return [
        FieldWarning(f"spec.{name}", f"{_NO_FIELD} {selection_strategy.ANNOTATION}, or {_OWN_KIND}")
        for name in (selection_strategy.FIELD, selection_strategy.PROPOSED)
        if spec.get(name) is not None
    ]


def unknown_annotations(data: Mapping[str, Any]) -> list[FieldWarning]:
    """Warn of Trimtab's annotations that contradict each other or have unknown values, and of those without effect."""
    annotations = annotations_of(data)
    is_native = group_of(str(data.get("apiVersion"))) == NATIVE_GROUP
    ignored = misspelt_annotations(annotations) | ({} if is_native else misplaced_annotations(annotations))
    problems = {MODE_ANNOTATION: mode_problem(str(annotations.get(MODE_ANNOTATION) or ""))}
    strategies = [name for name in selection_strategy.ANNOTATIONS if annotations.get(name)]
    if strategies:
        problems[strategies[0]] = selection_strategy.problem_of(data)
    return [
        FieldWarning(f"metadata.annotations[{name}]", f"{problem}; nothing is scaled until then")
        for name, problem in problems.items()
        if problem
    ] + [FieldWarning(f"metadata.annotations[{name}]", problem) for name, problem in ignored.items()]


def metric_fields_of_native(data: Mapping[str, Any]) -> list[FieldWarning]:
    """Warn of a native object's metric fields that are dropped, and annotations that are wrong."""
    if group_of(str(data.get("apiVersion"))) != NATIVE_GROUP:
        return []
    spec = data.get("spec") or {}
    metrics = spec.get("metrics") or []
    annotations = annotations_of(data)
    warnings = _policies_of_native(spec, annotations)
    for annotation in METRIC_ANNOTATIONS:
        message = f"{_NO_FIELD} {annotation.name}, or {_OWN_KIND}"
        warnings += [
            FieldWarning(f"spec.metrics[{position}].{annotation.path(metric)}", message)
            for position, metric in enumerate(metrics)
            if annotation.read(metric) is not None
        ]
        if annotation.name in annotations:
            warnings += _wrong_annotation(annotation, annotations[annotation.name], data)
    return warnings


def _policies_of_native(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> list[FieldWarning]:
    warnings: list[FieldWarning] = []
    if spec.get(replica_policies.FIELD):
        message = f"{_NO_FIELD} {replica_policies.ANNOTATION}, or {_OWN_KIND}"
        warnings.append(FieldWarning(f"spec.{replica_policies.FIELD}", message))
    if text := annotations.get(replica_policies.ANNOTATION):
        try:
            replica_policies.parse_annotation(text)
        except MetricAnnotationError as error:
            message = f"cannot be read, so replicas are not lowered: {error}"
            warnings.append(FieldWarning(f"metadata.annotations[{replica_policies.ANNOTATION}]", message))
    return warnings


def _wrong_annotation(annotation: MetricAnnotation, text: str, data: Mapping[str, Any]) -> list[FieldWarning]:
    # An annotation may be about the metric that a server adds to a spec without metrics.
    spec = wire.convert({"metrics": to_defaulted_v2(data)["spec"]["metrics"]}, HorizontalPodAutoscalerSpec)
    try:
        annotation.parse_values(text, spec.metrics)
    except MetricAnnotationError as error:
        message = f"is ignored, so {annotation.consequence}: {error}"
        return [FieldWarning(f"metadata.annotations[{annotation.name}]", message)]
    return []


def ignored_annotations(data: Mapping[str, Any]) -> list[FieldWarning]:
    """Warn of annotations of a v1 or v2beta1 object that cannot be read."""
    if data.get("apiVersion") not in {"autoscaling/v1", "autoscaling/v2beta1"}:
        return []
    message = "cannot be read, so it is ignored and what it should say is lost: correct its JSON or use autoscaling/v2"
    return [
        FieldWarning(f"metadata.annotations[{name}]", message) for name in unreadable(annotations_of(data))
    ]


def _zero_warnings(spec: HorizontalPodAutoscalerSpec) -> list[FieldWarning]:
    up = spec.behavior.scale_up if spec.behavior else None
    down = spec.behavior.scale_down if spec.behavior else None
    return (
        (_scale_down_to_zero(down) if down else [])
        + (_scale_up_from_zero(up) if up else [])
        + _never_zero(spec)
    )


def _scale_down_to_zero(rules: HPAScalingRules) -> list[FieldWarning]:
    warnings = []
    if rules.tolerance is not None and rules.tolerance >= _ONE:
        message = (
            f"a tolerance of {rules.tolerance} covers even a metric of 0, so the workload never scales to zero "
            "although minReplicas is 0: use a tolerance below 1"
        )
        warnings.append(FieldWarning("spec.behavior.scaleDown.tolerance", message))
    if rules.select_policy == ScalingPolicySelect.DISABLED:
        message = "scaling down is disabled, so minReplicas 0 is never reached: allow it or raise minReplicas"
        warnings.append(FieldWarning("spec.behavior.scaleDown.selectPolicy", message))
    return warnings


def _scale_up_from_zero(rules: HPAScalingRules) -> list[FieldWarning]:
    if rules.select_policy == ScalingPolicySelect.DISABLED:
        message = "scaling up is disabled, so a workload that reached zero stays there: allow it or raise minReplicas"
        return [FieldWarning("spec.behavior.scaleUp.selectPolicy", message)]
    if rules.policies and all(policy.type == ScalingPolicyType.PERCENT for policy in rules.policies):
        message = (
            "a percentage of zero replicas is zero, so Kubernetes' own autoscaler never leaves zero with Percent "
            "policies alone: add a Pods policy"
        )
        return [FieldWarning("spec.behavior.scaleUp.policies", message)]
    return []


def _never_zero(spec: HorizontalPodAutoscalerSpec) -> list[FieldWarning]:
    return [
        FieldWarning(
            f"spec.metrics[{position}]",
            f"a {metric.type} metric asks for at least one replica while a pod uses anything, so minReplicas 0 "
            "is rarely reached: scale on Object or External metrics alone",
        )
        for position, metric in enumerate(spec.metrics)
        if measured_by(metric).resource
    ]


def _fixed_size(spec: HorizontalPodAutoscalerSpec) -> list[FieldWarning]:
    if spec.min_replicas != spec.max_replicas:
        return []
    message = f"minReplicas is also {spec.max_replicas}, so nothing is ever scaled: raise maxReplicas"
    return [FieldWarning("spec.maxReplicas", message)]


def _unused_loss_policy(
    metric: MetricSpec, spec: HorizontalPodAutoscalerSpec, path: str
) -> list[FieldWarning]:
    policy, low, high = metric.on_loss, spec.min_replicas or 0, spec.max_replicas
    if policy is None:
        return []
    if policy.policy == LossPolicy.IGNORE and len(spec.metrics) == 1:
        message = "this is the only metric, and without any the workload holds: use LastGood or Replicas"
        return [FieldWarning(f"{path}.policy", message)]
    if policy.replicas is not None and not low <= policy.replicas <= high:
        message = f"is outside of minReplicas {low} and maxReplicas {high}, which bound it"
        return [FieldWarning(f"{path}.replicas", message)]
    return []
