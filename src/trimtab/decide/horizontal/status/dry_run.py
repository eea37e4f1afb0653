"""Decisions that must not be carried out: dry runs, and HPAs with a wrong annotation."""

import msgspec

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.status.conditions import ABLE_TO_SCALE, Conditions
from trimtab.decide.horizontal.status.generations import condition_generation, must_write
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.dry_run import MODE_ANNOTATION, is_dry_run, mode_problem
from trimtab.model.hpa.selection_strategy import strategy_problem
from trimtab.model.hpa.types import HorizontalPodAutoscaler

UNKNOWN_ANNOTATION = "UnknownAnnotation"


def annotation_problem(hpa: HorizontalPodAutoscaler, gates: FeatureGates) -> str:
    """Return which annotation is misspelt or contradicts another, or an empty text.

    The HPA does not scale before the annotation is corrected.
    """
    problem = mode_problem(hpa.metadata.annotations.get(MODE_ANNOTATION, ""))
    if problem or not gates.hpa_selection_strategy:
        return problem
    return strategy_problem(hpa.metadata.annotations, hpa.spec.selection_strategy)


def must_not_scale(hpa: HorizontalPodAutoscaler, gates: FeatureGates) -> bool:
    """Return whether an HPA asks for a dry run, or has an annotation that might."""
    return is_dry_run(hpa) or bool(annotation_problem(hpa, gates))


def as_dry_run(observation: Observation, decision: Decision) -> Decision:
    """Return the decision with its scale write turned into a sentence of the status."""
    problem = annotation_problem(observation.hpa, observation.gates)
    if decision.scale_to is None and not problem:
        return decision
    conditions = Conditions(
        decision.status.conditions, wire_time(decision.now), condition_generation(observation)
    )
    message = f"dry run: would scale from {decision.current} to {decision.scale_to}: {decision.reason}"
    if decision.scale_to is None:
        message = "nothing would be scaled now"
    if problem:
        message = f"{problem}; nothing is scaled until then. {message}"
    conditions.set(ABLE_TO_SCALE, "True", UNKNOWN_ANNOTATION if problem else "DryRun", message)
    status = msgspec.structs.replace(
        decision.status, conditions=conditions.done(), desired_replicas=decision.desired
    )
    return msgspec.structs.replace(
        decision,
        scale_to=None,
        intent=None,
        status=status,
        status_changed=must_write(status, observation.hpa.status),
        observed_desired=decision.desired,
    )
