"""What was decided, and everything that led to it."""

from typing import Literal

import msgspec

from trimtab.decide.horizontal.arithmetic import wire_time
from trimtab.decide.horizontal.behavior.normalize import Normalized
from trimtab.decide.horizontal.behavior.tolerance import Tolerance
from trimtab.decide.horizontal.memory import EMPTY, Memory
from trimtab.decide.horizontal.metrics.proposal import Result
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.selection.selection import LeftOut
from trimtab.decide.horizontal.status.conditions import ABLE_TO_SCALE, Conditions
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.dry_run import MODE_ANNOTATION, is_dry_run, mode_problem
from trimtab.model.hpa.selection_strategy import strategy_problem
from trimtab.model.hpa.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, SelectionStrategy
from trimtab.model.json.wire import Wire

Action = Literal["scale_up", "scale_down", "none"]
ErrorLabel = Literal["spec", "internal", "none"]


class EventToRecord(Wire):
    """An event to record about the autoscaler."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Computation(Wire):
    """Labels of the metric that counts computations, one per metric of the spec."""

    type: str
    action: Action = "none"
    error: ErrorLabel = "none"


class DecisionTrace(Wire):
    """How the decision came about; `explain` turns it into words."""

    lowest: int = 0
    highest: int = 0
    strategy: str = SelectionStrategy.LABEL_SELECTOR
    counted: int | None = 0
    """How many pods count; None when the decision ended before any was looked at."""
    left_out: tuple[LeftOut, ...] = ()
    extra: int = 0
    """How many active pods count, by their labels, beyond those that the target has."""
    surge: int = 0
    """How many pods the target has beyond its replicas, as during a rollout, by its status."""
    fallback: str = ""
    tolerance: Tolerance = Tolerance()
    proposals: tuple[Result, ...] = ()
    winner: int | None = None
    """Index of the metric that asked for the most."""
    asked: int | None = None
    """Replicas that the metrics asked for."""
    normalized: Normalized | None = None
    stop: str = ""
    """What ended the decision before any metric counted; empty when metrics did."""


class Decision(Wire, kw_only=True):
    """One decision; the writes follow from it and from nothing else."""

    now: float
    current: int = 0
    desired: int = 0
    scale_to: int | None = None
    """Replicas to write; None: the scale is not written. After the write, ask `after_scale`."""
    reason: str = ""
    """Why the scale changes, as the event says it."""
    status: HorizontalPodAutoscalerStatus
    status_changed: bool = False
    intent: HorizontalPodAutoscalerStatus | None = None
    """A status to write *before* the scale: that going to zero is our doing."""
    events: tuple[EventToRecord, ...] = ()
    events_after_status: int = 0
    """How many of the last events are told after the status is written."""
    memory: Memory = EMPTY
    error: str = ""
    """What the reconcile reports as its error; empty when all is well."""
    error_label: ErrorLabel = "none"
    action: Action = "none"
    computations: tuple[Computation, ...] = ()
    observed_desired: int | None = None
    """Value for the desired-replicas gauge; None leaves it as it is."""
    is_final: bool = True
    """Whether a failed write of the status is the reconcile's error; else it is only logged."""
    trail: DecisionTrace = DecisionTrace()


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


def as_dry_run(seen: Observation, decision: Decision) -> Decision:
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
