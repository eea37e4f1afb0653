"""Whether a new status is written now, or waits because only the values of metrics moved.

A status is compared with the one that the cluster stores. Replicas, conditions, generations and everything that a
failover needs are written at once. Moved values wait until the difference is visible in two syncs in a row, or until the
stored values would be older than the limit at the next sync.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from math import inf
from typing import Final, NamedTuple
from zlib import crc32

from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.limits import windows_of
from trimtab.decide.horizontal.memory import Memory, is_restored_alike
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.status.moved_values import have_same_metrics, is_visible_change
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus, HpaCondition
from trimtab.model.json.wire import Wire

SLACK_SECONDS: Final = 1.0
"""How late a sync may be without a status being written a whole sync earlier."""

_NUMBER: Final = re.compile(r"\d+(\.\d+)?")


class StatusLimits(Wire):
    """How much the stored status may differ from the newest one."""

    max_age: float = 60.0
    """Seconds for which moved values may wait. 0 writes every change in every sync, as upstream does."""
    visible_change: float = 0.05
    """The change of a value that is visible, as a share of the metric's target."""
    sync_period: float = 15.0
    """Seconds until the next sync can write it."""


EVERY_SYNC: Final = StatusLimits(max_age=0.0)
"""Limits under which every change is written, as upstream does."""


class StatusLag(NamedTuple):
    """How long the stored status has differed from the newest one."""

    since: float = -inf
    """When it began, on the monotonic clock. -inf if an earlier leader may have let it begin."""
    is_visible: bool = False
    """Whether the last sync found a visible difference, which the next one writes if it finds one too."""


UNKNOWN_LAG: Final = StatusLag()
"""The lag at the start of an epoch."""


class StoredStatus(NamedTuple):
    """What the cluster stores of the last decision beside the fields that every kind of HPA has."""

    read_memory: Callable[[], Memory]
    """Parses the memory, which few calls need."""
    has_other_reason: bool = False
    """Whether the stored reason, in one word, is not that of the new decision."""


class WriteReason(StrEnum):
    """Why a status is written now."""

    EVERY_SYNC = "every_sync"
    GENERATION = "generation"
    REPLICAS = "replicas"
    CONDITION = "condition"
    METRICS = "metrics"
    MEMORY = "memory"
    VISIBLE = "visible"
    AGE = "age"


class StatusWrite(NamedTuple):
    """Whether a status is written now, and the lag that remains if it is not written."""

    reason: WriteReason | None = None
    """Why it is written. None if it is not."""
    lag: StatusLag | None = None
    """None if the stored status is the newest one."""


def plan_status_write(
    observation: Observation,
    decision: Decision,
    stored: StoredStatus,
    lag: StatusLag | None,
    now: float,
    limits: StatusLimits,
) -> StatusWrite:
    """Return whether the status of a decision is written now, on the monotonic clock.

    `lag` is what the last sync left.
    """
    if not decision.status_changed and not stored.has_other_reason:
        return StatusWrite(lag=UNKNOWN_LAG if lag == UNKNOWN_LAG else None)
    since = now if lag is None else lag.since
    if limits.max_age <= 0:
        return StatusWrite(WriteReason.EVERY_SYNC, StatusLag(since))
    old, new = observation.hpa.status, decision.status
    is_visible = stored.has_other_reason or is_visible_change(
        old.current_metrics,
        new.current_metrics,
        observation.hpa.spec.metrics,
        decision.trace.tolerance,
        limits.visible_change,
    )
    reason = urgent_reason(old, new)
    if reason is None and not _is_failover_safe(observation, decision, stored.read_memory()):
        reason = WriteReason.MEMORY
    if reason is None and is_visible and lag is not None and lag.is_visible:
        reason = WriteReason.VISIBLE
    if reason is None and now + limits.sync_period - since > limits.max_age + SLACK_SECONDS:
        reason = WriteReason.AGE
    return StatusWrite(reason, StatusLag(since, is_visible))


def lag_after_write(uid: str, lag: StatusLag | None, now: float, limits: StatusLimits) -> StatusLag | None:
    """Return the lag after a status was written.

    The first limit of an epoch is shortened by a share that depends on the uid. Otherwise all HPAs, which a new leader
    writes in its first sync, would be written again in the same sync each time.
    """
    if lag is None or lag.since != -inf:
        return None
    return StatusLag(now - limits.max_age * crc32(uid.encode()) / 2**32)


def urgent_reason(
    old: HorizontalPodAutoscalerStatus, new: HorizontalPodAutoscalerStatus
) -> WriteReason | None:
    """Return why a status cannot wait, or None if only values and numbers in messages moved."""
    if new.observed_generation != old.observed_generation:
        return WriteReason.GENERATION
    if (
        new.current_replicas != old.current_replicas
        or new.desired_replicas != old.desired_replicas
        or new.last_scale_time != old.last_scale_time
    ):
        return WriteReason.REPLICAS
    if len(new.conditions) != len(old.conditions) or any(
        map(_is_urgent_change, new.conditions, old.conditions)
    ):
        return WriteReason.CONDITION
    return None if have_same_metrics(old.current_metrics, new.current_metrics) else WriteReason.METRICS


def _is_urgent_change(new: HpaCondition, old: HpaCondition) -> bool:
    """Return whether a condition says more than other numbers. Its generation comes with the status' own."""
    return (
        new.type != old.type
        or new.status != old.status
        or new.reason != old.reason
        or new.last_transition_time != old.last_transition_time
        or (new.message != old.message and _without_numbers(new.message) != _without_numbers(old.message))
    )


def _without_numbers(message: str) -> str:
    return _NUMBER.sub("0", message)


def _is_failover_safe(observation: Observation, decision: Decision, stored: Memory) -> bool:
    """Return whether a new leader would decide the same from the stored memory."""
    windows = windows_of(observation.hpa.spec.behavior, observation.settings)
    # A recommendation of no more than the minimum holds no scale-down. Only a window of scale-ups needs its time.
    timeless = decision.trace.min_replicas if windows.up == 0 else -1
    return is_restored_alike(stored, decision.memory, decision.current, timeless)
