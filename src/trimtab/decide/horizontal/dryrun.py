"""What a decision says when it must not be carried out."""

import msgspec

from trimtab.decide.horizontal.conditions import ABLE_TO_SCALE, Conditions
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.observation import Observation
from trimtab.decide.horizontal.timing import wire_time
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.mode import MODE_ANNOTATION, is_dry_run, mode_problem
from trimtab.model.hpa.selection_strategy import strategy_problem
from trimtab.model.hpa.types import HorizontalPodAutoscaler

UNKNOWN_ANNOTATION = "UnknownAnnotation"


def wrong_annotation(seen: Observation) -> str:
    """Return which annotation is misspelt or contradicts another; nothing is scaled before it is corrected."""
    return annotation_problem(seen.hpa, seen.gates)


def annotation_problem(hpa: HorizontalPodAutoscaler, gates: FeatureGates) -> str:
    """Return `wrong_annotation` of an HPA that nothing was observed of."""
    problem = mode_problem(hpa.metadata.annotations.get(MODE_ANNOTATION, ""))
    if problem or not gates.hpa_selection_strategy:
        return problem
    return strategy_problem(hpa.metadata.annotations, hpa.spec.selection_strategy)


def scales_nothing(hpa: HorizontalPodAutoscaler, gates: FeatureGates) -> bool:
    """Return whether an HPA itself says that its decisions must not be carried out, or says it so that nobody knows."""
    return is_dry_run(hpa) or bool(annotation_problem(hpa, gates))


def is_only_told(seen: Observation) -> bool:
    """Return whether the decision about an HPA must not be carried out, by what the HPA itself says."""
    return scales_nothing(seen.hpa, seen.gates)


def only_told(seen: Observation, decision: Decision) -> Decision:
    """Return the decision with its scale write turned into a sentence of the status."""
    problem = wrong_annotation(seen)
    if decision.scale_to is None and not problem:
        return decision
    conditions = Conditions(decision.status.conditions, wire_time(decision.now))
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
        status_changed=status != seen.hpa.status,
        observed_desired=decision.desired,
    )
