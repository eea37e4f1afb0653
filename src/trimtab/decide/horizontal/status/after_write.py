"""Completes a decision after the writes of scale and status succeeded or failed."""

import msgspec

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.decision import Decision, EventToRecord
from trimtab.decide.horizontal.limits import goes_to_zero, scale_events
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.reasons import Code, Reason
from trimtab.decide.horizontal.status.conditions import (
    ABLE_TO_SCALE,
    SCALED_TO_ZERO,
    SET_SCALED_TO_ZERO,
    UNSET_SCALED_TO_ZERO,
    Conditions,
)
from trimtab.decide.horizontal.status.generations import condition_generation, must_write


def after_scale(
    observation: Observation,
    decision: Decision,
    error: str | None = None,
    *,
    is_lost: bool = False,
    at: float | None = None,
) -> Decision:
    """Complete a decision after its scale was written, or could not be.

    The change is dated by `at`, the answer to its write. It may come long after the decision.
    A write whose response `is_lost` may still arrive. Then `ScaledToZero` stays until the scale shows otherwise.
    """
    if decision.scale_to is None:
        return decision
    if error is None:
        return _rescaled(observation, decision, decision.now if at is None else at)
    return _not_rescaled(observation, decision, error, takes_back=not is_lost)


def _not_rescaled(observation: Observation, decision: Decision, error: str, *, takes_back: bool) -> Decision:
    conditions = Conditions(
        decision.status.conditions, wire_time(decision.now), condition_generation(observation)
    )
    message = f"the HPA controller was unable to update the target scale: {error}"
    conditions.set(ABLE_TO_SCALE, "False", "FailedUpdateScale", message)
    if decision.intent is not None:
        conditions.set(*(UNSET_SCALED_TO_ZERO if takes_back else SET_SCALED_TO_ZERO))
    event = EventToRecord(
        type="Warning",
        reason="FailedRescale",
        message=f"New size: {decision.desired}; reason: {decision.because}; error: {error}",
    )
    status = msgspec.structs.replace(decision.status, conditions=conditions.done())
    return msgspec.structs.replace(
        decision,
        scale_to=None,
        reason=Reason(code=Code.SCALE_NOT_WRITTEN),
        status=status,
        status_changed=must_write(status, decision.intent or observation.hpa.status),
        events=(*decision.events, event),
        error=f"failed to rescale {observation.reference}: {error}",
        error_label="internal",
        is_final=False,
    )


def _rescaled(observation: Observation, decision: Decision, at: float) -> Decision:
    desired, before, rules = decision.desired, decision.current, observation.rules
    moment = wire_time(decision.now)
    conditions = Conditions(decision.status.conditions, moment, condition_generation(observation))
    message = f"the HPA controller was able to update the target scale to {desired}"
    conditions.set(ABLE_TO_SCALE, "True", "SucceededRescale", message)
    if observation.gates.hpa_scale_to_zero:
        to_zero = goes_to_zero(observation, desired, decision.trace.min_replicas)
        conditions.set(*(SET_SCALED_TO_ZERO if to_zero else UNSET_SCALED_TO_ZERO))
    elif not rules.ours:
        conditions.remove(SCALED_TO_ZERO)
    event = EventToRecord(
        type="Normal", reason="SuccessfulRescale", message=f"New size: {desired}; reason: {decision.because}"
    )
    up, down = scale_events(
        decision.memory,
        observation.hpa.spec.behavior,
        before,
        desired,
        at,
        compact=rules.ours,
    )
    status = msgspec.structs.replace(
        decision.status, conditions=conditions.done(), desired_replicas=desired, last_scale_time=moment
    )
    replicas = desired if rules.ours else decision.memory.replicas
    return msgspec.structs.replace(
        decision,
        scale_to=None,
        status=status,
        status_changed=must_write(status, decision.intent or observation.hpa.status),
        events=(*decision.events, event),
        memory=msgspec.structs.replace(decision.memory, scale_up=up, scale_down=down, replicas=replicas),
        action="scale_up" if desired > before else "scale_down",
        observed_desired=desired,
    )


def after_status(observation: Observation, decision: Decision, error: str) -> Decision:
    """Complete a decision whose status could not be written."""
    event = EventToRecord(type="Warning", reason="FailedUpdateStatus", message=error)
    place = len(decision.events) - decision.events_after_status
    events = (*decision.events[:place], event, *decision.events[place:])
    if not decision.is_final:
        return msgspec.structs.replace(decision, events=events)
    return msgspec.structs.replace(
        decision,
        events=events,
        error=f"failed to update status for {observation.hpa.metadata.name}: {error}",
        error_label="internal",
    )
