"""Reports in the status that the operator's clock is wrong."""

from collections.abc import Mapping

from trimtab.decide.horizontal.observation.clock_offset import describe_offset
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.status.conditions import (
    CLOCK_WRONG,
    RemoveCondition,
    SetCondition,
    StatusChange,
)

CLOCK_DIFFERS = "ClockDiffers"


def clock_changes(observation: Observation, before: Mapping[str, str]) -> tuple[StatusChange, ...]:
    """Return the condition that says how the operator's clock is wrong, or its removal."""
    if observation.clock_offset and observation.rules.ours:
        message = describe_offset(observation.clock_offset)
        return (SetCondition(CLOCK_WRONG, "True", CLOCK_DIFFERS, message),)
    return (RemoveCondition(CLOCK_WRONG),) if before.get(CLOCK_WRONG) == "True" else ()
