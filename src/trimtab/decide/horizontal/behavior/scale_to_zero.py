"""The bounds of the replicas, and scaling to and from zero (KEP-2021).

A workload at zero is paused, unless the condition `ScaledToZero` says that the HPA itself brought it there.
"""

from collections.abc import Iterable

from trimtab.decide.horizontal.config import HpaCompat
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.model.core.meta import Condition
from trimtab.model.core.workloads import Scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import (
    ConditionType,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    MetricSourceType,
)

_WAKING = (MetricSourceType.OBJECT, MetricSourceType.EXTERNAL)


def can_scale_from_zero(spec: HorizontalPodAutoscalerSpec) -> bool:
    """Return whether a metric exists that can be read while there are no pods."""
    return any(metric.type in _WAKING for metric in spec.metrics)


def is_paused(spec: HorizontalPodAutoscalerSpec, lowest: int, *, is_ours: bool) -> bool:
    """Return whether a workload at zero stays there: it was stopped by someone else, or nothing can wake it."""
    return not is_ours or (lowest == 0 and not can_scale_from_zero(spec))


def is_marked(conditions: Iterable[Condition]) -> bool:
    """Return whether `ScaledToZero` says that the autoscaler itself brought the workload to zero."""
    return any(
        condition.type == ConditionType.SCALED_TO_ZERO and condition.status == "True"
        for condition in conditions
    )


def floor_of(spec: HorizontalPodAutoscalerSpec, gates: FeatureGates, compat: HpaCompat) -> int:
    """Return the lowest replicas; with the gate off nothing is newly scaled to zero, whatever is stored."""
    lowest = 1 if spec.min_replicas is None else spec.min_replicas
    if compat.floor_one_while_gate_off and not gates.hpa_scale_to_zero:
        return max(lowest, 1)
    return lowest


def ceiling_of(spec: HorizontalPodAutoscalerSpec) -> int:
    """Return the highest replicas; no stored object without a maximum (no API accepts one) switches a workload off."""
    return max(spec.max_replicas, 1)


def contradicts_condition(conditions: Iterable[Condition], replicas: int) -> bool:
    """Return whether `ScaledToZero` is True although there are replicas: either is older than the other."""
    return replicas > 0 and is_marked(conditions)


def needs_metrics(hpa: HorizontalPodAutoscaler, scale: Scale, gates: FeatureGates, compat: HpaCompat) -> bool:
    """Return whether metrics decide: not while paused at zero, nor outside of minReplicas and maxReplicas."""
    lowest, current = floor_of(hpa.spec, gates, compat), scale.spec.replicas
    if current:
        return lowest <= current <= ceiling_of(hpa.spec)
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
