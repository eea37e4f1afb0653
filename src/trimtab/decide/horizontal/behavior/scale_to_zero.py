"""The bounds of the replicas, and scaling to and from zero (KEP-2021).

A workload at zero is paused, unless the condition `ScaledToZero` says that the HPA itself brought it there.
"""

from collections.abc import Iterable

from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.rules import Rules
from trimtab.model.core.meta import Condition
from trimtab.model.core.workloads import Scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.metric_kinds import WAKING
from trimtab.model.hpa.types import (
    ConditionType,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
)


def can_scale_from_zero(spec: HorizontalPodAutoscalerSpec) -> bool:
    """Return whether the spec has a metric that can be read without pods."""
    return any(metric.type in WAKING for metric in spec.metrics)


def is_paused(spec: HorizontalPodAutoscalerSpec, lowest: int, *, is_ours: bool) -> bool:
    """Return whether a workload at zero stays there."""
    return not is_ours or (lowest == 0 and not can_scale_from_zero(spec))


def is_scaled_to_zero(conditions: Iterable[Condition]) -> bool:
    """Return whether `ScaledToZero` is True: the HPA itself brought the workload to zero."""
    return any(
        condition.type == ConditionType.SCALED_TO_ZERO and condition.status == "True"
        for condition in conditions
    )


def effective_min_replicas(spec: HorizontalPodAutoscalerSpec, gates: FeatureGates, rules: Rules) -> int:
    """Return the minReplicas in force, at least 1 with the gate off."""
    lowest = 1 if spec.min_replicas is None else spec.min_replicas
    if rules.ours and not gates.hpa_scale_to_zero:
        return max(lowest, 1)
    return lowest


def effective_max_replicas(spec: HorizontalPodAutoscalerSpec) -> int:
    """Return the maxReplicas in force, at least 1 even if a stored object has none."""
    return max(spec.max_replicas, 1)


def contradicts_condition(conditions: Iterable[Condition], replicas: int) -> bool:
    """Return whether `ScaledToZero` is True although there are replicas, so one of them is stale."""
    return replicas > 0 and is_scaled_to_zero(conditions)


def needs_metrics(hpa: HorizontalPodAutoscaler, scale: Scale, gates: FeatureGates, rules: Rules) -> bool:
    """Return whether metrics decide: not while paused, nor outside of minReplicas and maxReplicas."""
    lowest, current = effective_min_replicas(hpa.spec, gates, rules), scale.spec.replicas
    if current:
        return lowest <= current <= effective_max_replicas(hpa.spec)
    condition = hpa.status.condition(ConditionType.SCALED_TO_ZERO)
    is_ours = gates.hpa_scale_to_zero and condition is not None and condition.status == "True"
    return not is_paused(hpa.spec, lowest, is_ours=is_ours)


def goes_to_zero(observation: Observation, current: int, desired: int, lowest: int) -> bool:
    """Return whether a rescale brings the workload to a zero that the HPA can wake it from."""
    return (
        observation.gates.hpa_scale_to_zero
        and current > 0
        and desired == 0
        and lowest == 0
        and can_scale_from_zero(observation.hpa.spec)
    )
