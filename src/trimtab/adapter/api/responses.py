"""The JSON of answers, in every version that is served.

`selector` is always there, null where no metric selector was given: that is how the API's own types are written.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from trimtab.adapter.api.requests import CUSTOM_GROUP, EXTERNAL_GROUP, CustomQuestion
from trimtab.adapter.sources.source import CustomSample, ExternalSample
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector
from trimtab.model.times import format_time

Json = dict[str, Any]

# The series of one answer mostly share their moment, and writing it costs more than all the rest of an item.
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
    question: CustomQuestion, version: str, kind: tuple[str, str], samples: Sequence[CustomSample]
) -> bytes:
    """Return a MetricValueList; `kind` is the apiVersion and kind of the objects described."""
    api_version, object_kind = kind
    selector = label_selector(question.series)
    items = []
    for sample in samples:
        described = {
            "kind": object_kind,
            "namespace": question.namespace,
            "name": sample.name,
            "apiVersion": api_version,
        }
        if not question.namespace:
            del described["namespace"]
        common = {"timestamp": _time(sample.timestamp), "value": str(sample.value)}
        items.append(_item(version, described, question.metric, selector, common, sample.window_seconds))
    return _list("MetricValueList", f"{CUSTOM_GROUP}/{version}", items)


def external_list(metric: str, series: Sequence[ExternalSample]) -> bytes:
    """Return an ExternalMetricValueList."""
    items = []
    for one in series:
        item: Json = {
            "metricName": metric,
            "metricLabels": dict(one.labels),
            "timestamp": _time(one.timestamp),
            "value": str(one.value),
        }
        if one.window_seconds is not None:
            item["window"] = one.window_seconds
        items.append(item)
    return _list("ExternalMetricValueList", f"{EXTERNAL_GROUP}/v1beta1", items)


def label_selector(selector: Selector) -> Json | None:
    """Return the JSON form of a selector; None for one that selects everything."""
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
        # The older version calls the same field by another name.
        item["window" if version == "v1beta1" else "windowSeconds"] = window
    return item


def _list(kind: str, api_version: str, items: list[Json]) -> bytes:
    return wire.encode({"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items})
