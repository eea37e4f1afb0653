"""Conversion of metrics between nested (v2) and flat form (v1's annotations, v2beta1).

One table serves both directions. Data must be canonical, so that it has the zeros that v1 cannot leave out.
"""

from collections.abc import Mapping
from typing import Any

from trimtab.model.json.wire import Json

_Path = tuple[str, ...]

_METRIC: dict[str, _Path] = {"metricName": ("metric", "name"), "selector": ("metric", "selector")}
_OBJECT: dict[str, _Path] = {"target": ("describedObject",), **_METRIC}
_EXTERNAL: dict[str, _Path] = {"metricName": ("metric", "name"), "metricSelector": ("metric", "selector")}
_CONTAINER: dict[str, _Path] = {"container": ("container",)}
_RESOURCE_TARGET: dict[str, _Path] = {
    "name": ("name",),
    "targetAverageUtilization": ("target", "averageUtilization"),
    "targetAverageValue": ("target", "averageValue"),
}
_RESOURCE_CURRENT: dict[str, _Path] = {
    "name": ("name",),
    "currentAverageUtilization": ("current", "averageUtilization"),
    "currentAverageValue": ("current", "averageValue"),
}

_SPEC_FIELDS: dict[str, dict[str, _Path]] = {
    "object": {**_OBJECT, "targetValue": ("target", "value"), "averageValue": ("target", "averageValue")},
    "pods": {**_METRIC, "targetAverageValue": ("target", "averageValue")},
    "resource": _RESOURCE_TARGET,
    "containerResource": {**_RESOURCE_TARGET, **_CONTAINER},
    "external": {
        **_EXTERNAL,
        "targetValue": ("target", "value"),
        "targetAverageValue": ("target", "averageValue"),
    },
}
_STATUS_FIELDS: dict[str, dict[str, _Path]] = {
    "object": {**_OBJECT, "currentValue": ("current", "value"), "averageValue": ("current", "averageValue")},
    "pods": {**_METRIC, "currentAverageValue": ("current", "averageValue")},
    "resource": _RESOURCE_CURRENT,
    "containerResource": {**_RESOURCE_CURRENT, **_CONTAINER},
    "external": {
        **_EXTERNAL,
        "currentValue": ("current", "value"),
        "currentAverageValue": ("current", "averageValue"),
    },
}

_TARGET_TYPES = {
    "object": ("averageValue", "AverageValue", "Value"),
    "pods": ("averageValue", "AverageValue", "AverageValue"),
    "resource": ("averageUtilization", "Utilization", "AverageValue"),
    "containerResource": ("averageUtilization", "Utilization", "AverageValue"),
    "external": ("value", "Value", "AverageValue"),
}
"""Per source: the field that decides the type of a target, the type if it is set, the type if not."""


def flat_spec(metric: Mapping[str, Any]) -> Json:
    """Write a metric of `spec.metrics` flat, without the type of its target."""
    return _flat(metric, _SPEC_FIELDS)


def flat_status(metric: Mapping[str, Any]) -> Json:
    """Write a metric of `status.currentMetrics` flat."""
    return _flat(metric, _STATUS_FIELDS)


def nested_spec(metric: Mapping[str, Any]) -> Json:
    """Read a flat metric of a spec."""
    out = _nested(metric, _SPEC_FIELDS)
    for source, (deciding, kind, other) in _TARGET_TYPES.items():
        if source in out:
            target = out[source].setdefault("target", {})
            if source == "object" and "averageValue" in target and target.get("value") == "0":
                # The flat form cannot leave the value out. Converted back, its 0 would not pass validation.
                del target["value"]
            target["type"] = kind if deciding in target else other
    return out


def nested_status(metric: Mapping[str, Any]) -> Json:
    """Read a flat metric of a status."""
    return _nested(metric, _STATUS_FIELDS)


def _flat(metric: Mapping[str, Any], fields: Mapping[str, Mapping[str, _Path]]) -> Json:
    out: Json = {"type": metric["type"]}
    for source, names in fields.items():
        if source in metric:
            values = {name: _get(metric[source], path) for name, path in names.items()}
            out[source] = {name: value for name, value in values.items() if value is not None}
    return out


def _nested(metric: Mapping[str, Any], fields: Mapping[str, Mapping[str, _Path]]) -> Json:
    out: Json = {"type": metric["type"]}
    for source, names in fields.items():
        if source in metric:
            out[source] = {}
            for name, path in names.items():
                if metric[source].get(name) is not None:
                    _put(out[source], path, metric[source][name])
    return out


def _get(data: Mapping[str, Any], path: _Path) -> Any:
    value: Any = data
    for name in path:
        value = value.get(name) if value is not None else None
    return value


def _put(data: Json, path: _Path, value: Any) -> None:
    for name in path[:-1]:
        data = data.setdefault(name, {})
    data[path[-1]] = value
