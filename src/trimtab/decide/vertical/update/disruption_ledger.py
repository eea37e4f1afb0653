"""Which pods are disturbed: from the request of a resize or an eviction until the pod is Ready at its new size.

Everything is derived from the pod itself (readiness, resize conditions, the note on it), so a fresh updater counts as its
predecessor did. Only what was requested a moment ago, and is not seen yet, is remembered in between.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from trimtab.decide.vertical.update.disruption_budget import RESIZE_IN_PROGRESS, RESIZE_PENDING
from trimtab.decide.vertical.update.in_place.group_status import (
    IN_PROGRESS_TIMEOUT,
    Resizing,
    resizing,
    restarts_containers,
)
from trimtab.decide.vertical.update.in_place.resize_note import has_resources, read_note
from trimtab.model.core.pod import Pod, PodCondition, ResourceRequirements
from trimtab.model.json.wire import Wire
from trimtab.model.times import ZERO_TIME

START_PATIENCE = timedelta(minutes=10)
"""How long a pod may take to become Ready before it counts as stuck and may be replaced."""
SYNC_PATIENCE = timedelta(minutes=10)
"""How long a kubelet that does not tell generations may take to see a new spec."""
READY = "Ready"
WAITING = frozenset({Resizing.DEFERRED, Resizing.INFEASIBLE, Resizing.ERROR, Resizing.UNKNOWN})
"""A resize that the kubelet does not carry out now: the pod runs at its old size."""


class Kind(StrEnum):
    """How a pod is disturbed."""

    RESIZE = "resize"
    RETURN = "return"
    """A request that was taken back: the pod is asked for the size that it has."""
    EVICTION = "eviction"


class Requested(Wire):
    """A disturbance that was requested in an earlier loop."""

    kind: Kind
    at: datetime
    vpa: str = ""
    resources: dict[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    told: str = ""
    """How far the resize was when an event last said so."""
    is_seen: bool = False
    """Whether the pod was seen with what was requested."""
    lost_at: datetime | None = None
    """When its answer was lost; absent as soon as the pod shows that it was carried out."""
    is_read: bool = False
    """Whether the pod was read since, and did not show it yet."""


def is_ready(pod: Pod) -> bool:
    """Return whether the pod is Ready."""
    found = pod.status.condition(READY)
    return found is not None and found.status == "True"


def resize_condition(pod: Pod) -> PodCondition | None:
    """Return the condition in which the kubelet says how far a resize is."""
    conditions = (pod.status.condition(kind) for kind in (RESIZE_PENDING, RESIZE_IN_PROGRESS))
    return next((found for found in conditions if found is not None and found.status == "True"), None)


def kubelet_message(pod: Pod) -> str:
    """Return reason and message of the kubelet about a resize, as it wrote them."""
    found = resize_condition(pod)
    return ": ".join(part for part in (found.reason, found.message) if part) if found else ""


def phase_of(pod: Pod, now: datetime) -> Resizing:
    """Return how far a resize is; one that the kubelet has not seen yet is in progress."""
    found = resizing(pod)
    note = read_note(pod)
    if note.at is None or now - note.at >= IN_PROGRESS_TIMEOUT or not note.is_asked_of(pod):
        return found
    if found is Resizing.NONE:
        return Resizing.IN_PROGRESS if differs_from_status(pod) else found
    return Resizing.IN_PROGRESS if _is_about_earlier(pod, note.at, now) else found


def _is_about_earlier(pod: Pod, requested_at: datetime, now: datetime) -> bool:
    """Return whether the kubelet speaks of an earlier request, because it has not seen the last one yet."""
    condition = resize_condition(pod)
    if condition is None:
        return False
    if condition.observed_generation is not None:
        return condition.observed_generation < pod.metadata.generation
    since = condition.last_transition_time
    if since is None:
        return False
    # Kubernetes tells times in whole seconds: an answer within the second of the request bears that second.
    asked_at = requested_at if since.microsecond else requested_at.replace(microsecond=0)
    return since < asked_at and now - requested_at < SYNC_PATIENCE


def differs_from_status(pod: Pod) -> bool:
    """Return whether a container has not got what its spec asks for."""
    statuses = {status.name: status.resources for status in pod.status.container_statuses}
    return any(
        (has := statuses.get(container.name)) is not None
        and (has.requests, has.limits) != (container.resources.requests, container.resources.limits)
        for container in pod.spec.containers
    )


def is_available(pod: Pod, requested: Requested | None, now: datetime) -> bool:
    """Return whether the pod is Ready and nothing that was requested of it is under way.

    A resize that waits and would restart nothing leaves the pod as it is, so it does not count. Else the resize that
    would make room for it could never begin.
    """
    if not is_ready(pod) or pod.metadata.deletion_timestamp is not None:
        return False
    if requested is not None and not requested.is_seen:
        return False
    phase = phase_of(pod, now)
    if phase is Resizing.NONE:
        return True
    # The kubelet does not try an infeasible resize again until the spec changes.
    return phase is Resizing.INFEASIBLE or (phase in WAITING and not restarts_containers(pod))


def waiting_since(pod: Pod, requested: Requested | None) -> datetime | None:
    """Return when the present resize began to wait, by the kubelet and by the last request."""
    found = resize_condition(pod)
    moments = [
        moment
        for moment in (
            found.last_transition_time if found else None,
            requested.at if requested else read_note(pod).at,
        )
        if moment is not None
    ]
    return max(moments, default=None)


def is_stuck(pod: Pod, now: datetime) -> bool:
    """Return whether a pod that is not Ready has had its time to start."""
    found = pod.status.condition(READY)
    since = (found.last_transition_time if found else None) or pod.status.start_time or ZERO_TIME
    return now - since >= START_PATIENCE


def still_open(
    requests: Mapping[str, Requested], pods: Mapping[str, Pod], now: datetime
) -> dict[str, Requested]:
    """Return the requests that are not done, by uid; those that show on their pods are marked as seen."""
    found: dict[str, Requested] = {}
    for uid, requested in requests.items():
        pod = pods.get(uid)
        if pod is None:
            continue
        is_seen = requested.kind is not Kind.EVICTION and has_resources(pod, requested.resources)
        if not is_seen and (requested.is_seen or now - requested.at >= IN_PROGRESS_TIMEOUT):
            continue  # another writer changed the pod since, or the request came to nothing
        lost_at = None if is_seen else requested.lost_at
        found[uid] = msgspec.structs.replace(requested, is_seen=is_seen, lost_at=lost_at)
    return found
