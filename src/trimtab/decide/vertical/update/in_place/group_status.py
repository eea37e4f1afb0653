"""Whether a pod can be resized in place now, must wait, or has to be evicted instead.

Also answers whether a pod may be evicted, since a resize that is under way delays that.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from trimtab.decide.vertical.update.disruption_budget import (
    RESIZE_IN_PROGRESS,
    RESIZE_PENDING,
    ReplicaGroup,
    is_resizing,
)
from trimtab.decide.vertical.update.eligibility import is_lower_anywhere
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import RecommendedPodResources, UpdateMode

DEFERRED_TIMEOUT = timedelta(minutes=5)
IN_PROGRESS_TIMEOUT = timedelta(hours=1)


class Resizing(StrEnum):
    """How far the kubelet is with a resize."""

    NONE = "ResizeNone"
    DEFERRED = "ResizeDeferred"
    INFEASIBLE = "ResizeInfeasible"
    IN_PROGRESS = "ResizeInProgress"
    ERROR = "ResizeError"
    UNKNOWN = "ResizeUnknown"


PATIENCE = {Resizing.DEFERRED: DEFERRED_TIMEOUT, Resizing.IN_PROGRESS: IN_PROGRESS_TIMEOUT}
"""How long a resize may be under way before the pod is evicted instead."""


class InPlaceDecision(StrEnum):
    """What to do with a pod that should be resized in place."""

    APPROVED = "InPlaceApproved"
    DEFERRED = "InPlaceDeferred"
    EVICT = "InPlaceEvict"
    INFEASIBLE = "InPlaceInfeasible"
    INFEASIBLE_CACHED = "InPlaceInfeasibleCached"


@dataclass(frozen=True)
class GroupStatus:
    """A pod's place in its group: None of both means that it must not be disturbed."""

    is_member: bool
    group: ReplicaGroup | None
    is_below_minimum: bool = False


@dataclass(frozen=True)
class InPlaceResult:
    """A decision about one pod, the moment its resize was first seen, and why."""

    decision: InPlaceDecision
    first_seen: datetime | None
    reason: str


@dataclass(frozen=True)
class InPlaceRequest:
    """Everything the decision about one pod depends on."""

    pod: Pod
    mode: str
    standing: GroupStatus
    recommendation: RecommendedPodResources | None
    infeasible: RecommendedPodResources | None = None
    """The recommendation that was found infeasible for this pod, if any."""
    first_seen: datetime | None = None
    """When the resize that is under way was first seen."""
    is_mode_allowed: bool = True
    """Whether feature gate InPlace is on."""
    skips_budget: bool = False
    """Whether resizes that restart nothing need no budget."""


def resizing(pod: Pod) -> Resizing:
    """Read how far a resize is from the pod's conditions."""
    if not is_resizing(pod):
        return Resizing.NONE
    pending = pod.status.condition(RESIZE_PENDING)
    if pending is not None:
        known = {"Deferred": Resizing.DEFERRED, "Infeasible": Resizing.INFEASIBLE}
        return known.get(pending.reason, Resizing.UNKNOWN)
    progress = pod.status.condition(RESIZE_IN_PROGRESS)
    if progress is not None and not progress.reason and not progress.message:
        return Resizing.IN_PROGRESS
    return Resizing.ERROR if progress is not None and progress.reason == "Error" else Resizing.UNKNOWN


def restarts_containers(pod: Pod) -> bool:
    """Return whether resizing would restart a container."""
    return any(
        policy.restart_policy == "RestartContainer"
        for container in pod.spec.containers
        for policy in container.resize_policy
    )


def decide_in_place(request: InPlaceRequest, now: datetime) -> InPlaceResult:
    """Decide about one pod that should be resized in place."""
    if blocked := _blocked(request):
        return InPlaceResult(InPlaceDecision.DEFERRED, request.first_seen, blocked)
    is_known_infeasible = request.mode == UpdateMode.IN_PLACE and request.infeasible is not None
    if is_known_infeasible and not is_lower_anywhere(request.infeasible, request.recommendation):
        return InPlaceResult(
            InPlaceDecision.INFEASIBLE_CACHED,
            request.first_seen,
            "an earlier resize was infeasible and nothing recommended is lower now",
        )
    if resizing(request.pod) is not Resizing.NONE:
        return _while_resizing(request, now)
    return _by_budget(request)


def _blocked(request: InPlaceRequest) -> str:
    if request.mode == UpdateMode.IN_PLACE and not request.is_mode_allowed:
        return "mode InPlace needs feature gate InPlace"
    if not request.standing.is_member:
        return "its group is unknown or below the minimum of replicas"
    if request.pod.status.phase == "Pending":
        return "it is Pending"
    if request.standing.group is None:
        return "how many replicas its creator should have is not known"
    return "" if request.recommendation is not None else "there is no recommendation yet"


def _while_resizing(request: InPlaceRequest, now: datetime) -> InPlaceResult:
    state = resizing(request.pod)
    if request.mode == UpdateMode.IN_PLACE:
        decision = InPlaceDecision.INFEASIBLE if state is Resizing.INFEASIBLE else InPlaceDecision.DEFERRED
        return InPlaceResult(decision, request.first_seen, f"an earlier resize is not finished: {state}")
    can_go, first_seen = can_evict_resizing(request.pod, request.standing.group, request.first_seen, now)
    if can_go:
        return InPlaceResult(
            InPlaceDecision.EVICT, first_seen, f"its resize failed or takes too long: {state}"
        )
    return InPlaceResult(InPlaceDecision.DEFERRED, first_seen, f"an earlier resize is not finished: {state}")


def _by_budget(request: InPlaceRequest) -> InPlaceResult:
    if request.skips_budget and not restarts_containers(request.pod):
        return InPlaceResult(
            InPlaceDecision.APPROVED, request.first_seen, "a resize without restart needs no budget"
        )
    group = request.standing.group
    if group is not None and group.is_disruptable:
        return InPlaceResult(InPlaceDecision.APPROVED, request.first_seen, "its group can spare a pod")
    return InPlaceResult(
        InPlaceDecision.DEFERRED, request.first_seen, "its group cannot spare another pod now"
    )


def can_evict(
    pod: Pod, standing: GroupStatus, first_seen: datetime | None, now: datetime
) -> tuple[bool, datetime | None]:
    """Return whether the pod may be evicted, and when its resize was first seen; Pending pods need no budget."""
    if not standing.is_member:
        return False, first_seen
    if pod.status.phase == "Pending":
        return True, first_seen
    if standing.group is None or standing.is_below_minimum:
        return False, first_seen
    if is_resizing(pod):
        return can_evict_resizing(pod, standing.group, first_seen, now)
    return standing.group.is_disruptable, first_seen


def can_evict_resizing(
    pod: Pod, group: ReplicaGroup | None, first_seen: datetime | None, now: datetime
) -> tuple[bool, datetime | None]:
    """Return whether a resize has failed or waited long enough to evict instead; the wait begins when first seen."""
    if not is_resizing(pod):
        return False, first_seen
    since = first_seen if first_seen is not None else now
    if group is None or not group.is_disruptable:
        return False, since
    patience = PATIENCE.get(resizing(pod))
    return patience is None or now - since > patience, since
