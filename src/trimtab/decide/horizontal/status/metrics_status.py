"""Conditions and events about the metrics: failures, lost metrics, and whether a metric counted."""

from collections.abc import Mapping

from trimtab.decide.horizontal.metrics.combine import LossFallback, MetricsResult, describe_fallback
from trimtab.decide.horizontal.status.conditions import (
    METRIC_LOST,
    SCALING_ACTIVE,
    EmitEvent,
    RemoveCondition,
    SetCondition,
    StatusChange,
)
from trimtab.model.hpa.types import HorizontalPodAutoscaler, LossPolicy

IGNORED = "MetricIgnored"
LAST_GOOD = "LastGoodValue"
TOO_OLD = "LastGoodValueTooOld"
FALL_BACK = "FallBackReplicas"
ALL_READ = "EveryMetricRead"
WARMING_UP = "WarmingUp"

COUNTED_FROM = "the HPA was able to successfully calculate a replica count from "
"""What precedes the metric or the replica policy that decides, in the condition ScalingActive."""
_WARMING_UP_MESSAGE = "the HPA waits for the first samples of its pods"
_ALL_READ_MESSAGE = "every metric that has a loss policy can be read"


def metrics_changes(
    hpa: HorizontalPodAutoscaler, result: MetricsResult, before: Mapping[str, str]
) -> tuple[StatusChange, ...]:
    """Return an event per failed metric, then the conditions MetricLost and ScalingActive."""
    events = [
        EmitEvent("Warning", failure.reason, failure.message)
        for failure in result.failures
        if not failure.is_warming_up
    ]
    return (*events, *_loss_changes(hpa, result.fallbacks, before), _scaling_active(result))


def _scaling_active(result: MetricsResult) -> SetCondition:
    failure = result.blocked_by
    if failure is None:
        message = f"{COUNTED_FROM}{result.name}"
        return SetCondition(SCALING_ACTIVE, "True", "ValidMetricFound", message)
    if failure.is_warming_up:
        return SetCondition(SCALING_ACTIVE, "False", WARMING_UP, f"{_WARMING_UP_MESSAGE}: {failure.message}")
    message = f"the HPA was unable to compute the replica count: {failure.message}"
    return SetCondition(SCALING_ACTIVE, "False", failure.reason, message)


def _loss_changes(
    hpa: HorizontalPodAutoscaler, fallbacks: tuple[LossFallback, ...], before: Mapping[str, str]
) -> tuple[StatusChange, ...]:
    if fallbacks:
        message = "; ".join(
            f"{fallback.type} metric {fallback.label} cannot be read: {describe_fallback(fallback)}"
            for fallback in fallbacks
        )
        return (
            SetCondition(METRIC_LOST, "True", _loss_reason(fallbacks[0]), message),
            EmitEvent("Warning", "MetricLost", message, is_limited=True),
        )
    if METRIC_LOST not in before:
        return ()
    if not any(spec.on_loss for spec in hpa.spec.metrics):
        return (RemoveCondition(METRIC_LOST),)
    if before[METRIC_LOST] != "True":
        return ()
    return (
        SetCondition(METRIC_LOST, "False", ALL_READ, _ALL_READ_MESSAGE),
        EmitEvent("Normal", "MetricFound", _ALL_READ_MESSAGE),
    )


def _loss_reason(fallback: LossFallback) -> str:
    if fallback.policy == LossPolicy.LAST_GOOD:
        return TOO_OLD if fallback.replicas is None else LAST_GOOD
    return IGNORED if fallback.policy == LossPolicy.IGNORE else FALL_BACK
