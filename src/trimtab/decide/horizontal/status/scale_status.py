"""Conditions and events about the target's scale: strategy, replicas changed elsewhere, pauses and limits."""

from trimtab.decide.horizontal.behavior import normalize, stabilization
from trimtab.decide.horizontal.memory import Memory
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.selection.selection import select_pods
from trimtab.decide.horizontal.status.conditions import (
    ABLE_TO_SCALE,
    EXTRA_PODS,
    SCALED_TO_ZERO,
    SCALING_ACTIVE,
    SCALING_LIMITED,
    SELECTION_FALLBACK,
    EmitEvent,
    RemoveCondition,
    SetCondition,
    StatusChange,
)
from trimtab.decide.horizontal.status.selection_status import active_event
from trimtab.model.hpa.types import SelectionStrategy

FAILED_GET_SCALE = "FailedGetScale"
UNABLE_TO_GET = "the HPA controller was unable to get the target's current scale: "
_DISABLED = "scaling is disabled since the replica count of the target is zero"
_SCALE_READ = SetCondition(
    ABLE_TO_SCALE,
    "True",
    "SucceededGetScale",
    "the HPA controller was able to get the target's current scale",
)
_READY = SetCondition(ABLE_TO_SCALE, "True", "ReadyForNewScale", "recommended size matches current size")


def strategy_changes(observation: Observation, before: str, strategy: str) -> list[StatusChange]:
    """Return the events of a changed strategy, and of an active one that a new spec brings.

    A strategy that cannot be applied now is not active. Its event comes with the end of the fallback.
    An annotation that names a strategy changes no generation, so a change of the strategy is new as well.
    """
    changes: list[StatusChange] = []
    is_changed = bool(before) and before != strategy
    if is_changed:
        message = f"Pod selection strategy changed from '{before}' to '{strategy}'"
        changes.append(EmitEvent("Normal", "StrategyChanged", message))
    if strategy == SelectionStrategy.LABEL_SELECTOR:
        return changes
    is_new = is_changed or _is_new_spec(observation, before, strategy)
    if is_new and not select_pods(observation, strategy).fallback:
        changes.append(active_event(strategy))
    return changes


def _is_new_spec(observation: Observation, before: str, strategy: str) -> bool:
    """Return whether no status describes this generation of the spec yet.

    Native HPAs have a generation since Kubernetes 1.37. Without one, or where no status names it, only a strategy that was not
    in force before is new.
    """
    hpa = observation.hpa
    if not hpa.metadata.generation or observation.rules.minor < 37:
        return before != strategy
    return hpa.metadata.generation != hpa.status.observed_generation


def scale_failure_changes(message: str) -> list[StatusChange]:
    """Return the event and the condition of a scale that could not be read."""
    return [
        EmitEvent("Warning", FAILED_GET_SCALE, message),
        SetCondition(ABLE_TO_SCALE, "False", FAILED_GET_SCALE, f"{UNABLE_TO_GET}{message}"),
    ]


def scale_read_changes(observation: Observation, memory: Memory, current: int) -> list[StatusChange]:
    """Return the condition of a scale that was read, and the event of replicas changed elsewhere."""
    before = memory.replicas
    if before is None or before == current or not observation.rules.ours:
        return [_SCALE_READ]
    message = f"replicas changed from {before} to {current} outside this autoscaler"
    return [_SCALE_READ, EmitEvent("Normal", "ReplicasChangedElsewhere", message, is_limited=True)]


def pause_changes(observation: Observation) -> list[StatusChange]:
    """Return the conditions of an HPA that is paused at zero replicas."""
    changes: list[StatusChange] = [
        SetCondition(SCALING_ACTIVE, "False", "ScalingDisabled", _DISABLED),
        RemoveCondition(EXTRA_PODS),
        RemoveCondition(SELECTION_FALLBACK),
    ]
    if not observation.gates.hpa_scale_to_zero and not observation.rules.ours:
        changes.append(RemoveCondition(SCALED_TO_ZERO))
    return changes


def limit_changes(result: normalize.Normalized) -> tuple[StatusChange, ...]:
    """Return the conditions of what windows, bounds and rates made of the desired replicas."""
    held, limited = result.stabilized.reason, result.limited.reason
    return (
        SetCondition(ABLE_TO_SCALE, "True", held, stabilization.MESSAGES[held]) if held else _READY,
        SetCondition(
            SCALING_LIMITED, "True" if result.is_limited else "False", limited, normalize.MESSAGES[limited]
        ),
    )
