"""The rules of a HorizontalPodAutoscaler: what an API server refuses, field by field, in its own words.

Validation looks at one decoded object and at options; which options follow from gates and from the stored object
is `strategy`'s business.
"""

from dataclasses import dataclass

from trimtab.model.core.metadata_validation import (
    NEGATIVE,
    WholeMeta,
    validate_metadata,
    validate_metadata_update,
)
from trimtab.model.field_errors import (
    FieldError,
    FieldPath,
    invalid,
    not_supported,
    required,
)
from trimtab.model.hpa.types import (
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    SelectionStrategy,
)
from trimtab.model.hpa.validation.behavior import UPSTREAMS_NEGATIVE, validate_behavior
from trimtab.model.hpa.validation.metrics import validate_metrics
from trimtab.model.hpa.validation.reference import ReferenceOptions, validate_reference
from trimtab.model.json.wire import Wire

_SPEC = FieldPath("spec")
_STATUS = FieldPath("status")

GROUP_NEEDED = ReferenceOptions()
GROUP_OPTIONAL = ReferenceOptions(allow_empty_api_group=True)


class StoredHPA(Wire, frozen=True):
    """An HPA as its rules see it: with the whole of its metadata."""

    metadata: WholeMeta = WholeMeta()
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


@dataclass(frozen=True)
class Options:
    """What the rules depend on besides the object."""

    min_replicas_lower_bound: int = 1
    scale_target_ref: ReferenceOptions = GROUP_NEEDED
    object_metrics: ReferenceOptions = GROUP_OPTIONAL
    negative_tolerance: str = UPSTREAMS_NEGATIVE


def validate(hpa: StoredHPA, options: Options) -> list[FieldError]:
    """Check a new object."""
    return validate_metadata(hpa.metadata) + validate_spec(hpa.spec, options)


def validate_update(hpa: StoredHPA, old: StoredHPA, options: Options) -> list[FieldError]:
    """Check an object that replaces another."""
    return validate_metadata_update(hpa.metadata, old.metadata) + validate_spec(hpa.spec, options)


def validate_status_update(hpa: StoredHPA, old: StoredHPA) -> list[FieldError]:
    """Check an object whose status replaces another's."""
    errors = validate_metadata_update(hpa.metadata, old.metadata)
    replicas = {
        "currentReplicas": hpa.status.current_replicas,
        "desiredReplicas": hpa.status.desired_replicas,
    }
    return errors + [
        invalid(_STATUS.child(name), count, NEGATIVE) for name, count in replicas.items() if count < 0
    ]


def validate_spec(spec: HorizontalPodAutoscalerSpec, options: Options) -> list[FieldError]:
    """Check everything a user may set."""
    errors = _validate_replicas(spec, options.min_replicas_lower_bound)
    errors += validate_reference(
        spec.scale_target_ref, _SPEC.child("scaleTargetRef"), options.scale_target_ref
    )
    errors += validate_metrics(
        spec.metrics, spec.min_replicas, _SPEC.child("metrics"), options.object_metrics
    )
    errors += validate_behavior(spec.behavior, _SPEC.child("behavior"), options.negative_tolerance)
    if spec.selection_strategy is not None and spec.selection_strategy not in set(SelectionStrategy):
        errors.append(
            not_supported(_SPEC.child("selectionStrategy"), spec.selection_strategy, SelectionStrategy)
        )
    return errors


def _validate_replicas(spec: HorizontalPodAutoscalerSpec, lower_bound: int) -> list[FieldError]:
    errors = []
    low, high = spec.min_replicas, spec.max_replicas
    if low is not None and low < lower_bound:
        errors.append(
            invalid(_SPEC.child("minReplicas"), low, f"must be greater than or equal to {lower_bound}")
        )
    if high == 0:
        errors.append(required(_SPEC.child("maxReplicas"), "must be set and greater than 0"))
    elif high < 0:
        errors.append(invalid(_SPEC.child("maxReplicas"), high, "must be greater than or equal to 1"))
    if low is not None and high < low:
        errors.append(
            invalid(_SPEC.child("maxReplicas"), high, "must be greater than or equal to `minReplicas`")
        )
    return errors
