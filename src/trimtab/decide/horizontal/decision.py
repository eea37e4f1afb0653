"""A decision, and the trace of how it came about."""

from typing import Literal

from trimtab.decide.horizontal.behavior.normalize import Normalized
from trimtab.decide.horizontal.memory import EMPTY, Memory
from trimtab.decide.horizontal.metrics.combine import Action, Computation, ErrorLabel, Result
from trimtab.decide.horizontal.metrics.pods import Tolerance
from trimtab.decide.horizontal.selection.selection import LeftOut
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus, SelectionStrategy
from trimtab.model.json.wire import Wire


class EventToRecord(Wire):
    """An event to record about the HPA."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class DecisionTrace(Wire):
    """How the decision came about."""

    min_replicas: int = 0
    max_replicas: int = 0
    strategy: str = SelectionStrategy.LABEL_SELECTOR
    counted_pods: int | None = 0
    """How many pods count; None when the decision ended before the pods were selected."""
    left_out: tuple[LeftOut, ...] = ()
    extra_pods: int = 0
    """How many active pods count, by their labels, beyond those that the target has."""
    surge_pods: int = 0
    """How many pods the target's status has beyond its replicas, as during a rollout."""
    selection_fallback: str = ""
    """Why every pod counts although the strategy would choose; empty when it could choose."""
    stale_hold: str = ""
    """Which stale caches kept the replicas from being lowered; empty if none did."""
    tolerance: Tolerance = Tolerance()
    proposals: tuple[Result, ...] = ()
    winner: int | None = None
    """Index of the metric that asked for the most."""
    recommended: int | None = None
    """Replicas that the metrics ask for, before stabilization."""
    winning_policy: int | None = None
    """Index of the replica policy that asked for the most, if no metric asked for as many."""
    policy_hold: str = ""
    """Why replica policies failed, so that the replicas are not lowered; empty if none did."""
    normalized: Normalized | None = None
    stopped_by: str = ""
    """What ended the decision before a metric counted; empty when metrics did."""


class Decision(Wire, kw_only=True):
    """One decision, which holds everything to write."""

    now: float
    current: int = 0
    desired: int = 0
    scale_to: int | None = None
    """Replicas to write, or None; `after_scale` completes the decision after the write."""
    reason: str = ""
    """Why the scale changes, as the event says it."""
    status: HorizontalPodAutoscalerStatus
    status_changed: bool = False
    intent: HorizontalPodAutoscalerStatus | None = None
    """The status to write *before* the scale, to mark a zero as the HPA's own."""
    events: tuple[EventToRecord, ...] = ()
    events_after_status: int = 0
    """How many of the last events are emitted after the status is written."""
    memory: Memory = EMPTY
    error: str = ""
    """What the reconcile reports as its error; empty without one."""
    error_label: ErrorLabel = "none"
    action: Action = "none"
    computations: tuple[Computation, ...] = ()
    observed_desired: int | None = None
    """Value for the desired-replicas gauge; None leaves it as it is."""
    is_final: bool = True
    """Whether a failed write of the status is the reconcile's error; else it is only logged."""
    trace: DecisionTrace = DecisionTrace()
