"""Rules of `spec.metrics`: one source per metric, a target that fits it, names that fit into a URL."""

from collections.abc import Callable, Sequence
from typing import Any

from trimtab.model.field_errors import FieldError, FieldPath, forbidden, invalid, not_supported, required
from trimtab.model.hpa.metric_fields import validate_loss, validate_max_age
from trimtab.model.hpa.types import (
    SOURCE_FIELDS,
    ContainerResourceMetricSource,
    ExternalMetricSource,
    MetricSourceType,
    MetricSpec,
    MetricTarget,
    MetricTargetType,
    ObjectMetricSource,
    PodsMetricSource,
    ResourceMetricSource,
)
from trimtab.model.hpa.validation.reference import ReferenceOptions, validate_reference
from trimtab.model.labels import names

_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_QUOTA_RESOURCES = frozenset(
    {f"{prefix}{name}" for prefix in ("requests.", "limits.") for name in _CONTAINER_RESOURCES}
    | {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"}
    | {
        "persistentvolumeclaims",
        "storage",
        "requests.storage",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_HUGE_PAGES = "hugepages-"

_UNFILLED = "must populate information for the given metric source"
_TOO_MANY_SOURCES = "must populate the given metric source only"
_FROM_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"


def validate_metrics(
    metrics: Sequence[MetricSpec], min_replicas: int | None, path: FieldPath, objects: ReferenceOptions
) -> list[FieldError]:
    """Check each metric, and that something can wake a workload from zero replicas."""
    errors = []
    for position, metric in enumerate(metrics):
        errors += _validate_metric(metric, path.index(position), objects)
    wakers = {MetricSourceType.OBJECT, MetricSourceType.EXTERNAL}
    if min_replicas == 0 and not any(metric.type in wakers for metric in metrics):
        errors.append(forbidden(path, _FROM_ZERO))
    return errors


def _validate_metric(metric: MetricSpec, path: FieldPath, objects: ReferenceOptions) -> list[FieldError]:
    errors = _validate_type(metric.type, path.child("type"))
    sources = _sources(metric)
    for name, source in list(sources.items())[:1]:
        # Only the first of several sources is checked, since the one that is meant is unknown.
        errors += _RULES[name](source, path.child(name), objects)
    wanted = SOURCE_FIELDS.get(metric.type)
    if wanted and wanted not in sources:
        errors.append(required(path.child(wanted), _UNFILLED))
    if len(sources) != 1:
        errors += [forbidden(path.child(name), _TOO_MANY_SOURCES) for name in sources if name != wanted]
    if metric.on_loss is not None:
        errors += validate_loss(metric.on_loss, path.child("onLoss"))
    if metric.max_age_seconds is not None:
        errors += validate_max_age(metric.max_age_seconds, path.child("maxAgeSeconds"))
    return errors


def _validate_type(kind: str, path: FieldPath) -> list[FieldError]:
    if kind in set(MetricSourceType):
        return []
    missing = [] if kind else [required(path, "must specify a metric source type")]
    # The API server reports it twice, once for the value and once for the source that it does not name.
    return missing + [not_supported(path, kind, MetricSourceType)] * 2


def _sources(metric: MetricSpec) -> dict[str, Any]:
    sources = {
        "object": metric.object,
        "external": metric.external,
        "pods": metric.pods,
        "resource": metric.resource,
        "containerResource": metric.container_resource,
    }
    return {name: source for name, source in sources.items() if source is not None}


def _validate_object(
    source: ObjectMetricSource, path: FieldPath, objects: ReferenceOptions
) -> list[FieldError]:
    errors = validate_reference(source.described_object, path.child("describedObject"), objects)
    errors += _validate_metric_source(source, path)
    if source.target.value is None and source.target.average_value is None:
        detail = "must set either a target value or averageValue"
        errors.append(required(path.child("target", "averageValue"), detail))
    return errors


def _validate_external(
    source: ExternalMetricSource, path: FieldPath, _: ReferenceOptions
) -> list[FieldError]:
    errors = _validate_metric_source(source, path)
    if source.target.value is None and source.target.average_value is None:
        detail = "must set either a target value for metric or a per-pod target"
        errors.append(required(path.child("target", "averageValue"), detail))
    if source.target.value is not None and source.target.average_value is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(path.child("target", "value"), detail))
    return errors


def _validate_pods(source: PodsMetricSource, path: FieldPath, _: ReferenceOptions) -> list[FieldError]:
    errors = _validate_metric_source(source, path)
    if source.target.average_value is None:
        detail = "must specify a positive target averageValue"
        errors.append(required(path.child("target", "averageValue"), detail))
    return errors


def _validate_resource(
    source: ResourceMetricSource, path: FieldPath, _: ReferenceOptions
) -> list[FieldError]:
    # The name itself is free here: the metrics API may serve resources that no pod can request.
    errors = [] if source.name else [required(path.child("name"), "must specify a resource name")]
    return errors + _validate_resource_target(source.target, path.child("target"))


def _validate_container_resource(
    source: ContainerResourceMetricSource, path: FieldPath, _: ReferenceOptions
) -> list[FieldError]:
    errors = names.check_name(
        source.name, path.child("name"), _resource_name_problems, "must specify a resource name"
    )
    errors += names.check_name(
        source.container, path.child("container"), names.dns1123_label_problems, "must specify a container"
    )
    return errors + _validate_resource_target(source.target, path.child("target"))


_RULES: dict[str, Callable[[Any, FieldPath, ReferenceOptions], list[FieldError]]] = {
    "object": _validate_object,
    "external": _validate_external,
    "pods": _validate_pods,
    "resource": _validate_resource,
    "containerResource": _validate_container_resource,
}


def _validate_metric_source(
    source: ObjectMetricSource | ExternalMetricSource | PodsMetricSource, path: FieldPath
) -> list[FieldError]:
    # As upstream, leave the selector unchecked: a bad one shows as a condition at run time.
    name, missing = source.metric.name, "must specify a metric name"
    errors = names.check_name(name, path.child("metric", "name"), names.path_segment_problems, missing)
    return errors + _validate_target(source.target, path.child("target"))


def _validate_resource_target(target: MetricTarget, path: FieldPath) -> list[FieldError]:
    errors = _validate_target(target, path)
    if target.average_utilization is None and target.average_value is None:
        detail = "must set either a target raw value or a target utilization"
        errors.append(required(path.child("averageUtilization"), detail))
    if target.average_utilization is not None and target.average_value is not None:
        detail = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(path.child("averageValue"), detail))
    return errors


def _validate_target(target: MetricTarget, path: FieldPath) -> list[FieldError]:
    errors = [] if target.type else [required(path.child("type"), "must specify a metric target type")]
    if target.type not in set(MetricTargetType):
        errors.append(
            invalid(path.child("type"), target.type, "must be either Utilization, Value, or AverageValue")
        )
    for name, value in {"value": target.value, "averageValue": target.average_value}.items():
        if value is not None and value.sign <= 0:
            errors.append(invalid(path.child(name), value, "must be positive"))
    if target.average_utilization is not None and target.average_utilization < 1:
        errors.append(
            invalid(path.child("averageUtilization"), target.average_utilization, "must be greater than 0")
        )
    return errors


def _resource_name_problems(name: str) -> list[str]:
    problems = names.label_key_problems(name)
    if "/" in name:
        if "kubernetes.io/" not in name and not _is_extended(name):
            problems.append("doesn't follow extended resource name standard")
        return problems
    is_container_resource = name in _CONTAINER_RESOURCES or name.startswith(_HUGE_PAGES)
    is_quota_resource = name in _QUOTA_RESOURCES or name.startswith(f"requests.{_HUGE_PAGES}")
    if not problems and not is_container_resource and not is_quota_resource:
        problems.append("must be a standard resource type or fully qualified")
    if not is_container_resource:
        problems.append("must be a standard resource for containers")
    return problems


def _is_extended(name: str) -> bool:
    # A quota on it would be called `requests.NAME`, which has to be a legal name too.
    return not name.startswith("requests.") and not names.label_key_problems(f"requests.{name}")
