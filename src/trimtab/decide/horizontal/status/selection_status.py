"""Conditions and events about the pods that count: extra pods, filters that cannot decide, selector problems."""

from collections.abc import Mapping

from trimtab.decide.horizontal.metrics.kinds import counts_pods
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.selection.selector_check import AMBIGUOUS, SelectorProblem
from trimtab.decide.horizontal.status.conditions import (
    EXTRA_PODS,
    SCALING_ACTIVE,
    SELECTION_FALLBACK,
    EmitEvent,
    RemoveCondition,
    SetCondition,
    StatusChange,
)
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.readable import counted

OVERLAP = "SelectorOverlap"
UNREADABLE = "OwnersUnreadable"


def extra_pods_changes(extra: int, expected: int, before: Mapping[str, str]) -> tuple[StatusChange, ...]:
    """Return the condition that warns of a selector that matches more pods than its target has.

    It changes no number. It says why a number may be wrong.
    """
    if extra:
        message = (
            f"the selector of the target matches {counted(expected + extra, 'active pod')}, {extra} more than the target has; "
            "the usage of all of them is averaged: give the others labels of their own, or set selectionStrategy "
            "to OwnerReference"
        )
        return (SetCondition(EXTRA_PODS, "True", OVERLAP, message),)
    return (RemoveCondition(EXTRA_PODS),) if before.get(EXTRA_PODS) == "True" else ()


def fallback_changes(
    observation: Observation, strategy: str, fallback: str, before: Mapping[str, str]
) -> tuple[StatusChange, ...]:
    """Return the condition and the event of a filter that cannot decide, so that all pods count, or of the end of that."""
    if not fallback:
        if before.get(SELECTION_FALLBACK) != "True":
            return ()
        ended = RemoveCondition(SELECTION_FALLBACK)
        is_default = strategy == SelectionStrategy.LABEL_SELECTOR
        return (ended,) if is_default else (ended, active_event(strategy))
    is_held = observation.rules.ours and counts_pods(observation.hpa.spec.metrics)
    lowered = ", and replicas are not lowered" if is_held else ""
    answer = observation.filter_answer
    message = f"all pods that match the selector are counted{lowered}: {fallback}"
    return (
        SetCondition(SELECTION_FALLBACK, "True", UNREADABLE if answer is None else answer.reason, message),
        EmitEvent("Warning", "PodSelectionFallback", message, is_limited=True),
    )


def active_event(strategy: str) -> EmitEvent:
    """Return the event of a strategy that chooses the pods from now on."""
    return EmitEvent("Normal", "SelectionStrategyActive", f"Pod selection strategy '{strategy}' is active")


def selector_changes(problem: SelectorProblem) -> tuple[StatusChange, ...]:
    """Return the event and the condition of a selector whose pods cannot be counted."""
    is_limited = problem.reason == AMBIGUOUS
    return (
        EmitEvent("Warning", problem.event, problem.error, is_limited=is_limited),
        SetCondition(SCALING_ACTIVE, "False", problem.reason, problem.message),
    )
