"""Metrics by the names that people know them by: `cpu`, `orders`, `queue_length{queue=mail}`."""

from trimtab.model.hpa.types import MetricIdentifier, MetricSpec
from trimtab.model.selector import Selector, SelectorError


def name_of(metric: MetricSpec) -> str:
    """Return the name of the resource or of the metric; empty if the spec names none."""
    resource = metric.resource or metric.container_resource
    if resource is not None:
        return resource.name
    source = metric.pods or metric.object or metric.external
    return source.metric.name if source is not None else ""


def label_of(metric: MetricSpec) -> str:
    """Return a metric's short name, with its container or its selector."""
    if metric.container_resource is not None:
        return f"{metric.container_resource.container} {metric.container_resource.name}"
    source = metric.pods or metric.object or metric.external
    return _identified(source.metric) if source is not None else name_of(metric) or metric.type


def _identified(metric: MetricIdentifier) -> str:
    if metric.selector is None:
        return metric.name
    try:
        return f"{metric.name}{{{Selector.from_label_selector(metric.selector)}}}"
    except SelectorError:
        return metric.name
