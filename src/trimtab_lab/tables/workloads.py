"""The rows of workloads."""

from datetime import datetime
from typing import Any

from trimtab.model.times import parse_time
from trimtab_lab.storage.codec import JsonObject
from trimtab_lab.tables.cells import UNSET, age, age_of, labels_text, name_of, selector_text


def _template_containers(obj: JsonObject) -> tuple[str, str]:
    """Return the names and images of a template's containers."""
    containers = obj.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or []
    return ",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)


def deployment_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a Deployment."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [
        name_of(obj),
        ready,
        *counts,
        age_of(obj, now),
        *_template_containers(obj),
        selector_text(spec.get("selector")),
    ]


def replica_set_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a ReplicaSet or ReplicationController."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    selector = spec.get("selector")
    shown = labels_text(selector) if obj["kind"] == "ReplicationController" else selector_text(selector)
    return [name_of(obj), *counts, age_of(obj, now), *_template_containers(obj), shown]


def stateful_set_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a StatefulSet."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name_of(obj), ready, age_of(obj, now), *_template_containers(obj)]


def daemon_set_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a DaemonSet."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    counts = [status.get(name, 0) for name in names]
    node_selector = labels_text(spec.get("template", {}).get("spec", {}).get("nodeSelector"))
    selector = selector_text(spec.get("selector"))
    return [name_of(obj), *counts, node_selector, age_of(obj, now), *_template_containers(obj), selector]


def job_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a Job."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    completions, parallel = spec.get("completions"), spec.get("parallelism", 0)
    if completions is None:
        completions = f"1 of {parallel}" if parallel > 1 else "1"
    start, end = status.get("startTime"), status.get("completionTime")
    duration = age(parse_time(start), parse_time(end) if end else now) if start is not None else ""
    return [
        name_of(obj),
        _job_state(status),
        f"{status.get('succeeded', 0)}/{completions}",
        duration,
        age_of(obj, now),
        *_template_containers(obj),
        selector_text(spec.get("selector")),
    ]


def cron_job_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of a CronJob."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    job = {"spec": spec.get("jobTemplate", {}).get("spec", {})}
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone", UNSET),
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        age_of(obj, now, "status", "lastScheduleTime") if status.get("lastScheduleTime") else UNSET,
        age_of(obj, now),
        *_template_containers(job),
        selector_text(job["spec"].get("selector")),
    ]


def _job_state(status: JsonObject) -> str:
    true = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    return next((name for name in ("Complete", "Failed", "Suspended") if name in true), "Running")
