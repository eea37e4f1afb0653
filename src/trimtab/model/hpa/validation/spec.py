"""Rules of a HorizontalPodAutoscaler, in the API server's words.

They depend on a decoded object and on options. `create_update` derives the options from gates and the stored object.
"""

from dataclasses import dataclass

from trimtab.model.core.metadata_validation import (
    NEGATIVE,
    WholeMeta,
    validate_metadata,
    validate_metadata_update,
)
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.field_errors import FieldError, FieldPath, invalid, not_supported, required
from trimtab.model.hpa.replica_policies import FIELD as REPLICA_POLICIES
from trimtab.model.hpa.replica_policies import validate_policies
from trimtab.model.hpa.types import (
    HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    HPAScalingPolicy,
    HPAScalingRules,
    ScalingPolicySelect,
    ScalingPolicyType,
    SelectionStrategy,
)
from trimtab.model.hpa.validation.metrics import validate_metrics
from trimtab.model.hpa.validation.reference import ReferenceOptions, validate_reference
from trimtab.model.json.wire import Wire
from trimtab.model.plugin_names import is_plugin_name

_SPEC = FieldPath("spec")
_STATUS = FieldPath("status")

MAX_PERIOD_SECONDS = 1800
MAX_STABILIZATION_WINDOW_SECONDS = 3600
BELOW_MINIMUM = "must be greater than or equal to `minReplicas`"
UPSTREAMS_NEGATIVE = "must be greater than or equal to 0"

GROUP_NEEDED = ReferenceOptions()
GROUP_OPTIONAL = ReferenceOptions(allow_empty_api_group=True)


class StoredHPA(Wire):
    """An HPA with all the metadata that its rules read."""

    metadata: WholeMeta = WholeMeta()
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


@dataclass(frozen=True)
class Options:
    """What the rules depend on besides the object.

    `negative_tolerance` is the message about a negative tolerance.
    """

    min_replicas_lower_bound: int = 1
    scale_target_ref: ReferenceOptions = GROUP_NEEDED
    object_metrics: ReferenceOptions = GROUP_OPTIONAL
    negative_tolerance: str = UPSTREAMS_NEGATIVE
    rules: ServerRules = KUBERNETES_1_36


def validate(hpa: StoredHPA, options: Options) -> list[FieldError]:
    """Check a new object."""
    return validate_metadata(hpa.metadata, rules=options.rules) + validate_spec(hpa.spec, options)


def validate_update(hpa: StoredHPA, old: StoredHPA, options: Options) -> list[FieldError]:
    """Check an object that replaces another."""
    errors = validate_metadata_update(hpa.metadata, old.metadata, rules=options.rules)
    return errors + validate_spec(hpa.spec, options)


def validate_status_update(
    hpa: StoredHPA, old: StoredHPA, rules: ServerRules = KUBERNETES_1_36
) -> list[FieldError]:
    """Check an object whose status replaces another's."""
    errors = validate_metadata_update(hpa.metadata, old.metadata, rules=rules)
    for position, condition in enumerate(hpa.status.conditions):
        generation = condition.observed_generation
        if generation is not None and generation < 0 and rules.hpa_generations:
            path = _STATUS.child("conditions").index(position).child("observedGeneration")
            errors.append(invalid(path, generation, NEGATIVE))
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
    if spec.behavior is not None:
        errors += _validate_behavior(spec.behavior, options.negative_tolerance)
    strategy = spec.selection_strategy
    if strategy is not None and strategy not in set(SelectionStrategy) and not is_plugin_name(strategy):
        errors.append(
            not_supported(_SPEC.child("selectionStrategy"), spec.selection_strategy, SelectionStrategy)
        )
    if spec.replica_policies:
        errors += validate_policies(spec.replica_policies, _SPEC.child(REPLICA_POLICIES))
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
        errors.append(invalid(_SPEC.child("maxReplicas"), high, BELOW_MINIMUM))
    return errors


def _validate_behavior(behavior: HorizontalPodAutoscalerBehavior, negative: str) -> list[FieldError]:
    directions = {"scaleUp": behavior.scale_up, "scaleDown": behavior.scale_down}
    return [
        error
        for name, rules in directions.items()
        if rules
        for error in _validate_rules(rules, _SPEC.child("behavior", name), negative)
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
    period, path = policy.period_seconds, path.child("periodSeconds")
    if period <= 0:
        errors.append(invalid(path, period, "must be greater than zero"))
    elif period > MAX_PERIOD_SECONDS:
        errors.append(invalid(path, period, f"must be less than or equal to {MAX_PERIOD_SECONDS}"))
    return errors
