"""What may be left out: whether what the cluster stores, extended to now, is still what a decision would leave."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.memory import QUIET_SECONDS, Memory, extend
from trimtab.model.hpa.metric_kinds import current_of, identity_of
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus, MetricStatus

SLACK_SECONDS: Final = 1.0
"""How late a sync may be without a status being written a whole sync earlier."""


class Stored(NamedTuple):
    """What the cluster stores of the last decision."""

    status: HorizontalPodAutoscalerStatus
    read_memory: Callable[[], Memory]
    """Parses the memory, which not every call needs."""
    is_inherited: bool = False
    """Whether the process that decides has not stored anything yet."""
    has_other_reason: bool = False
    """Whether the stored reason, in one word, is not that of the new decision."""


class WriteReason(StrEnum):
    """Why a status is written now."""

    MEMORY = "memory"
    """A replica that takes over would not remember the same."""
    SUBSTANCE = "substance"
    """More than values and texts differs."""
    AGE = "age"
    """Values or texts differ, and the stored ones are old."""


def must_write(
    stored: Stored, decision: Decision, *, keeps_memory: bool, max_age: float | None
) -> WriteReason | None:
    """Return why the status of a decision is written now, or None if it may wait.

    Values and texts under the same reason wait until the stored ones are `max_age` old. None: they do not wait.
    """
    memory = decision.memory
    before = stored.read_memory() if keeps_memory else memory
    # The last decision was repeated until now. So the time of the latest recommendation forces no write.
    if extend(before, memory.at) != memory:
        return WriteReason.MEMORY
    # Who takes over writes a quiet HPA once, so that its memory is worth something in the next hand-over.
    if keeps_memory and stored.is_inherited and decision.now - before.at > QUIET_SECONDS / 2:
        return WriteReason.MEMORY
    if stored.has_other_reason:
        return WriteReason.SUBSTANCE
    if not decision.status_changed:
        return None
    if without_values(stored.status) != without_values(decision.status):
        return WriteReason.SUBSTANCE
    is_old = max_age is None or decision.now - before.at >= max_age - SLACK_SECONDS
    return WriteReason.AGE if is_old else None


def without_values(status: HorizontalPodAutoscalerStatus) -> tuple[object, ...]:
    """Return what a status says without the values of metrics and the texts of conditions."""
    return (
        status.observed_generation,
        status.current_replicas,
        status.desired_replicas,
        status.last_scale_time,
        [(each.type, each.status, each.reason, each.last_transition_time) for each in status.conditions],
        [_without_value(each) for each in status.current_metrics],
    )


def _without_value(metric: MetricStatus) -> tuple[object, ...]:
    """Return the identity of a metric, and which values it has."""
    current = current_of(metric)
    values = (current.value, current.average_value, current.average_utilization)
    return *identity_of(metric), *(value is None for value in values)
