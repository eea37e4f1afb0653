"""The conditions of an autoscaler's status: their reasons, their messages, and when their time moves."""

from datetime import datetime
from typing import Literal

from trimtab.model.core.meta import Condition
from trimtab.model.hpa.types import ConditionType

ABLE_TO_SCALE = ConditionType.ABLE_TO_SCALE.value
SCALING_ACTIVE = ConditionType.SCALING_ACTIVE.value
SCALING_LIMITED = ConditionType.SCALING_LIMITED.value
SCALED_TO_ZERO = ConditionType.SCALED_TO_ZERO.value
METRIC_LOST = ConditionType.METRIC_LOST.value
SELECTION_FALLBACK = ConditionType.SELECTION_FALLBACK.value
EXTRA_PODS = ConditionType.EXTRA_PODS.value
FIELDS_IGNORED = ConditionType.FIELDS_IGNORED.value

Status = Literal["True", "False"]


class Conditions:
    """The conditions of one status while it is being decided."""

    __slots__ = ("_items", "_now")

    def __init__(self, conditions: tuple[Condition, ...], now: datetime) -> None:
        """Begin with the conditions that the status had."""
        self._items = list(conditions)
        self._now = now

    def set(self, kind: str, status: Status, reason: str, message: str) -> None:
        """Set a condition in its place, or add it at the end; its time moves only when its status does."""
        for index, old in enumerate(self._items):
            if old.type == kind:
                if old.status != status or old.reason != reason or old.message != message:
                    moved = self._now if old.status != status else old.last_transition_time
                    self._items[index] = Condition(
                        type=kind, status=status, last_transition_time=moved, reason=reason, message=message
                    )
                return
        self._items.append(
            Condition(
                type=kind, status=status, last_transition_time=self._now, reason=reason, message=message
            )
        )

    def remove(self, kind: str) -> None:
        """Remove a condition."""
        self._items = [condition for condition in self._items if condition.type != kind]

    def is_true(self, kind: str) -> bool:
        """Return whether a condition is there and True."""
        for condition in self._items:
            if condition.type == kind:
                return condition.status == "True"
        return False

    def done(self) -> tuple[Condition, ...]:
        """Return the conditions in their order."""
        return tuple(self._items)
