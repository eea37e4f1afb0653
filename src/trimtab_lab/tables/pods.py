"""The row of a pod: ready containers, a word for its state, restarts."""

from datetime import datetime
from typing import Any

from trimtab.model.times import parse_time
from trimtab_lab.kinds.strategy import is_condition_true
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.tables.cells import UNSET, age, age_of, name_of


def pod_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a pod."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    statuses = status.get("containerStatuses") or []
    ready = sum(1 for container in statuses if container.get("ready"))
    ips = [address.get("ip") for address in status.get("podIPs") or ()] or [status.get("podIP")]
    return [
        name_of(obj),
        f"{ready}/{len(spec.get('containers') or ())}",
        _state(obj),
        _restarts(statuses, now),
        age_of(obj, now),
        ips[0] or UNSET,
        spec.get("nodeName") or UNSET,
        status.get("nominatedNodeName") or UNSET,
        _gates(spec, status),
    ]


def _state(obj: JsonObject) -> str:
    """Return the state of a pod: the problem of a container, else the phase."""
    status = obj.get("status", {})
    reason = _init_state(obj.get("spec", {}), status) or _running_state(obj, status)
    if "deletionTimestamp" not in obj["metadata"]:
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _running_state(obj: JsonObject, status: JsonObject) -> str:
    if any(condition.get("reason") == "SchedulingGated" for condition in status.get("conditions") or ()):
        return "SchedulingGated"
    containers = status.get("containerStatuses") or ()
    # The first container's problem wins.
    reasons = (_container_reason(container.get("state") or {}) for container in containers)
    reason = next(filter(None, reasons), "") or str(status.get("reason") or status.get("phase", "Unknown"))
    runs = (
        container.get("ready") and "running" in (container.get("state") or {}) for container in containers
    )
    if reason == "Completed" and any(runs):
        return "Running" if is_condition_true(obj, "Ready") else "NotReady"
    return reason


def _container_reason(state: JsonObject) -> str:
    if state.get("waiting", {}).get("reason"):
        return str(state["waiting"]["reason"])
    if "terminated" in state:
        ended = state["terminated"]
        if ended.get("reason"):
            return str(ended["reason"])
        return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"
    return ""


def _init_state(spec: JsonObject, status: JsonObject) -> str:
    total = len(spec.get("initContainers") or ())
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        state = container.get("state") or {}
        if state.get("terminated", {}).get("exitCode") == 0:
            continue
        policy = (spec.get("initContainers") or [{}])[index].get("restartPolicy")
        if container.get("started") and policy == "Always":
            continue
        reason = _container_reason(state)
        return f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{index}/{total}"
    return ""


def _restarts(statuses: list[JsonObject], now: datetime) -> str:
    total = sum(container.get("restartCount", 0) for container in statuses)
    times = [
        (container.get("lastState") or {}).get("terminated", {}).get("finishedAt") for container in statuses
    ]
    ends = [parse_time(time) for time in times if time]
    return f"{total} ({age(max(ends), now)} ago)" if total and ends else str(total)


def _gates(spec: JsonObject, status: JsonObject) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return UNSET
    passed = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in passed for gate in gates)}/{len(gates)}"
