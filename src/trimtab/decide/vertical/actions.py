"""What an update loop asks the cluster to do, and what it says about it."""

from dataclasses import dataclass
from enum import StrEnum

from trimtab.decide.vertical.patches import Operation
from trimtab.model.pod import Pod
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.model.wire import Wire


class Outcome(StrEnum):
    """What became of an action."""

    DONE = "done"
    FAILED = "failed"
    INFEASIBLE = "infeasible"
    """The API refused a resize because the node is too small for it (cause NodeCapacity)."""
    REFUSED = "refused"
    """The API refused an eviction for now (429: a PodDisruptionBudget)."""


@dataclass(frozen=True)
class Resize:
    """Resize a pod in place: patch its `resize` subresource, then its annotations."""

    pod: Pod
    vpa: VerticalPodAutoscaler
    operations: tuple[Operation, ...]
    annotations: tuple[Operation, ...]
    reason: str


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


class Verdict(Wire):
    """What the loop did with one pod, and why."""

    pod: str
    vpa: str | None
    action: str
    """`resized`, `evicted`, `resize failed`, `eviction failed` or `none`."""
    reason: str
