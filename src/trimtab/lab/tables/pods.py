"""The row of a pod: ready containers, the one word for its state, restarts."""

from datetime import datetime
from typing import Any

from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.tables.cells import age
from trimtab.model.times import parse_time

UNSET = "<none>"


def pod_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a pod."""
    meta, spec, status = obj["metadata"], obj.get("spec", {}), obj.get("status", {})
    statuses = status.get("containerStatuses") or []
    ready = sum(1 for one in statuses if one.get("ready"))
    ips = [one.get("ip") for one in status.get("podIPs") or ()] or [status.get("podIP")]
    created = meta.get("creationTimestamp")
    return [
        meta.get("name", ""),
        f"{ready}/{len(spec.get('containers') or ())}",
        _state(meta, spec, status),
        _restarts(statuses, now),
        age(parse_time(created), now) if created else "<unknown>",
        ips[0] or UNSET,
        spec.get("nodeName") or UNSET,
        status.get("nominatedNodeName") or UNSET,
        _gates(spec, status),
    ]


def _state(meta: JsonObject, spec: JsonObject, status: JsonObject) -> str:
    """Return the word that describes the pod best: a container's trouble before the phase."""
    reason = _init_state(spec, status) or _running_state(status)
    if "deletionTimestamp" not in meta:
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _running_state(status: JsonObject) -> str:
    conditions = status.get("conditions") or ()
    if any(one.get("reason") == "SchedulingGated" for one in conditions):
        return "SchedulingGated"
    states = [one.get("state") or {} for one in status.get("containerStatuses") or ()]
    # The first container's trouble wins.
    trouble = next(filter(None, map(_container_reason, states)), "")
    reason = trouble or str(status.get("reason") or status.get("phase", "Unknown"))
    if reason == "Completed" and _still_runs(status):
        is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        return "Running" if is_ready else "NotReady"
    return reason


def _still_runs(status: JsonObject) -> bool:
    """Return whether a container is at work beside one that has completed."""
    return any(
        one.get("ready") and "running" in (one.get("state") or {})
        for one in status.get("containerStatuses") or ()
    )


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
    for index, one in enumerate(status.get("initContainerStatuses") or ()):
        state = one.get("state") or {}
        if state.get("terminated", {}).get("exitCode") == 0 and "terminated" in state:
            continue
        if (
            one.get("started")
            and (spec.get("initContainers") or [{}])[index].get("restartPolicy") == "Always"
        ):
            continue
        reason = _container_reason(state)
        return f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{index}/{total}"
    return ""


def _restarts(statuses: list[JsonObject], now: datetime) -> str:
    total = sum(one.get("restartCount", 0) for one in statuses)
    ends = [
        parse_time(one["lastState"]["terminated"]["finishedAt"])
        for one in statuses
        if (one.get("lastState") or {}).get("terminated", {}).get("finishedAt")
    ]
    return f"{total} ({age(max(ends), now)} ago)" if total and ends else str(total)


def _gates(spec: JsonObject, status: JsonObject) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return UNSET
    passed = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in passed)}/{len(gates)}"
