"""Which generation of the spec a status and its conditions describe, and whether a status has to be written."""

import msgspec

from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus, HpaCondition


def observed_generation(observation: Observation, *, has_scale: bool = True) -> int | None:
    """Return status.observedGeneration of a decision.

    Kubernetes 1.36 never sets it, and drops it with each new status. Kubernetes 1.37 sets it with each new status, which
    a decision without the target's scale does not build.
    """
    hpa, rules = observation.hpa, observation.rules
    before, generation = hpa.status.observed_generation, hpa.metadata.generation
    if not has_scale and not rules.ours:
        return before
    if rules.minor < 37:
        return None
    return before if generation == 0 and rules.ours else generation


def condition_generation(observation: Observation) -> int | None:
    """Return observedGeneration of the conditions that a decision sets, or None to keep what they have."""
    if not observation.rules.ours:
        return None
    return observation.hpa.metadata.generation or None


def must_write(new: HorizontalPodAutoscalerStatus, old: HorizontalPodAutoscalerStatus) -> bool:
    """Return whether a status differs from the stored one in more than the generations of its conditions.

    A server of Kubernetes 1.36 drops the generation of a condition, so a comparison with it would write in every sync. A new
    generation is written with status.observedGeneration, and the conditions follow in the same write.
    """
    if new.conditions == old.conditions:
        return new != old
    return (
        len(new.conditions) != len(old.conditions)
        or any(map(_says_something_else, new.conditions, old.conditions))
        or msgspec.structs.replace(new, conditions=old.conditions) != old
    )


def _says_something_else(new: HpaCondition, old: HpaCondition) -> bool:
    """Return whether two conditions differ in more than their generations."""
    return (
        new.message != old.message
        or new.reason != old.reason
        or new.status != old.status
        or new.type != old.type
        or new.last_transition_time != old.last_transition_time
    )
