"""The condition and the event of replica policies that failed."""

from collections.abc import Mapping

from trimtab.decide.horizontal.observation.plugin_answers import PolicyAnswer
from trimtab.decide.horizontal.status.conditions import (
    PLUGIN_FAILED,
    EmitEvent,
    RemoveCondition,
    SetCondition,
    StatusChange,
)


def plugin_changes(answers: tuple[PolicyAnswer, ...], before: Mapping[str, str]) -> tuple[StatusChange, ...]:
    """Return the condition and the event of the policies that failed, or the removal of the condition."""
    failed = [answer for answer in answers if answer.failure]
    if not failed:
        return (RemoveCondition(PLUGIN_FAILED),) if before.get(PLUGIN_FAILED) == "True" else ()
    message = f"replicas are not lowered: {'; '.join(answer.failure for answer in failed)}"
    return (
        SetCondition(PLUGIN_FAILED, "True", failed[0].reason, message),
        EmitEvent("Warning", PLUGIN_FAILED, message, is_limited=True),
    )
