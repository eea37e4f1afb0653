"""Short names of metrics: `cpu`, `orders`, `queue_length{queue="mail"}`."""

from collections.abc import Iterable

from trimtab.model.hpa.types import MetricIdentifier, MetricSpec
from trimtab.model.labels.requirement import Requirement
from trimtab.model.labels.selector import Selector, SelectorError, go_string

GO_SELECTOR = "&LabelSelector{"
"""How a selector begins where upstream writes it in Go's notation."""

NO_SELECTOR = "nil"
"""How upstream writes an absent selector."""


def name_of(metric: MetricSpec) -> str:
    """Return the name of the resource or of the metric, empty if the spec has none."""
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
    return _format(source.metric) if source is not None else name_of(metric) or metric.type


def plain_names(text: str, metrics: Iterable[MetricSpec]) -> str:
    """Return one of upstream's texts with short names of metrics instead of Go's notation."""
    for metric in metrics:
        source = metric.pods or metric.object or metric.external
        if source is None or (GO_SELECTOR not in text and NO_SELECTOR not in text):
            continue
        name, label, selector = source.metric.name, label_of(metric), go_string(source.metric.selector)
        for before in (f"{name}({selector})", f"{name}/{selector}"):
            text = text.replace(before, label)
    return text


def _format(metric: MetricIdentifier) -> str:
    if metric.selector is None:
        return metric.name
    try:
        requirements = Selector.from_label_selector(metric.selector).requirements
    except SelectorError:
        return metric.name
    conditions = ",".join(map(_format_condition, requirements))
    return f"{metric.name}{{{conditions}}}" if conditions else metric.name


def _format_condition(requirement: Requirement) -> str:
    """Return a condition as Prometheus and `kubectl -l` users write it, with its values in quotes."""
    values = ", ".join(f'"{value}"' for value in requirement.values)
    match requirement.operator:
        case "=" | "==" | "!=":
            return f"{requirement.key}{'!=' if requirement.operator == '!=' else '='}{values}"
        case "exists":
            return requirement.key
        case "!":
            return f"!{requirement.key}"
        case _:
            return f"{requirement.key} {requirement.operator} ({values})"
