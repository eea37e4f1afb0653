"""The row of a HorizontalPodAutoscaler: each metric as current over target."""

from datetime import datetime
from typing import Any

from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.tables.cells import age
from trimtab.model.times import parse_time

UNKNOWN = "<unknown>"
#: Targets shown before the rest is counted.
SHOWN = 2


def hpa_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of an autoscaler, in v1 or v2 form."""
    meta, spec, status = obj["metadata"], obj.get("spec", {}), obj.get("status", {})
    ref = spec.get("scaleTargetRef", {})
    low = spec.get("minReplicas")
    created = meta.get("creationTimestamp")
    return [
        meta.get("name", ""),
        f"{ref.get('kind', '')}/{ref.get('name', '')}",
        _targets(spec, status),
        "<unset>" if low is None else str(low),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(parse_time(created), now) if created else UNKNOWN,
    ]


def _targets(spec: JsonObject, status: JsonObject) -> str:
    if "targetCPUUtilizationPercentage" in spec:
        current = status.get("currentCPUUtilizationPercentage")
        shown = UNKNOWN if current is None else f"{current}%"
        return f"cpu: {shown}/{spec['targetCPUUtilizationPercentage']}%"
    metrics = spec.get("metrics") or []
    currents = status.get("currentMetrics") or []
    texts = [
        _metric(metric, currents[index] if index < len(currents) else {})
        for index, metric in enumerate(metrics)
    ]
    if not texts:
        return "<none>"
    shown = ", ".join(texts[:SHOWN])
    return shown if len(texts) <= SHOWN else f"{shown} + {len(texts) - SHOWN} more..."


SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(metric: JsonObject, current: JsonObject) -> str:
    source = SOURCES.get(metric.get("type", ""), "")
    target = metric.get(source, {}).get("target", {})
    seen = (current or {}).get(source, {}).get("current", {})
    name = metric.get(source, {}).get("name")
    prefix = f"{name}: " if source in ("resource", "containerResource") else ""
    if target.get("averageUtilization") is not None:
        used = seen.get("averageUtilization")
        return f"{prefix}{UNKNOWN if used is None else f'{used}%'}/{target['averageUtilization']}%"
    if target.get("averageValue") is not None:
        suffix = " (avg)" if source in ("object", "external") else ""
        return f"{prefix}{seen.get('averageValue', UNKNOWN)}/{target['averageValue']}{suffix}"
    return f"{prefix}{seen.get('value', UNKNOWN)}/{target.get('value', '<auto>')}"
