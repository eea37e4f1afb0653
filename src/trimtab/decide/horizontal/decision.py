"""What was decided, and everything that led to it."""

from typing import Literal

from trimtab.decide.horizontal.behavior.normalize import Normalized
from trimtab.decide.horizontal.memory import EMPTY, Memory
from trimtab.decide.horizontal.metrics.calculator import Action, Computation, ErrorLabel
from trimtab.decide.horizontal.metrics.proposal import Result
from trimtab.decide.horizontal.metrics.tolerance import Tolerance
from trimtab.decide.horizontal.selection.selection import LeftOut
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus, SelectionStrategy
from trimtab.model.json.wire import Wire


class EventToRecord(Wire):
    """An event to record about the autoscaler."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class DecisionTrace(Wire):
    """How the decision came about; `explain` turns it into words."""

    min_replicas: int = 0
    max_replicas: int = 0
    strategy: str = SelectionStrategy.LABEL_SELECTOR
    counted_pods: int | None = 0
    """How many pods count; None when the decision ended before the pods were selected."""
    left_out: tuple[LeftOut, ...] = ()
    extra_pods: int = 0
    """How many active pods count, by their labels, beyond those that the target has."""
    surge_pods: int = 0
    """How many pods the target has beyond its replicas, as during a rollout, by its status."""
    selection_fallback: str = ""
    """Why every pod counts although the strategy would choose; empty when it could choose."""
    tolerance: Tolerance = Tolerance()
    proposals: tuple[Result, ...] = ()
    winner: int | None = None
    """Index of the metric that asked for the most."""
    recommended: int | None = None
    """Replicas that the metrics ask for, before stabilisation."""
    normalized: Normalized | None = None
    stopped_by: str = ""
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
    trace: DecisionTrace = DecisionTrace()
