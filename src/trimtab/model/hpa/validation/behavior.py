"""The rules of `spec.behavior`: windows, policies and tolerances in both directions."""

from trimtab.model.field_errors import (
    FieldError,
    FieldPath,
    invalid,
    not_supported,
    required,
)
from trimtab.model.hpa.types import (
    HorizontalPodAutoscalerBehavior,
    HPAScalingPolicy,
    HPAScalingRules,
    ScalingPolicySelect,
    ScalingPolicyType,
)

MAX_PERIOD_SECONDS = 1800
MAX_STABILIZATION_WINDOW_SECONDS = 3600


UPSTREAMS_NEGATIVE = "must be greater than or equal to 0"


def validate_behavior(
    behavior: HorizontalPodAutoscalerBehavior | None, path: FieldPath, negative: str = UPSTREAMS_NEGATIVE
) -> list[FieldError]:
    """Check the rules of both directions, where they are set; `negative` is said of a negative tolerance."""
    if behavior is None:
        return []
    directions = {"scaleUp": behavior.scale_up, "scaleDown": behavior.scale_down}
    return [
        error
        for name, rules in directions.items()
        if rules
        for error in _validate_rules(rules, path.child(name), negative)
    ]


def _validate_rules(rules: HPAScalingRules, path: FieldPath, negative: str) -> list[FieldError]:
    errors = _validate_window(rules.stabilization_window_seconds, path.child("stabilizationWindowSeconds"))
    if rules.select_policy is not None and rules.select_policy not in set(ScalingPolicySelect):
        errors.append(not_supported(path.child("selectPolicy"), rules.select_policy, ScalingPolicySelect))
    if not rules.policies:
        errors.append(required(path.child("policies"), "must specify at least one Policy"))
    for position, policy in enumerate(rules.policies):
        errors += _validate_policy(policy, path.child("policies").index(position))
    if rules.tolerance is not None and rules.tolerance.sign < 0:
        errors.append(invalid(path.child("tolerance"), str(rules.tolerance), negative))
    return errors


def _validate_window(window: int | None, path: FieldPath) -> list[FieldError]:
    if window is None:
        return []
    if window < 0:
        return [invalid(path, window, "must be greater than or equal to zero")]
    if window > MAX_STABILIZATION_WINDOW_SECONDS:
        return [invalid(path, window, f"must be less than or equal to {MAX_STABILIZATION_WINDOW_SECONDS}")]
    return []


def _validate_policy(policy: HPAScalingPolicy, path: FieldPath) -> list[FieldError]:
    errors = []
    if policy.type not in set(ScalingPolicyType):
        errors.append(not_supported(path.child("type"), policy.type, ScalingPolicyType))
    if policy.value <= 0:
        errors.append(invalid(path.child("value"), policy.value, "must be greater than zero"))
    if policy.period_seconds <= 0:
        errors.append(
            invalid(path.child("periodSeconds"), policy.period_seconds, "must be greater than zero")
        )
    elif policy.period_seconds > MAX_PERIOD_SECONDS:
        detail = f"must be less than or equal to {MAX_PERIOD_SECONDS}"
        errors.append(invalid(path.child("periodSeconds"), policy.period_seconds, detail))
    return errors
