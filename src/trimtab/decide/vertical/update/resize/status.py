"""How far the kubelet is with a resize in place, from the pod's conditions and its resize annotation."""

from datetime import datetime, timedelta
from enum import StrEnum

from trimtab.decide.vertical.update.resize.annotation import read_resize_annotation
from trimtab.model.core.pod import Pod, PodCondition

RESIZE_PENDING = "PodResizePending"
RESIZE_IN_PROGRESS = "PodResizeInProgress"
DEFERRED_TIMEOUT = timedelta(minutes=5)
IN_PROGRESS_TIMEOUT = timedelta(hours=1)
KUBELET_SYNC_TIMEOUT = timedelta(minutes=10)
"""How long a kubelet that reports no generation may take to observe a new spec."""


class ResizeStatus(StrEnum):
    """What the kubelet does with a resize."""

    NONE = "ResizeNone"
    DEFERRED = "ResizeDeferred"
    INFEASIBLE = "ResizeInfeasible"
    IN_PROGRESS = "ResizeInProgress"
    ERROR = "ResizeError"
    UNKNOWN = "ResizeUnknown"


RESIZE_TIMEOUTS = {
    ResizeStatus.DEFERRED: DEFERRED_TIMEOUT,
    ResizeStatus.IN_PROGRESS: IN_PROGRESS_TIMEOUT,
}
"""How long a resize may take before the pod is evicted instead."""
WAITING = frozenset(
    {ResizeStatus.DEFERRED, ResizeStatus.INFEASIBLE, ResizeStatus.ERROR, ResizeStatus.UNKNOWN}
)
"""The kubelet does not carry out the resize now; the pod runs at its old size."""


def is_resizing(pod: Pod) -> bool:
    """Return whether the first resize condition is true: pending or in progress."""
    for condition in pod.status.conditions:
        if condition.type in {RESIZE_PENDING, RESIZE_IN_PROGRESS}:
            return condition.status == "True"
    return False


def reported_status(pod: Pod) -> ResizeStatus:
    """Return the status that the pod's conditions report, as upstream reads them."""
    if not is_resizing(pod):
        return ResizeStatus.NONE
    pending = pod.status.condition(RESIZE_PENDING)
    if pending is not None:
        statuses = {"Deferred": ResizeStatus.DEFERRED, "Infeasible": ResizeStatus.INFEASIBLE}
        return statuses.get(pending.reason, ResizeStatus.UNKNOWN)
    progress = pod.status.condition(RESIZE_IN_PROGRESS)
    if progress is not None and not progress.reason and not progress.message:
        return ResizeStatus.IN_PROGRESS
    is_error = progress is not None and progress.reason == "Error"
    return ResizeStatus.ERROR if is_error else ResizeStatus.UNKNOWN


def resize_status(pod: Pod, now: datetime) -> ResizeStatus:
    """Return the status of the last request.

    A request that the kubelet has not observed is in progress.
    """
    status = reported_status(pod)
    last = read_resize_annotation(pod)
    if last.at is None or now - last.at >= IN_PROGRESS_TIMEOUT or not last.matches_spec(pod):
        return status
    if status is ResizeStatus.NONE:
        return ResizeStatus.IN_PROGRESS if differs_from_status(pod) else status
    return ResizeStatus.IN_PROGRESS if _is_about_earlier_request(pod, last.at, now) else status


def _is_about_earlier_request(pod: Pod, requested_at: datetime, now: datetime) -> bool:
    condition = resize_condition(pod)
    if condition is None:
        return False
    if condition.observed_generation is not None:
        return condition.observed_generation < pod.metadata.generation
    since = condition.last_transition_time
    if since is None:
        return False
    # Kubernetes' times have whole seconds: a condition set within the second of the request has that second.
    compared_at = requested_at if since.microsecond else requested_at.replace(microsecond=0)
    return since < compared_at and now - requested_at < KUBELET_SYNC_TIMEOUT


def resize_condition(pod: Pod) -> PodCondition | None:
    """Return the condition in which the kubelet reports a resize."""
    conditions = (pod.status.condition(kind) for kind in (RESIZE_PENDING, RESIZE_IN_PROGRESS))
    return next((found for found in conditions if found is not None and found.status == "True"), None)


def kubelet_message(pod: Pod) -> str:
    """Return reason and message of the kubelet about a resize, unchanged."""
    condition = resize_condition(pod)
    return ": ".join(part for part in (condition.reason, condition.message) if part) if condition else ""


def differs_from_status(pod: Pod) -> bool:
    """Return whether a container's actual resources differ from its spec."""
    statuses = {status.name: status.resources for status in pod.status.container_statuses}
    return any(
        (actual := statuses.get(container.name)) is not None
        and (actual.requests, actual.limits) != (container.resources.requests, container.resources.limits)
        for container in pod.spec.containers
    )


def restarts_containers(pod: Pod) -> bool:
    """Return whether resizing would restart a container."""
    return any(
        policy.restart_policy == "RestartContainer"
        for container in pod.spec.containers
        for policy in container.resize_policy
    )
