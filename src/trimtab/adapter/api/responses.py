"""The JSON of metric values, in every version that is served.

`selector` is always present, and null without a metric selector, as the API's own types are encoded.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from trimtab.adapter.api.requests import CUSTOM_GROUP, EXTERNAL_GROUP, CustomMetricQuery
from trimtab.adapter.sources.source import CustomSample, ExternalSample
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.times import format_time

Json = dict[str, Any]

# The series of one response mostly share their time, and formatting it takes longer than the rest of an item.
_time = lru_cache(maxsize=256)(format_time)

_OPERATORS = {
    "in": "In",
    "notin": "NotIn",
    "!=": "NotIn",
    "exists": "Exists",
    "!": "DoesNotExist",
    "gt": "Gt",
    "lt": "Lt",
}


def custom_list(
    query: CustomMetricQuery, version: str, kind: tuple[str, str], samples: Sequence[CustomSample]
) -> bytes:
    """Return a MetricValueList. `kind` is the apiVersion and kind of the described objects."""
    api_version, object_kind = kind
    selector = label_selector(query.series)
    items = []
    for sample in samples:
        described = {
            "kind": object_kind,
            "namespace": query.namespace,
            "name": sample.name,
            "apiVersion": api_version,
        }
        if not query.namespace:
            del described["namespace"]
        common = {"timestamp": _time(sample.timestamp), "value": str(sample.value)}
        items.append(_item(version, described, query.metric, selector, common, sample.window_seconds))
    return _list("MetricValueList", f"{CUSTOM_GROUP}/{version}", items)


def external_list(metric: str, series: Sequence[ExternalSample]) -> bytes:
    """Return an ExternalMetricValueList."""
    items = []
    for sample in series:
        item: Json = {
            "metricName": metric,
            "metricLabels": dict(sample.labels),
            "timestamp": _time(sample.timestamp),
            "value": str(sample.value),
        }
        if sample.window_seconds is not None:
            item["window"] = sample.window_seconds
        items.append(item)
    return _list("ExternalMetricValueList", f"{EXTERNAL_GROUP}/v1beta1", items)


def label_selector(selector: Selector) -> Json | None:
    """Return the JSON form of a selector, or None if it selects everything."""
    if selector.is_empty:
        return None
    labels: Json = {}
    expressions: list[Json] = []
    for requirement in selector.requirements:
        equality = requirement.equality
        if equality is not None and requirement.operator != "in" and equality[0] not in labels:
            labels[equality[0]] = equality[1]
            continue
        operator = _OPERATORS.get(requirement.operator, "In")
        expression: Json = {"key": requirement.key, "operator": operator}
        if requirement.values:
            expression["values"] = list(requirement.values)
        expressions.append(expression)
    return {name: part for name, part in (("matchLabels", labels), ("matchExpressions", expressions)) if part}


def _item(
    version: str, described: Json, metric: str, selector: Json | None, common: Json, window: int | None
) -> Json:
    if version == "v1beta1":
        item = {"describedObject": described, "metricName": metric, **common, "selector": selector}
    else:
        item = {"describedObject": described, "metric": {"name": metric, "selector": selector}, **common}
    if window is not None:
        # v1beta1 has another name for the same field.
        item["window" if version == "v1beta1" else "windowSeconds"] = window
    return item


def _list(kind: str, api_version: str, items: list[Json]) -> bytes:
    return wire.encode({"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items})
