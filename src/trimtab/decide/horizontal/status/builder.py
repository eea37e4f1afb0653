"""A decision in the making: conditions, events and the way to it, collected until it is made."""

from datetime import UTC, datetime

import msgspec

from trimtab.decide.horizontal.decision import (
    Computation,
    Decision,
    DecisionTrace,
    ErrorLabel,
    EventToRecord,
)
from trimtab.decide.horizontal.memory import EMPTY, Memory
from trimtab.decide.horizontal.metrics.proposal import Result
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.status.conditions import Conditions
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus, MetricStatus


class DecisionBuilder:
    """What one call of `decide` has gathered so far."""

    __slots__ = (
        "_last",
        "computations",
        "conditions",
        "current",
        "error",
        "events",
        "memory",
        "metrics",
        "moment",
        "now",
        "proposals",
        "seen",
        "trail",
    )

    def __init__(self, seen: Observation, now: datetime) -> None:
        """Begin from what was observed."""
        self.seen = seen
        self.now = now.timestamp()
        self.moment = now.astimezone(UTC).replace(microsecond=0)
        self.conditions = Conditions(seen.hpa.status.conditions, self.moment)
        self.memory = _memory_of(seen)
        self.events: list[EventToRecord] = []
        self._last = 0
        self.current = 0
        self.metrics: tuple[MetricStatus, ...] = ()
        self.computations: list[Computation] = []
        self.proposals: list[Result] = []
        self.error = ""
        self.trail = DecisionTrace()

    def warn(self, reason: str, message: str) -> None:
        """Tell a warning."""
        self.events.append(EventToRecord(type="Warning", reason=reason, message=message))

    def warn_last(self, reason: str, message: str) -> None:
        """Tell a warning after the status is written."""
        self.warn(reason, message)
        self._last += 1

    def may_repeat(self, reason: str) -> bool:
        """Return whether an event that would come with every sync is due, and note that it is told."""
        if not self.seen.compat.limit_repeated_events:
            return True
        last = self.memory.told.get(reason)
        if last is not None and 0 <= self.now - last < self.seen.settings.event_interval:
            return False
        self.memory = msgspec.structs.replace(self.memory, told=self.memory.told | {reason: self.now})
        return True

    def status(self, desired: int, *, rescaled: bool = False) -> HorizontalPodAutoscalerStatus:
        """Return the whole new status."""
        old = self.seen.hpa.status
        return HorizontalPodAutoscalerStatus(
            observed_generation=self._generation(),
            last_scale_time=self.moment if rescaled else old.last_scale_time,
            current_replicas=self.current,
            desired_replicas=desired,
            current_metrics=self.metrics,
            conditions=self.conditions.done(),
        )

    def status_with_conditions(self) -> HorizontalPodAutoscalerStatus:
        """Return the old status with the new conditions, for a target that could not be looked at."""
        old = self.seen.hpa.status
        return msgspec.structs.replace(
            old, conditions=self.conditions.done(), observed_generation=self._generation()
        )

    def _generation(self) -> int | None:
        hpa = self.seen.hpa
        if not self.seen.compat.observe_generation:
            return hpa.status.observed_generation
        return hpa.metadata.generation or hpa.status.observed_generation

    def failed(
        self, error: str, status: HorizontalPodAutoscalerStatus, label: ErrorLabel = "internal"
    ) -> Decision:
        """Return the decision to do nothing because of an error."""
        return Decision(
            now=self.now,
            current=self.current,
            desired=self.current,
            status=status,
            status_changed=status != self.seen.hpa.status,
            events=tuple(self.events),
            events_after_status=self._last,
            memory=self.memory,
            error=error,
            error_label=label,
            computations=tuple(self.computations),
            is_final=False,
            trail=self.trail,
        )

    def settled(self, desired: int) -> Decision:
        """Return the decision to leave the scale as it is."""
        status = self.status(desired)
        return Decision(
            now=self.now,
            current=self.current,
            desired=desired,
            status=status,
            status_changed=status != self.seen.hpa.status,
            events=tuple(self.events),
            memory=self.memory,
            error=self.error,
            error_label="internal" if self.error else "none",
            computations=tuple(self.computations),
            observed_desired=desired,
            trail=self.trail,
        )

    def rescale(self, desired: int, reason: str, intent: HorizontalPodAutoscalerStatus | None) -> Decision:
        """Return the decision to change the scale; its status is completed after the write."""
        return Decision(
            now=self.now,
            current=self.current,
            desired=desired,
            scale_to=desired,
            reason=reason,
            status=self.status(self.seen.hpa.status.desired_replicas),
            intent=intent,
            events=tuple(self.events),
            memory=self.memory,
            error=self.error,
            error_label="internal" if self.error else "none",
            computations=tuple(self.computations),
            trail=self.trail,
        )


def _memory_of(seen: Observation) -> Memory:
    """Return the memory to go by; one of another object under the same name is not ours."""
    memory, uid = seen.memory, seen.hpa.metadata.uid
    if not seen.compat.memory_follows_uid or memory.uid == uid:
        return memory
    return msgspec.structs.replace(EMPTY if memory.uid else memory, uid=uid)
