"""What a metric counts as while it cannot be read: the rules of `onLoss`, and where a native HPA carries it."""

from collections.abc import Mapping
from typing import Any

from trimtab.model.field_errors import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
)
from trimtab.model.hpa.metric_fields.metric_annotation import MetricAnnotation
from trimtab.model.hpa.types import LossPolicy, MetricLoss
from trimtab.model.json import shape, wire

Json = dict[str, Any]

DEFAULT_MAX_AGE_SECONDS = 300
"""How long a last good value counts: as long as the default scale-down window, so that the two end together."""

MOST_MAX_AGE_SECONDS = 3600
"""Longer than the longest window a last good value would be a fixed size; that is what Replicas is for."""


def validate_loss(loss: MetricLoss, path: FieldPath) -> list[FieldError]:
    """Check the policy of one metric."""
    errors = []
    if not loss.policy:
        errors.append(required(path.child("policy"), f"must be one of {', '.join(LossPolicy)}"))
    elif loss.policy not in set(LossPolicy):
        errors.append(not_supported(path.child("policy"), loss.policy, LossPolicy))
    return (
        errors
        + _validate_age(loss, path.child("maxAgeSeconds"))
        + _validate_replicas(loss, path.child("replicas"))
    )


def _validate_age(loss: MetricLoss, path: FieldPath) -> list[FieldError]:
    age = loss.max_age_seconds
    if age is None:
        return []
    if loss.policy != LossPolicy.LAST_GOOD:
        return [forbidden(path, "may only be set with policy LastGood")]
    if not 1 <= age <= MOST_MAX_AGE_SECONDS:
        return [invalid(path, age, f"must be between 1 and {MOST_MAX_AGE_SECONDS}")]
    return []


def _validate_replicas(loss: MetricLoss, path: FieldPath) -> list[FieldError]:
    if loss.policy != LossPolicy.REPLICAS:
        return [] if loss.replicas is None else [forbidden(path, "may only be set with policy Replicas")]
    if loss.replicas is None:
        return [required(path, "must be set with policy Replicas")]
    # Zero would stop a workload because nobody knows its load.
    return [] if loss.replicas >= 1 else [invalid(path, loss.replicas, "must be greater than or equal to 1")]


def default_loss(loss: Mapping[str, Any]) -> Json:
    """Return a policy with its age filled in."""
    if loss.get("policy") != LossPolicy.LAST_GOOD or loss.get("maxAgeSeconds") is not None:
        return dict(loss)
    return {**loss, "maxAgeSeconds": DEFAULT_MAX_AGE_SECONDS}


def _read(path: FieldPath, content: Any) -> MetricLoss | list[FieldError]:
    errors = shape.misfits(content, MetricLoss, path)
    if not errors:
        errors = [
            invalid(where, "", "unknown field; policy, maxAgeSeconds and replicas are known")
            for where, _ in shape.unknown_fields(content, MetricLoss)
        ]
    if errors:
        return errors
    loss = wire.convert(default_loss(content), MetricLoss)
    return validate_loss(loss, path) or loss


ON_LOSS = MetricAnnotation[MetricLoss](
    name="autoscaling.trimtab.dev/on-loss",
    field="onLoss",
    attribute="on_loss",
    values="policies",
    consequence="every metric that is lost holds",
    read=_read,
)
"""The annotation of native HPAs: `{"sqs_messages": {"policy": "Ignore"}}`."""
