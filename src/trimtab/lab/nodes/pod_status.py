"""A pod's status as the node agent writes it: container states in, phase and conditions out (pure)."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from trimtab.cluster.resource import Json
from trimtab.lab.controllers.base.kinds import RunContainerStatus, RunPod
from trimtab.lab.controllers.base.status_writer import condition
from trimtab.model.json import wire

#: Conditions that the agent derives from container states; every other one is kept as it is.
_DERIVED = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled")


def pod_status(
    pod: RunPod, containers: Sequence[RunContainerStatus], now: datetime, others: Iterable[Json] | None = None
) -> Json:
    """Return the status that goes with these container states.

    `others` replaces the conditions that are not derived from them, such as those of a resize.
    """
    phase = phase_of(containers)
    if others is None:
        others = [wire.to_builtins(one) for one in pod.status.conditions if one.type not in _DERIVED]
    status: Json = {
        "phase": phase,
        "startTime": wire.to_builtins(pod.status.start_time or now),
        "hostIP": "127.0.0.1",
        "conditions": [*_conditions(pod, containers, phase, now), *others],
        "containerStatuses": [_container(one) for one in containers],
    }
    if phase != "Pending":
        address = pod_address(pod.metadata.uid)
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    return status


def phase_of(containers: Sequence[RunContainerStatus]) -> str:
    """Return the phase: not started, running, or ended well or badly."""
    ended = [one.state.terminated for one in containers if one.state.terminated is not None]
    if containers and len(ended) == len(containers):
        return "Succeeded" if all(one.exit_code == 0 for one in ended) else "Failed"
    is_new = any(
        one.state.running is None and one.state.terminated is None and one.last_state.terminated is None
        for one in containers
    )
    return "Pending" if is_new or not containers else "Running"


def pod_address(uid: str) -> str:
    """Return an address that no real pod has, always the same for one pod."""
    number = int(uid.replace("-", "")[:6] or "0", 16) if uid else 0
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _container(one: RunContainerStatus) -> Json:
    made: Json = wire.to_builtins(one)
    return {"ready": False, "restartCount": 0, "image": "", "imageID": "", **made}


def _conditions(
    pod: RunPod, containers: Sequence[RunContainerStatus], phase: str, now: datetime
) -> list[Json]:
    known = pod.status.conditions
    unready = [one.name for one in containers if not one.ready]
    if phase in ("Succeeded", "Failed"):
        reason, message = "PodCompleted" if phase == "Succeeded" else "PodFailed", ""
    elif unready:
        reason, message = "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    else:
        reason = message = ""
    return [
        condition(known, "PodReadyToStartContainers", holds=phase == "Running", now=now),
        condition(known, "Initialized", holds=True, now=now),
        condition(known, "Ready", holds=not unready, reason=reason, message=message, now=now),
        condition(known, "ContainersReady", holds=not unready, reason=reason, message=message, now=now),
        condition(known, "PodScheduled", holds=True, now=now),
    ]
