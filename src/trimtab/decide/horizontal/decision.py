"""A decision, and the trace of how it came about."""

from typing import Literal

from trimtab.decide.horizontal.limits import Bounds
from trimtab.decide.horizontal.memory import EMPTY, Memory
from trimtab.decide.horizontal.metrics.combine import (
    Action,
    Computation,
    ErrorLabel,
    MetricsResult,
    Result,
)
from trimtab.decide.horizontal.metrics.pods import Tolerance
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.reasons import Code, Count, Reason
from trimtab.decide.horizontal.selection.selection import LeftOut, Selection
from trimtab.decide.horizontal.selection.selector_check import SelectorProblem
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
    tolerance: Tolerance = Tolerance()
    proposals: tuple[Result, ...] = ()
    winner: int | None = None
    """Index of the metric that asked for the most."""
    winning_policy: int | None = None
    """Index of the replica policy that asked for the most, if no metric asked for as many."""
    doubts: tuple[Reason, ...] = ()
    """What is not known well enough to remove pods, the first of which holds."""
    counts: tuple[Count, ...] = ()
    """What is asked for, then what each step made of it: doubts, windows, bounds and rates. Empty if nothing is asked for."""

    @property
    def is_measured(self) -> bool:
        """Return whether metrics or replica policies decided, and not the bounds alone."""
        return len(self.counts) > BOUND_STEPS

    @property
    def recommended(self) -> int | None:
        """Return what metrics and policies ask for, as far as nothing is in doubt. None if they do not decide."""
        return self.counts[1].replicas if self.is_measured else None

    @property
    def is_held(self) -> bool:
        """Return whether windows, bounds or rates changed what is recommended."""
        return self.is_measured and self.counts[-1] != self.counts[1]


BOUND_STEPS = WINDOWS = 2
"""How many steps a size has that the bounds force: asked for, and not in doubt. The next one is that of the windows."""


class Proposed(Wire, kw_only=False):
    """What is asked for, before doubts, windows, bounds and rates; with what the later steps need of the way there."""

    seen: Observation
    now: float
    memory: Memory
    """What the HPA remembers, as it was before this decision."""
    strategy: str
    bounds: Bounds
    asked: Count | Reason
    """The replicas that are asked for, or why nothing can be asked for."""
    is_bound: bool = False
    """Whether the bounds alone ask for it, because metrics are not asked while the replicas are outside of them."""
    selection: Selection | None = None
    """None if the decision ended before the pods were selected."""
    extra_pods: int = 0
    problem: SelectorProblem | None = None
    metrics: MetricsResult = MetricsResult()
    tolerance: Tolerance = Tolerance()
    doubts: tuple[Reason, ...] = ()

    @property
    def is_unread(self) -> bool:
        """Return whether metrics were asked, and none of them nor a policy gives a number."""
        return self.selection is not None and self.metrics.replicas is None


class Decision(Wire, kw_only=True):
    """One decision, which holds everything to write."""

    now: float
    current: int = 0
    desired: int = 0
    scale_to: int | None = None
    """Replicas to write, or None; `after_scale` completes the decision after the write."""
    reason: Reason = Reason(code=Code.ENOUGH)
    """Why the replicas are what they are. It is stored with the status."""
    because: str = ""
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

    @property
    def knows_replicas(self) -> bool:
        """Return whether the scale was read. If not, the numbers of replicas are unknown, and not 0."""
        return self.reason.code is not Code.SCALE_UNREADABLE
