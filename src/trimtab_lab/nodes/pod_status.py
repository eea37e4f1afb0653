"""Builds the status of a pod, with phase and conditions, from the states of its containers."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from trimtab.cluster.resource import Json
from trimtab.model.json import wire
from trimtab_lab.controllers.kinds import LabContainerStatus, LabPod
from trimtab_lab.controllers.pods import condition

#: Conditions that follow from container states. All others are kept.
DERIVED_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled")


def pod_status(
    pod: LabPod, containers: Sequence[LabContainerStatus], now: datetime, others: Iterable[Json] | None = None
) -> Json:
    """Return the status for these container states.

    `others` replaces the conditions that do not follow from them, such as those of a resize.
    """
    phase = pod_phase(containers)
    if others is None:
        others = [
            wire.to_builtins(former)
            for former in pod.status.conditions
            if former.type not in DERIVED_CONDITIONS
        ]
    status: Json = {
        "phase": phase,
        "startTime": wire.to_builtins(pod.status.start_time or now),
        "hostIP": "127.0.0.1",
        "conditions": [*_conditions(pod, containers, phase, now), *others],
        "containerStatuses": [_container_status(status) for status in containers],
    }
    if phase != "Pending":
        address = pod_address(pod.metadata.uid)
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    return status


def pod_phase(containers: Sequence[LabContainerStatus]) -> str:
    """Return the phase of a pod with these containers."""
    terminated = [status.state.terminated for status in containers if status.state.terminated is not None]
    if containers and len(terminated) == len(containers):
        return "Succeeded" if all(state.exit_code == 0 for state in terminated) else "Failed"
    is_new = any(
        status.state.running is None
        and status.state.terminated is None
        and status.last_state.terminated is None
        for status in containers
    )
    return "Pending" if is_new or not containers else "Running"


def pod_address(uid: str) -> str:
    """Return a made-up address that depends only on the uid."""
    number = int(uid.replace("-", "")[:6] or "0", 16) if uid else 0
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _container_status(status: LabContainerStatus) -> Json:
    body: Json = wire.to_builtins(status)
    return {"ready": False, "restartCount": 0, "image": "", "imageID": "", **body}


def _conditions(
    pod: LabPod, containers: Sequence[LabContainerStatus], phase: str, now: datetime
) -> list[Json]:
    before = pod.status.conditions
    unready = [status.name for status in containers if not status.ready]
    if phase in ("Succeeded", "Failed"):
        reason, message = "PodCompleted" if phase == "Succeeded" else "PodFailed", ""
    elif unready:
        reason, message = "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    else:
        reason = message = ""
    return [
        condition(before, "PodReadyToStartContainers", holds=phase == "Running", now=now),
        condition(before, "Initialized", holds=True, now=now),
        condition(before, "Ready", holds=not unready, reason=reason, message=message, now=now),
        condition(before, "ContainersReady", holds=not unready, reason=reason, message=message, now=now),
        condition(before, "PodScheduled", holds=True, now=now),
    ]
