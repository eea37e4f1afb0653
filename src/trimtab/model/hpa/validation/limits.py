"""Bounds that autoscaling/v2 does not have: what its API server stores and nobody can use.

Our own kind refuses these, by its definition and in `trimtab validate`; for native objects they are only doubts.
"""

from collections.abc import Iterator

from trimtab.model.field_errors import FieldError, FieldPath, invalid, name_errors, quantity_errors, too_many
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, MetricIdentifier, MetricSpec, MetricTarget
from trimtab.model.labels.selector import selector_problems

LONGEST_NAME = 512
MOST_METRICS = 50


def validate_limits(spec: HorizontalPodAutoscalerSpec) -> list[FieldError]:
    """Return what is out of all measure in a decoded spec."""
    path = FieldPath("spec")
    target = {"kind": spec.scale_target_ref.kind, "name": spec.scale_target_ref.name}
    found = [
        error
        for name, text in target.items()
        for error in name_errors(text, LONGEST_NAME, path.child("scaleTargetRef", name))
    ]
    if len(spec.metrics) > MOST_METRICS:
        found.append(too_many(path.child("metrics"), len(spec.metrics), MOST_METRICS))
    found += [
        error
        for position, metric in enumerate(spec.metrics)
        for error in _of_metric(metric, path.child("metrics").index(position))
    ]
    rules = (
        {"scaleUp": spec.behavior.scale_up, "scaleDown": spec.behavior.scale_down} if spec.behavior else {}
    )
    for name, direction in rules.items():
        if direction is not None:
            where = path.child("behavior", name, "tolerance")
            found += quantity_errors(direction.tolerance, where)
    return found


def _of_metric(metric: MetricSpec, path: FieldPath) -> Iterator[FieldError]:
    named = {"object": metric.object, "pods": metric.pods, "external": metric.external}
    for name, source in named.items():
        if source is not None:
            yield from _of_identifier(source.metric, path.child(name, "metric"))
            yield from _of_target(source.target, path.child(name, "target"))
    measured = {"resource": metric.resource, "containerResource": metric.container_resource}
    for name, resource in measured.items():
        if resource is not None:
            yield from _of_target(resource.target, path.child(name, "target"))


def _of_identifier(metric: MetricIdentifier, path: FieldPath) -> Iterator[FieldError]:
    yield from name_errors(metric.name, LONGEST_NAME, path.child("name"))
    if metric.selector is not None:
        for part, problem in selector_problems(metric.selector):
            yield invalid(path.child("selector"), part, problem)


def _of_target(target: MetricTarget, path: FieldPath) -> Iterator[FieldError]:
    yield from quantity_errors(target.value, path.child("value"))
    yield from quantity_errors(target.average_value, path.child("averageValue"))
