"""Rules of `spec.metrics`: one source per metric, which its kind checks."""

from collections.abc import Sequence

from trimtab.model.field_errors import FieldError, FieldPath, forbidden, not_supported, required
from trimtab.model.hpa.metric_fields import validate_loss, validate_max_age
from trimtab.model.hpa.metric_kinds import KINDS, WAKING
from trimtab.model.hpa.types import MetricSourceType, MetricSpec
from trimtab.model.hpa.validation.reference import ReferenceOptions

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
    if min_replicas == 0 and not any(metric.type in WAKING for metric in metrics):
        errors.append(forbidden(path, _FROM_ZERO))
    return errors


def _validate_metric(metric: MetricSpec, path: FieldPath, objects: ReferenceOptions) -> list[FieldError]:
    errors = _validate_type(metric.type, path.child("type"))
    filled = [kind for kind in KINDS.values() if kind.part(metric) is not None]
    for kind in filled[:1]:
        # Only the first of several sources is checked, since the one that is meant is unknown.
        errors += kind.validate(kind.part(metric), path.child(kind.field), objects)
    wanted = KINDS.get(metric.type)
    if wanted is not None and wanted not in filled:
        errors.append(required(path.child(wanted.field), _UNFILLED))
    if len(filled) != 1:
        errors += [
            forbidden(path.child(kind.field), _TOO_MANY_SOURCES) for kind in filled if kind is not wanted
        ]
    if metric.on_loss is not None:
        errors += validate_loss(metric.on_loss, path.child("onLoss"))
    if metric.max_age_seconds is not None:
        errors += validate_max_age(metric.max_age_seconds, path.child("maxAgeSeconds"))
    return errors


def _validate_type(kind: str, path: FieldPath) -> list[FieldError]:
    if kind in KINDS:
        return []
    missing = [] if kind else [required(path, "must specify a metric source type")]
    # The API server reports it twice, once for the value and once for the source that it does not name.
    return missing + [not_supported(path, kind, MetricSourceType)] * 2
