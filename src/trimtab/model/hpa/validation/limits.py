"""Bounds that autoscaling/v2 does not have, beyond which no HPA works.

The definition of Trimtab's own kind and `trimtab validate` reject what exceeds them; native objects get a warning.
"""

from collections.abc import Iterator

from trimtab.model.field_errors import FieldError, FieldPath, invalid, name_errors, quantity_errors, too_many
from trimtab.model.hpa.metric_kinds import KINDS
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec, MetricIdentifier, MetricSpec
from trimtab.model.labels.selector import selector_problems

MAX_NAME_LENGTH = 512
MAX_METRICS = 50


def validate_limits(spec: HorizontalPodAutoscalerSpec) -> list[FieldError]:
    """Return the fields of a decoded spec that exceed the bounds."""
    path = FieldPath("spec")
    target = {"kind": spec.scale_target_ref.kind, "name": spec.scale_target_ref.name}
    errors: list[FieldError] = []
    for name, text in target.items():
        errors += name_errors(text, MAX_NAME_LENGTH, path.child("scaleTargetRef", name))
    if len(spec.metrics) > MAX_METRICS:
        errors.append(too_many(path.child("metrics"), len(spec.metrics), MAX_METRICS))
    for position, metric in enumerate(spec.metrics):
        errors += _validate_metric(metric, path.child("metrics").index(position))
    if spec.behavior:
        for name, rules in {"scaleUp": spec.behavior.scale_up, "scaleDown": spec.behavior.scale_down}.items():
            if rules is not None:
                errors += quantity_errors(rules.tolerance, path.child("behavior", name, "tolerance"))
    return errors


def _validate_metric(metric: MetricSpec, path: FieldPath) -> Iterator[FieldError]:
    for kind in KINDS.values():
        source = kind.part(metric)
        if source is None:
            continue
        if (identifier := kind.identifier(source)) is not None:
            yield from _validate_identifier(identifier, path.child(kind.field, "metric"))
        yield from quantity_errors(kind.activation(source), path.child(kind.field, "activation"))
        yield from quantity_errors(source.target.value, path.child(kind.field, "target", "value"))
        yield from quantity_errors(
            source.target.average_value, path.child(kind.field, "target", "averageValue")
        )


def _validate_identifier(metric: MetricIdentifier, path: FieldPath) -> Iterator[FieldError]:
    yield from name_errors(metric.name, MAX_NAME_LENGTH, path.child("name"))
    if metric.selector is not None:
        for part, problem in selector_problems(metric.selector):
            yield invalid(path.child("selector"), part, problem)
