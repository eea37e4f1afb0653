"""Which pods are disrupted.

A disruption lasts from the request of a resize or eviction until the pod is Ready at its new size. The ledger is derived from the pods (readiness, resize conditions, resize annotation), so a new updater process counts
as the last one did. Only requests that the pod does not show yet are held in memory.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from trimtab.decide.vertical.update.resize.annotation import has_resources, read_resize_annotation
from trimtab.decide.vertical.update.resize.status import (
    IN_PROGRESS_TIMEOUT,
    WAITING,
    ResizeStatus,
    resize_condition,
    resize_status,
    restarts_containers,
)
from trimtab.model.core.pod import Pod, ResourceRequirements
from trimtab.model.json.wire import Wire
from trimtab.model.times import ZERO_TIME

START_TIMEOUT = timedelta(minutes=10)
"""How long a pod may take to become Ready before it counts as stuck and may be replaced."""
READY = "Ready"


class DisruptionKind(StrEnum):
    """How a pod is disrupted."""

    RESIZE = "resize"
    REVERT = "revert"
    """A waiting resize was reverted: the spec is set to the pod's actual size."""
    EVICTION = "eviction"


class Disruption(Wire):
    """A resize or eviction that was requested in an earlier loop."""

    kind: DisruptionKind
    requested_at: datetime
    vpa: str = ""
    resources: dict[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    reported_status: str = ""
    """The resize status that the last event about it reported."""
    is_observed: bool = False
    """Whether the pod was observed with the requested resources."""
    response_lost_at: datetime | None = None
    """When its response was lost; absent as soon as the pod shows that the request was carried out."""
    is_checked: bool = False
    """Whether the pod was read after the loss without showing the request."""


def is_ready(pod: Pod) -> bool:
    """Return whether the pod is Ready."""
    ready = pod.status.condition(READY)
    return ready is not None and ready.status == "True"


def is_stuck(pod: Pod, now: datetime) -> bool:
    """Return whether a pod that is not Ready exceeded its time to start."""
    ready = pod.status.condition(READY)
    since = (ready.last_transition_time if ready else None) or pod.status.start_time or ZERO_TIME
    return now - since >= START_TIMEOUT


def is_available(pod: Pod, disruption: Disruption | None, now: datetime) -> bool:
    """Return whether the pod is Ready and no disruption of it is under way.

    A waiting resize that would restart nothing leaves the pod as it is, so it does not count. Otherwise the resize that
    makes room for it could never begin.
    """
    if not is_ready(pod) or pod.metadata.deletion_timestamp is not None:
        return False
    if disruption is not None and not disruption.is_observed:
        return False
    status = resize_status(pod, now)
    if status is ResizeStatus.NONE:
        return True
    # The kubelet does not retry an infeasible resize until the spec changes.
    return status is ResizeStatus.INFEASIBLE or (status in WAITING and not restarts_containers(pod))


def waiting_since(pod: Pod, disruption: Disruption | None) -> datetime | None:
    """Return when the current resize began to wait, by the kubelet and by the last request."""
    condition = resize_condition(pod)
    moments = [
        moment
        for moment in (
            condition.last_transition_time if condition else None,
            disruption.requested_at if disruption else read_resize_annotation(pod).at,
        )
        if moment is not None
    ]
    return max(moments, default=None)


def open_disruptions(
    disruptions: Mapping[str, Disruption], pods: Mapping[str, Pod], now: datetime
) -> dict[str, Disruption]:
    """Return the disruptions that are not over, by pod uid, with `is_observed` brought up to date."""
    still_open: dict[str, Disruption] = {}
    for uid, disruption in disruptions.items():
        pod = pods.get(uid)
        if pod is None:
            continue
        is_observed = disruption.kind is not DisruptionKind.EVICTION and has_resources(
            pod, disruption.resources
        )
        if not is_observed and (
            disruption.is_observed or now - disruption.requested_at >= IN_PROGRESS_TIMEOUT
        ):
            continue  # another writer changed the pod since, or the request had no effect
        still_open[uid] = msgspec.structs.replace(
            disruption,
            is_observed=is_observed,
            response_lost_at=None if is_observed else disruption.response_lost_at,
        )
    return still_open
