"""Upstream's rules about when a pod may be resized in place or evicted, for `--compat`.

They are `CanInPlaceUpdate` and `CanEvict` of upstream's updater. Trimtab's own rules are in `loop_state`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trimtab.decide.vertical.update.disruption_budget import ReplicaGroup
from trimtab.decide.vertical.update.eligibility import is_lower_anywhere
from trimtab.decide.vertical.update.resize.status import (
    RESIZE_TIMEOUTS,
    ResizeStatus,
    is_resizing,
    reported_status,
    restarts_containers,
)
from trimtab.model.core.pod import Pod
from trimtab.model.vpa.types import RecommendedPodResources, UpdateMode


class InPlaceDecision(StrEnum):
    """What to do with a pod that should be resized in place."""

    APPROVED = "InPlaceApproved"
    DEFERRED = "InPlaceDeferred"
    EVICT = "InPlaceEvict"
    INFEASIBLE = "InPlaceInfeasible"
    INFEASIBLE_CACHED = "InPlaceInfeasibleCached"


@dataclass(frozen=True)
class GroupStatus:
    """A pod's replica group.

    A pod that is no member, or whose group is unknown, must not be disrupted.
    """

    is_member: bool
    group: ReplicaGroup | None
    is_below_minimum: bool = False


@dataclass(frozen=True)
class InPlaceResult:
    """A decision about one pod, when its resize was first seen, and the reason."""

    decision: InPlaceDecision
    first_seen: datetime | None
    reason: str


@dataclass(frozen=True)
class InPlaceRequest:
    """Everything that the decision about one pod depends on."""

    pod: Pod
    mode: str
    group_status: GroupStatus
    recommendation: RecommendedPodResources | None
    infeasible: RecommendedPodResources | None = None
    """The recommendation that was infeasible for this pod, if any."""
    first_seen: datetime | None = None
    """When the resize that is under way was first seen."""
    is_mode_allowed: bool = True
    """Whether feature gate InPlace is on."""
    skips_budget: bool = False
    """Whether resizes that restart nothing need no budget."""


def decide_in_place(request: InPlaceRequest, now: datetime) -> InPlaceResult:
    """Decide about one pod that should be resized in place."""
    if blocked := _blocked(request):
        return InPlaceResult(InPlaceDecision.DEFERRED, request.first_seen, blocked)
    is_cached = request.mode == UpdateMode.IN_PLACE and request.infeasible is not None
    if is_cached and not is_lower_anywhere(request.infeasible, request.recommendation):
        return InPlaceResult(
            InPlaceDecision.INFEASIBLE_CACHED,
            request.first_seen,
            "an earlier resize was infeasible and nothing recommended is lower now",
        )
    if reported_status(request.pod) is not ResizeStatus.NONE:
        return _while_resizing(request, now)
    return _by_budget(request)


def _blocked(request: InPlaceRequest) -> str:
    if request.mode == UpdateMode.IN_PLACE and not request.is_mode_allowed:
        return "mode InPlace needs feature gate InPlace"
    if not request.group_status.is_member:
        return "its group is unknown or below the minimum of replicas"
    if request.pod.status.phase == "Pending":
        return "it is Pending"
    if request.group_status.group is None:
        return "how many replicas its creator should have is not known"
    return "" if request.recommendation is not None else "there is no recommendation yet"


def _while_resizing(request: InPlaceRequest, now: datetime) -> InPlaceResult:
    status, first_seen = reported_status(request.pod), request.first_seen
    decision = InPlaceDecision.DEFERRED
    if request.mode == UpdateMode.IN_PLACE:
        if status is ResizeStatus.INFEASIBLE:
            decision = InPlaceDecision.INFEASIBLE
    else:
        can_go, first_seen = can_evict_resizing(request.pod, request.group_status.group, first_seen, now)
        if can_go:
            reason = f"its resize failed or takes too long: {status}"
            return InPlaceResult(InPlaceDecision.EVICT, first_seen, reason)
    return InPlaceResult(decision, first_seen, f"an earlier resize is not finished: {status}")


def _by_budget(request: InPlaceRequest) -> InPlaceResult:
    group = request.group_status.group
    if request.skips_budget and not restarts_containers(request.pod):
        decision, reason = InPlaceDecision.APPROVED, "a resize without restart needs no budget"
    elif group is not None and group.is_disruptable:
        decision, reason = InPlaceDecision.APPROVED, "its group can spare a pod"
    else:
        decision, reason = InPlaceDecision.DEFERRED, "its group cannot spare another pod now"
    return InPlaceResult(decision, request.first_seen, reason)


def can_evict(
    pod: Pod, status: GroupStatus, first_seen: datetime | None, now: datetime
) -> tuple[bool, datetime | None]:
    """Return whether the pod may be evicted, and when its resize was first seen.

    Pending pods need no budget.
    """
    if not status.is_member:
        return False, first_seen
    if pod.status.phase == "Pending":
        return True, first_seen
    if status.group is None or status.is_below_minimum:
        return False, first_seen
    if is_resizing(pod):
        return can_evict_resizing(pod, status.group, first_seen, now)
    return status.group.is_disruptable, first_seen


def can_evict_resizing(
    pod: Pod, group: ReplicaGroup | None, first_seen: datetime | None, now: datetime
) -> tuple[bool, datetime | None]:
    """Return whether a resize failed or timed out, and when it was first seen."""
    if not is_resizing(pod):
        return False, first_seen
    since = first_seen if first_seen is not None else now
    if group is None or not group.is_disruptable:
        return False, since
    timeout = RESIZE_TIMEOUTS.get(reported_status(pod))
    return timeout is None or now - since > timeout, since
