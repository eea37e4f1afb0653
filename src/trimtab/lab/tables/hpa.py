"""The row of an HPA: each metric as current over target."""

from datetime import datetime
from typing import Any

from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.tables.cells import UNKNOWN, UNSET, age_of, name_of
from trimtab.model.hpa.metric_kinds import KINDS

#: Targets shown before the rest is counted.
SHOWN = 2


def hpa_cells(obj: JsonObject, now: datetime) -> list[Any]:
    """Return the cells of an HPA, in v1 or v2 form."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    ref = spec.get("scaleTargetRef", {})
    low = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{ref.get('kind', '')}/{ref.get('name', '')}",
        _targets(spec, status),
        "<unset>" if low is None else str(low),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age_of(obj, now),
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
        return UNSET
    shown = ", ".join(texts[:SHOWN])
    return shown if len(texts) <= SHOWN else f"{shown} + {len(texts) - SHOWN} more..."


def _metric(metric: JsonObject, current: JsonObject) -> str:
    kind = KINDS.get(metric.get("type", ""))
    source = "" if kind is None else kind.field
    target = metric.get(source, {}).get("target", {})
    usage = (current or {}).get(source, {}).get("current", {})
    name = metric.get(source, {}).get("name")
    prefix = f"{name}: " if name else ""
    if target.get("averageUtilization") is not None:
        used = usage.get("averageUtilization")
        return f"{prefix}{UNKNOWN if used is None else f'{used}%'}/{target['averageUtilization']}%"
    if target.get("averageValue") is not None:
        suffix = " (avg)" if kind is not None and kind.wakes else ""
        return f"{prefix}{usage.get('averageValue', UNKNOWN)}/{target['averageValue']}{suffix}"
    return f"{prefix}{usage.get('value', UNKNOWN)}/{target.get('value', '<auto>')}"
