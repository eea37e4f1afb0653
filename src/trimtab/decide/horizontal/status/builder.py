"""Assembles a decision: `decide` hands it the results of its steps, and it returns the whole `Decision`."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from trimtab.decide.horizontal.decision import Decision, DecisionTrace, EventToRecord
from trimtab.decide.horizontal.memory import EMPTY, Memory
from trimtab.decide.horizontal.metrics.combine import ErrorLabel, MetricsResult
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.status.conditions import (
    Conditions,
    EmitEvent,
    SetCondition,
    StatusChange,
    statuses_of,
    with_scaled_to_zero,
)
from trimtab.decide.horizontal.status.generations import (
    condition_generation,
    must_write,
    observed_generation,
)
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus

NO_RESULT = MetricsResult()


class DecisionBuilder:
    """Collects the results of the steps of one `decide`."""

    __slots__ = (
        "_conditions",
        "_events",
        "_last_events",
        "conditions_before",
        "current",
        "error",
        "memory",
        "metrics",
        "moment",
        "must_store",
        "now",
        "observation",
        "trace",
    )

    def __init__(self, observation: Observation, now: datetime) -> None:
        """Start from the observed status and memory."""
        self.observation = observation
        self.now = now.timestamp()
        self.moment = now.astimezone(UTC).replace(microsecond=0)
        self.memory = _own_memory(observation)
        self.current = 0
        self.metrics = NO_RESULT
        self.trace = DecisionTrace()
        self.error = ""
        self.must_store = False
        """Whether the memory has to be stored although the status did not change."""
        self.conditions_before = statuses_of(observation.hpa.status.conditions)
        self._conditions = Conditions(
            observation.hpa.status.conditions, self.moment, condition_generation(observation)
        )
        self._events: list[EventToRecord] = []
        self._last_events = 0

    def was_true(self, condition: str) -> bool:
        """Return whether a condition of the observed status is True."""
        return self.conditions_before.get(condition) == "True"

    def apply(self, changes: Iterable[StatusChange]) -> None:
        """Make the changes of one step to conditions and events, in their order."""
        for change in changes:
            if isinstance(change, SetCondition):
                self._conditions.set(*change)
            elif isinstance(change, EmitEvent):
                self._emit(change)
            else:
                self._conditions.remove(change.type)

    def note(self, **fields: Any) -> None:
        """Add what a step found to the trace."""
        self.trace = msgspec.structs.replace(self.trace, **fields)

    def _emit(self, event: EmitEvent) -> None:
        if event.is_limited and self.observation.rules.ours:
            last = self.memory.last_event_times.get(event.reason)
            if last is not None and 0 <= self.now - last < self.observation.settings.event_interval:
                return
            self.memory = msgspec.structs.replace(
                self.memory, last_event_times=self.memory.last_event_times | {event.reason: self.now}
            )
        self._events.append(EventToRecord(type=event.type, reason=event.reason, message=event.message))
        self._last_events += event.is_last

    def settled(self, desired: int) -> Decision:
        """Return the decision to leave the scale as it is."""
        status = self._status(desired)
        return Decision(
            now=self.now,
            current=self.current,
            desired=desired,
            status=status,
            status_changed=self.must_store or must_write(status, self.observation.hpa.status),
            events=tuple(self._events),
            memory=self.memory,
            error=self.error,
            error_label="internal" if self.error else "none",
            computations=self.metrics.computations,
            observed_desired=desired,
            trace=self.trace,
        )

    def rescale(self, desired: int, reason: str, *, marks_zero: bool) -> Decision:
        """Return the decision to change the scale.

        With `marks_zero` it carries the status to write before the scale, with `ScaledToZero` already True.
        """
        old = self.observation.hpa.status
        return Decision(
            now=self.now,
            current=self.current,
            desired=desired,
            scale_to=desired,
            reason=reason,
            status=self._status(old.desired_replicas),
            intent=self._intent() if marks_zero else None,
            events=tuple(self._events),
            memory=self.memory,
            error=self.error,
            error_label="internal" if self.error else "none",
            computations=self.metrics.computations,
            trace=self.trace,
        )

    def failed(self, error: str, label: ErrorLabel = "internal") -> Decision:
        """Return the decision to do nothing because of an error."""
        old = self.observation.hpa.status
        if self.observation.scale is None:
            status = msgspec.structs.replace(
                old,
                conditions=self._conditions.done(),
                observed_generation=observed_generation(self.observation, has_scale=False),
            )
        else:
            status = self._status(old.desired_replicas)
        return Decision(
            now=self.now,
            current=self.current,
            desired=self.current,
            status=status,
            status_changed=self.must_store or must_write(status, old),
            events=tuple(self._events),
            events_after_status=self._last_events,
            memory=self.memory,
            error=error,
            error_label=label,
            computations=self.metrics.computations,
            is_final=False,
            trace=self.trace,
        )

    def _status(self, desired: int) -> HorizontalPodAutoscalerStatus:
        return HorizontalPodAutoscalerStatus(
            observed_generation=observed_generation(self.observation),
            last_scale_time=self.observation.hpa.status.last_scale_time,
            current_replicas=self.current,
            desired_replicas=desired,
            current_metrics=self.metrics.statuses,
            conditions=self._conditions.done(),
        )

    def _intent(self) -> HorizontalPodAutoscalerStatus:
        """Return the observed status with `ScaledToZero` already True."""
        observation = self.observation
        return with_scaled_to_zero(observation.hpa.status, self.moment, condition_generation(observation))


def _own_memory(observation: Observation) -> Memory:
    """Return the observed memory, or an empty one if it belongs to another object."""
    memory, uid = observation.memory, observation.hpa.metadata.uid
    if not observation.rules.ours or memory.uid == uid:
        return memory
    return msgspec.structs.replace(EMPTY if memory.uid else memory, uid=uid)
