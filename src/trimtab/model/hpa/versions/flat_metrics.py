"""Conversion of metrics between nested (v2) and flat form (v1's annotations, v2beta1).

The types of `v1` serve both directions. Data must be canonical, so that it has the zeros that v1 cannot leave out.
"""

from collections.abc import Mapping
from typing import Any

from trimtab.model.hpa.metric_kinds import KINDS
from trimtab.model.hpa.versions import v1
from trimtab.model.json.wire import Json

_Path = tuple[str, ...]

_NAMES: dict[str, _Path] = {
    "metricName": ("metric", "name"),
    "selector": ("metric", "selector"),
    "metricSelector": ("metric", "selector"),
    "target": ("describedObject",),
}
_NUMBERS = ("value", "averageValue", "averageUtilization")


def _paths(flat: type[Any], numbers: str) -> dict[str, dict[str, _Path]]:
    """Return where the fields of each flat source are in the nested one, whose numbers are in the field `numbers`."""
    prefixed = {f"{numbers}{name[:1].upper()}{name[1:]}": (numbers, name) for name in _NUMBERS}
    known = {**_NAMES, **prefixed, "averageValue": (numbers, "averageValue")}
    return {
        source: {name: known.get(name, (name,)) for name in kind.__struct_encode_fields__}
        for source, kind in v1.flat_sources(flat).items()
    }


_SPEC_FIELDS = _paths(v1.V1MetricSpec, "target")
_STATUS_FIELDS = _paths(v1.V1MetricStatus, "current")


def flat_spec(metric: Mapping[str, Any]) -> Json:
    """Write a metric of `spec.metrics` flat, without the type of its target."""
    return _flat(metric, _SPEC_FIELDS)


def flat_status(metric: Mapping[str, Any]) -> Json:
    """Write a metric of `status.currentMetrics` flat."""
    return _flat(metric, _STATUS_FIELDS)


def nested_spec(metric: Mapping[str, Any]) -> Json:
    """Read a flat metric of a spec."""
    out = _nested(metric, _SPEC_FIELDS)
    for kind in KINDS.values():
        if kind.field in out:
            target = out[kind.field].setdefault("target", {})
            if not kind.target.both and "averageValue" in target and target.get("value") == "0":
                # The flat form cannot leave the value out. Converted back, its 0 would not pass validation.
                del target["value"]
            target["type"] = kind.target.type_of(target)
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
