"""Conversion of metrics between nested (v2) and flat form (v1's annotations, v2beta1).

The types of `v1` serve both directions. Data must be canonical, so that it has the zeros that v1 cannot leave out. `numbers` is the
field of v2 that holds them: `target` in `spec.metrics`, `current` in `status.currentMetrics`.
"""

from collections.abc import Mapping
from typing import Any

from trimtab.model.hpa.metric_kinds import KINDS, MetricKind
from trimtab.model.hpa.versions import v1
from trimtab.model.json.wire import Json


def flat_metric(metric: Mapping[str, Any], numbers: str) -> Json:
    """Write a metric flat, without the type of its target."""
    out: Json = {"type": metric["type"]}
    for kind in KINDS.values():
        if kind.field in metric:
            paths = v1.flat_paths(kind, numbers)
            values = {name: _get(metric[kind.field], path) for name, path in paths.items()}
            out[kind.field] = {name: value for name, value in values.items() if value is not None}
    return out


def nested_metric(metric: Mapping[str, Any], numbers: str) -> Json:
    """Read a flat metric."""
    out: Json = {"type": metric["type"]}
    for kind in KINDS.values():
        if kind.field in metric:
            out[kind.field] = {}
            for name, path in v1.flat_paths(kind, numbers).items():
                if metric[kind.field].get(name) is not None:
                    _put(out[kind.field], path, metric[kind.field][name])
            if numbers == "target":
                _complete(out[kind.field].setdefault("target", {}), kind)
    return out


def _complete(target: Json, kind: MetricKind[Any]) -> None:
    if not kind.target.both and "averageValue" in target and target.get("value") == "0":
        # The flat form cannot leave the value out. Converted back, its 0 would not pass validation.
        del target["value"]
    target["type"] = str(kind.target.type_of(target))  # a plain text, as in every manifest


def _get(data: Mapping[str, Any], path: v1.Path) -> Any:
    value: Any = data
    for name in path:
        value = value.get(name) if value is not None else None
    return value


def _put(data: Json, path: v1.Path, value: Any) -> None:
    for name in path[:-1]:
        data = data.setdefault(name, {})
    data[path[-1]] = value
