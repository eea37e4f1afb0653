"""What an update loop asks the cluster to do, and what it says about it."""

from dataclasses import dataclass
from enum import StrEnum

from trimtab.decide.vertical.admission.patches import Operation
from trimtab.decide.vertical.update.in_place.resize import ResizePlan
from trimtab.model.core.pod import Pod
from trimtab.model.json.wire import Wire
from trimtab.model.vpa.types import VerticalPodAutoscaler


class ActionResult(StrEnum):
    """What became of an action."""

    DONE = "done"
    FAILED = "failed"
    """The API refused it, or nothing was sent."""
    UNKNOWN = "unknown"
    """It was sent and no answer came, or one that the server failed: it may have been done."""
    INFEASIBLE = "infeasible"
    """The API refused a resize because the node is too small for it (cause NodeCapacity)."""
    INVALID = "invalid"
    """The API refused a resize by a rule that another try would break again (422)."""
    UNREPLACEABLE = "unreplaceable"
    """Nothing was sent, since the pod that would take its place is refused, no different, or fits on no node."""
    REFUSED = "refused"
    """The API refused an eviction for now (429: a PodDisruptionBudget)."""
    WOULD = "would"
    """Nothing was sent because this is a dry run: it uses the budget of the loop, and no event says that it was done."""
    LATER = "later"
    """Nothing was sent: a rate limit is reached."""

    @property
    def is_charged(self) -> bool:
        """Return whether the pod counts as disturbed: budget, brakes and ledger count what may have been done."""
        return self in (ActionResult.DONE, ActionResult.UNKNOWN, ActionResult.WOULD)


@dataclass(frozen=True)
class Resize:
    """Resize a pod in place: note what it was, patch its `resize` subresource, then note that it was resized."""

    pod: Pod
    vpa: VerticalPodAutoscaler
    plan: ResizePlan
    reason: str

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Return the patch of the `resize` subresource."""
        return self.plan.operations


@dataclass(frozen=True)
class Evict:
    """Evict a pod, with its uid as precondition."""

    pod: Pod
    vpa: VerticalPodAutoscaler
    reason: str


Action = Resize | Evict


class UpdateEvent(Wire):
    """An event to record about a pod or a VPA."""

    kind: str
    """Of the object it is about: Pod or VerticalPodAutoscaler."""
    object: str
    """Its `namespace/name`."""
    type: str
    reason: str
    message: str


class PodUpdateResult(Wire):
    """What the loop did with one pod, and why."""

    pod: str
    vpa: str | None
    action: str
    """`resized`, `evicted`, `resize failed`, `eviction failed`, `would resize`, `would evict` or `none`.

    `resize not answered` and `eviction not answered` count as done until the pod shows otherwise.
    """
    reason: str
