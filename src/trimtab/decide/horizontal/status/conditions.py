"""The conditions of an HPA's status, and changes to conditions and events."""

from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from trimtab.model.core.meta import Condition
from trimtab.model.hpa.types import ConditionType, HorizontalPodAutoscalerStatus, HpaCondition

ABLE_TO_SCALE = ConditionType.ABLE_TO_SCALE.value
SCALING_ACTIVE = ConditionType.SCALING_ACTIVE.value
SCALING_LIMITED = ConditionType.SCALING_LIMITED.value
SCALED_TO_ZERO = ConditionType.SCALED_TO_ZERO.value
METRIC_LOST = ConditionType.METRIC_LOST.value
SELECTION_FALLBACK = ConditionType.SELECTION_FALLBACK.value
EXTRA_PODS = ConditionType.EXTRA_PODS.value
FIELDS_IGNORED = ConditionType.FIELDS_IGNORED.value
CLOCK_WRONG = ConditionType.CLOCK_WRONG.value
CACHES_STALE = ConditionType.CACHES_STALE.value
PLUGIN_FAILED = ConditionType.PLUGIN_FAILED.value

Status = Literal["True", "False"]


class SetCondition(NamedTuple):
    """A condition to set."""

    type: str
    status: Status
    reason: str
    message: str


class RemoveCondition(NamedTuple):
    """A condition to remove."""

    type: str


class EmitEvent(NamedTuple):
    """An event to emit."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    is_limited: bool = False
    """Whether it would repeat in every sync, and is emitted once per interval instead."""
    is_last: bool = False
    """Whether it is emitted after the status is written."""


StatusChange = SetCondition | RemoveCondition | EmitEvent

SET_SCALED_TO_ZERO = SetCondition(
    SCALED_TO_ZERO, "True", "ScaledToZero", "the HPA controller scaled the workload to zero"
)
UNSET_SCALED_TO_ZERO = SetCondition(
    SCALED_TO_ZERO, "False", "NotScaledToZero", "the HPA controller did not scale the workload to zero"
)


class Conditions:
    """The conditions of one status while it is being decided."""

    __slots__ = ("_generation", "_items", "_now", "_types")

    def __init__(
        self, conditions: tuple[HpaCondition, ...], now: datetime, generation: int | None = None
    ) -> None:
        """Start with the conditions that the status had.

        Each condition that is set describes `generation`; with None it keeps the generation that it has.
        """
        self._items = list(conditions)
        self._types = [condition.type for condition in conditions]
        self._now = now
        self._generation = generation

    def set(self, kind: str, status: Status, reason: str, message: str) -> None:
        """Set a condition in its place, or add it at the end.

        Its time moves only when its status does.
        """
        if kind not in self._types:
            self._types.append(kind)
            self._items.append(
                HpaCondition(
                    type=kind,
                    status=status,
                    last_transition_time=self._now,
                    reason=reason,
                    message=message,
                    observed_generation=self._generation,
                )
            )
            return
        index = self._types.index(kind)
        old = self._items[index]
        generation = self._generation
        if generation is None:
            generation = old.observed_generation
        if (
            old.status != status
            or old.reason != reason
            or old.message != message
            or old.observed_generation != generation
        ):
            moved = self._now if old.status != status else old.last_transition_time
            self._items[index] = HpaCondition(
                type=kind,
                status=status,
                last_transition_time=moved,
                reason=reason,
                message=message,
                observed_generation=generation,
            )

    def remove(self, kind: str) -> None:
        """Remove a condition."""
        self._items = [condition for condition in self._items if condition.type != kind]
        self._types = [condition.type for condition in self._items]

    def done(self) -> tuple[HpaCondition, ...]:
        """Return the conditions in their order."""
        return tuple(self._items)


def statuses_of(conditions: tuple[Condition, ...]) -> dict[str, str]:
    """Return the status of each condition by its type."""
    return {condition.type: condition.status for condition in conditions}


def with_scaled_to_zero(
    status: HorizontalPodAutoscalerStatus, now: datetime, generation: int | None = None
) -> HorizontalPodAutoscalerStatus:
    """Return the status with `ScaledToZero` set to True."""
    conditions = Conditions(status.conditions, now, generation)
    conditions.set(*SET_SCALED_TO_ZERO)
    return msgspec.structs.replace(status, conditions=conditions.done())
