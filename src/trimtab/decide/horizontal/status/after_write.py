"""After the writes: what the scale's and the status's fate adds to a decision."""

import msgspec

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.behavior.rate_limits import scale_events
from trimtab.decide.horizontal.behavior.scale_to_zero import (
    mark_after_scale,
    set_scaled_to_zero,
)
from trimtab.decide.horizontal.decide import goes_to_zero
from trimtab.decide.horizontal.decision import Decision, EventToRecord
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.status.conditions import ABLE_TO_SCALE, Conditions


def after_scale(
    seen: Observation, decision: Decision, error: str | None = None, *, is_lost: bool = False
) -> Decision:
    """Complete a decision once the scale was written, or could not be; one without a write is already complete.

    A write whose answer `is_lost` may still arrive. Then a zero stays ours until the scale was seen otherwise.
    """
    if decision.scale_to is None:
        return decision
    if error is None:
        return _rescaled(seen, decision)
    return _not_rescaled(seen, decision, error, takes_back=not is_lost)


def _not_rescaled(seen: Observation, decision: Decision, error: str, *, takes_back: bool) -> Decision:
    conditions = Conditions(decision.status.conditions, wire_time(decision.now))
    message = f"the HPA controller was unable to update the target scale: {error}"
    conditions.set(ABLE_TO_SCALE, "False", "FailedUpdateScale", message)
    if decision.intent is not None:
        set_scaled_to_zero(conditions, scaled_to_zero=not takes_back)
    told = EventToRecord(
        type="Warning",
        reason="FailedRescale",
        message=f"New size: {decision.desired}; reason: {decision.reason}; error: {error}",
    )
    status = msgspec.structs.replace(decision.status, conditions=conditions.done())
    return msgspec.structs.replace(
        decision,
        scale_to=None,
        status=status,
        status_changed=status != (decision.intent or seen.hpa.status),
        events=(*decision.events, told),
        error=f"failed to rescale {seen.reference}: {error}",
        error_label="internal",
        is_final=False,
    )


def _rescaled(seen: Observation, decision: Decision) -> Decision:
    desired, before, compat = decision.desired, decision.current, seen.compat
    moment = wire_time(decision.now)
    conditions = Conditions(decision.status.conditions, moment)
    message = f"the HPA controller was able to update the target scale to {desired}"
    conditions.set(ABLE_TO_SCALE, "True", "SucceededRescale", message)
    to_zero = goes_to_zero(seen, before, desired, decision.trail.lowest)
    mark_after_scale(conditions, seen.gates, compat, scaled_to_zero=to_zero)
    told = EventToRecord(
        type="Normal", reason="SuccessfulRescale", message=f"New size: {desired}; reason: {decision.reason}"
    )
    up, down = scale_events(
        decision.memory, seen.hpa.spec.behavior, before, desired, decision.now, compact=compat.compact_memory
    )
    status = msgspec.structs.replace(
        decision.status, conditions=conditions.done(), desired_replicas=desired, last_scale_time=moment
    )
    replicas = desired if compat.tell_external_changes else decision.memory.replicas
    return msgspec.structs.replace(
        decision,
        scale_to=None,
        status=status,
        status_changed=status != (decision.intent or seen.hpa.status),
        events=(*decision.events, told),
        memory=msgspec.structs.replace(decision.memory, scale_up=up, scale_down=down, replicas=replicas),
        action="scale_up" if desired > before else "scale_down",
        observed_desired=desired,
    )


def after_status(seen: Observation, decision: Decision, error: str) -> Decision:
    """Complete a decision whose status could not be written."""
    told = EventToRecord(type="Warning", reason="FailedUpdateStatus", message=error)
    place = len(decision.events) - decision.events_after_status
    events = (*decision.events[:place], told, *decision.events[place:])
    if not decision.is_final:
        return msgspec.structs.replace(decision, events=events)
    return msgspec.structs.replace(
        decision,
        events=events,
        error=f"failed to update status for {seen.hpa.metadata.name}: {error}",
        error_label="internal",
    )
