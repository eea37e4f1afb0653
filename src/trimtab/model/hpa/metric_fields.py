"""Rules of the metric fields that only Trimtab's own kind has: `onLoss`, `maxAgeSeconds` and `activation`.

`onLoss` says what a metric counts as while it cannot be read. `maxAgeSeconds` says how old its samples may be: the
operator's flag has one limit for all sources, but some sources, such as those of clouds, are always minutes behind.
`activation` says above which number a workload that may go to zero has anything to do.
"""

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
from trimtab.model.hpa.types import LossPolicy, MetricLoss
from trimtab.model.json.wire import Json
from trimtab.model.quantity import Quantity

DEFAULT_LAST_GOOD_SECONDS = 300
"""How long a last good value counts: as long as the default scale-down window, so that the two end together."""

MAX_LAST_GOOD_SECONDS = 3600
"""The longest window. A value that counts for longer is a fixed size, which is what Replicas is for."""

MAX_SAMPLE_AGE_SECONDS = 86_400
"""A sample that is a day old says nothing about the current load."""


def default_loss(loss: Mapping[str, Any]) -> Json:
    """Return a loss policy with its age filled in."""
    if loss.get("policy") != LossPolicy.LAST_GOOD or loss.get("maxAgeSeconds") is not None:
        return dict(loss)
    return {**loss, "maxAgeSeconds": DEFAULT_LAST_GOOD_SECONDS}


def validate_loss(loss: MetricLoss, path: FieldPath) -> list[FieldError]:
    """Check the loss policy of a metric."""
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


def validate_max_age(seconds: int, path: FieldPath) -> list[FieldError]:
    """Check how old the samples of a metric may be."""
    return _validate_range(seconds, MAX_SAMPLE_AGE_SECONDS, path)


def validate_activation(activation: Quantity, path: FieldPath) -> list[FieldError]:
    """Check an activation level."""
    return [invalid(path, activation, "must not be negative")] if activation.sign < 0 else []


def _validate_age(loss: MetricLoss, path: FieldPath) -> list[FieldError]:
    if loss.max_age_seconds is None:
        return []
    if loss.policy != LossPolicy.LAST_GOOD:
        return [forbidden(path, "may only be set with policy LastGood")]
    return _validate_range(loss.max_age_seconds, MAX_LAST_GOOD_SECONDS, path)


def _validate_range(seconds: int, most: int, path: FieldPath) -> list[FieldError]:
    return [] if 1 <= seconds <= most else [invalid(path, seconds, f"must be between 1 and {most}")]


def _validate_replicas(loss: MetricLoss, path: FieldPath) -> list[FieldError]:
    if loss.policy != LossPolicy.REPLICAS:
        return [] if loss.replicas is None else [forbidden(path, "may only be set with policy Replicas")]
    if loss.replicas is None:
        return [required(path, "must be set with policy Replicas")]
    # Zero would stop a workload because its load is unknown.
    return [] if loss.replicas >= 1 else [invalid(path, loss.replicas, "must be greater than or equal to 1")]
