"""A fake metrics client: it looks a request up among the recorded answers of the metrics APIs."""

from trimtab.decide.horizontal.observation import samples
from trimtab.model.core.meta import group_of
from trimtab.model.hpa.types import MetricSpec
from trimtab.model.json import wire
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.model.metrics_api import ExternalMetricValueList, MetricValueList, PodMetricsList


def resource_reading(answers, namespace, selector, resource, container=""):
    request = {"namespace": namespace, "labelSelector": str(Selector.parse(selector))}
    found = _answer(answers, "metrics.k8s.io", request)
    if "error" in found:
        return samples.unfetched("resource", found["error"])
    return samples.read_usage(wire.convert(found["response"], PodMetricsList).items, resource, container)


def pods_reading(answers, namespace, selector, metric, metric_selector):
    request = {
        "namespace": namespace,
        "rootScoped": False,
        "group": "",
        "kind": "Pod",
        "name": "*",
        "labelSelector": str(Selector.parse(selector)),
        "metric": metric,
        "metricLabelSelector": metric_selector,
    }
    found = _answer(answers, "custom.metrics.k8s.io", request)
    if "error" in found:
        return samples.unfetched("custom", found["error"])
    return samples.read_pods_metric(wire.convert(found["response"], MetricValueList))


def object_reading(answers, namespace, described, metric, metric_selector):
    group, kind = group_of(described.get("apiVersion", "")), described["kind"]
    is_root = kind == "Namespace" and not group
    request = {
        "namespace": "" if is_root else namespace,
        "rootScoped": is_root,
        "group": group,
        "kind": kind,
        "name": namespace if is_root else described["name"],
        "metric": metric,
        "metricLabelSelector": metric_selector,
    }
    found = _answer(answers, "custom.metrics.k8s.io", request)
    if "error" in found:
        return samples.unfetched("custom", found["error"])
    return samples.read_object_metric(wire.convert(found["response"], MetricValueList))


def external_reading(answers, namespace, metric, metric_selector):
    request = {"namespace": namespace, "metric": metric, "labelSelector": metric_selector}
    found = _answer(answers, "external.metrics.k8s.io", request)
    if "error" in found:
        return samples.unfetched("external", found["error"])
    return samples.read_external_metric(wire.convert(found["response"], ExternalMetricValueList))


def _answer(answers, api, request):
    for answer in answers:
        if answer["api"] == api and answer["request"] == request:
            return answer
    return {"error": f"this request was not recorded: {api} {request}"}


def wire_selector(selector):
    """Return a metric selector as the wire has it; an absent one means every series."""
    return "" if selector is None else str(Selector.from_label_selector(selector))


def reading_of(spec: MetricSpec, answers, namespace, selector):
    """Ask for what one metric spec needs, as the operator's readers will."""
    try:
        return _asked(spec, answers, namespace, selector)
    except SelectorError as error:
        return samples.FetchFailure(message=str(error))


def _asked(spec, answers, namespace, selector):
    if spec.resource and spec.type == "Resource":
        return resource_reading(answers, namespace, selector, spec.resource.name)
    if spec.container_resource and spec.type == "ContainerResource":
        source = spec.container_resource
        return resource_reading(answers, namespace, selector, source.name, source.container)
    if spec.pods and spec.type == "Pods":
        metric = spec.pods.metric
        return pods_reading(answers, namespace, selector, metric.name, wire_selector(metric.selector))
    if spec.object and spec.type == "Object":
        metric, described = spec.object.metric, wire.to_builtins(spec.object.described_object)
        return object_reading(answers, namespace, described, metric.name, wire_selector(metric.selector))
    if spec.external and spec.type == "External":
        metric = spec.external.metric
        return external_reading(answers, namespace, metric.name, wire_selector(metric.selector))
    return samples.FetchFailure(message=f"nothing is read for type {spec.type!r}")
