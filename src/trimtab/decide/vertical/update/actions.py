"""What an update loop asks the cluster to do, and what it reports."""

from dataclasses import dataclass
from enum import StrEnum

from trimtab.decide.vertical.admission.patches import Operation
from trimtab.decide.vertical.update.resize.plan import ResizePlan
from trimtab.model.core.pod import Pod
from trimtab.model.json.wire import Wire
from trimtab.model.vpa.types import VerticalPodAutoscaler


class ActionResult(StrEnum):
    """The result of an action."""

    DONE = "done"
    FAILED = "failed"
    """The API refused it, or nothing was sent."""
    UNKNOWN = "unknown"
    """It was sent, and the response was lost or was a server error. It may have been done."""
    INFEASIBLE = "infeasible"
    """The API refused a resize because the node is too small for it (cause NodeCapacity)."""
    INVALID = "invalid"
    """The API refused a resize by a rule that a retry would break again (422)."""
    UNREPLACEABLE = "unreplaceable"
    """Nothing was sent, since the replacement is refused, is no different, or fits on no node."""
    REFUSED = "refused"
    """The API refused an eviction for now (429: a PodDisruptionBudget)."""
    DRY_RUN = "dry run"
    """Nothing was sent because this is a dry run. It uses the loop's budget and emits no event."""
    RATE_LIMITED = "rate limited"
    """Nothing was sent, because a rate limit is reached."""

    @property
    def is_disruption(self) -> bool:
        """Return whether the pod counts as disrupted, because the action may have been done."""
        return self in (ActionResult.DONE, ActionResult.UNKNOWN, ActionResult.DRY_RUN)


@dataclass(frozen=True)
class Resize:
    """Resize a pod in place: write annotations, patch the `resize` subresource, write annotations."""

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
    """Evict a pod, with its uid and version as preconditions."""

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
