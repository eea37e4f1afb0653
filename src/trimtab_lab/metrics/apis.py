"""metrics.k8s.io as metrics-server reports it, and GET requests of it and of custom and external metrics."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from trimtab.model.core.objects import Node
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.model.status import StatusError, bad_request, not_found
from trimtab.model.times import format_duration, format_time
from trimtab_lab.apiserver.request import (
    ApiRequest,
    ApiResponse,
    RequestInfo,
    ResourceRequest,
    parse_path,
    parse_query,
)
from trimtab_lab.controllers.kinds import LabPod
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.read import ReadHandler
from trimtab_lab.metrics.values import MetricValues, SeriesValue
from trimtab_lab.nodes.caches import WriteThroughCache
from trimtab_lab.storage.codec import JsonObject

GROUP = "metrics.k8s.io"
#: Both hold the same fields. v1 is served since Kubernetes 1.37.
USAGE_VERSIONS = ("v1", "v1beta1")
KINDS = {"pods": "PodMetrics", "nodes": "NodeMetrics"}


@dataclass(frozen=True, slots=True)
class UsageSample:
    """Quantities per container, the time of the sample and the window that it covers."""

    containers: dict[str, dict[str, str]]
    timestamp: datetime
    window: timedelta


class UsageSource(Protocol):
    """A source of usage, such as the lab's node agent."""

    def pod_usage(self, namespace: str, name: str, now: datetime) -> UsageSample | None:
        """Return the usage of each container of a pod, or None when there is no sample."""
        ...

    def node_usage(self, name: str, now: datetime) -> UsageSample | None:
        """Return the usage of a node, under the empty container name."""
        ...


class _Metadata(Protocol):
    """What the metrics repeat of a pod or node."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


class ResourceMetrics:
    """PodMetrics and NodeMetrics of a source of usage."""

    def __init__(self, now: Callable[[], datetime], source: UsageSource | None = None) -> None:
        self._now = now
        #: Without a source there are no samples.
        self.source = source

    def get(self, version: str, plural: str, objects: Iterable[_Metadata], key: str) -> JsonObject:
        """Return the metrics of the object, or raise NotFound."""
        items = self._items(version, plural, objects)
        if not items:
            raise not_found(plural, GROUP, key)
        return items[0]

    def list_objects(self, version: str, plural: str, objects: Iterable[_Metadata]) -> JsonObject:
        items = self._items(version, plural, objects)
        api_version = f"{GROUP}/{version}"
        return {"kind": f"{KINDS[plural]}List", "apiVersion": api_version, "metadata": {}, "items": items}

    def _items(self, version: str, plural: str, objects: Iterable[_Metadata]) -> list[JsonObject]:
        if self.source is None:
            return []
        now = self._now()
        items = []
        for obj in objects:
            if plural == "pods":
                usage = self.source.pod_usage(obj.namespace, obj.name, now)
            else:
                usage = self.source.node_usage(obj.name, now)
            if usage is not None:
                head = {"kind": KINDS[plural], "apiVersion": f"{GROUP}/{version}"}
                items.append(head | _measured(plural, obj, usage, now))
        return items


def _measured(plural: str, obj: _Metadata, usage: UsageSample, now: datetime) -> JsonObject:
    meta: JsonObject = {"name": obj.name, "creationTimestamp": format_time(now)}
    if obj.namespace:
        meta["namespace"] = obj.namespace
    if obj.labels:
        meta["labels"] = dict(obj.labels)
    item: JsonObject = {
        "metadata": meta,
        "timestamp": format_time(usage.timestamp),
        "window": format_duration(usage.window),
    }
    if plural == "nodes":
        return {**item, "usage": usage.containers.get("", {})}
    containers = [{"name": name, "usage": used} for name, used in usage.containers.items()]
    return {**item, "containers": containers}


class ResourceMetricsHandler:
    """The verbs of metrics.k8s.io in the lab's API server, over its stored pods and nodes."""

    def __init__(self, context: HandlerContext, metrics: ResourceMetrics, reads: ReadHandler) -> None:
        self._context = context
        self._metrics = metrics
        self._reads = reads

    async def handle(self, request: ResourceRequest) -> ApiResponse:
        """Return the metrics of one object or of a list."""
        version, plural = request.info.version, request.resource.plural
        core = self._context.registry.get("", plural)
        assert core is not None, "pods and nodes are always served"
        request = replace(request, resource=core)
        if request.info.name:
            entry = self._context.find(request)
            objects = [entry] if entry is not None else []
            return ApiResponse.of(self._metrics.get(version, plural, objects, request.key))
        return ApiResponse.of(self._metrics.list_objects(version, plural, self._reads.page(request).entries))


RESOURCE, CUSTOM, EXTERNAL = GROUP, "custom.metrics.k8s.io", "external.metrics.k8s.io"
VERSIONS: Mapping[str, tuple[str, ...]] = {
    RESOURCE: USAGE_VERSIONS,
    CUSTOM: ("v1beta2", "v1beta1"),
    EXTERNAL: ("v1beta1",),
}


class MetricsApis:
    """The metrics APIs. Without caches of pods and nodes, metrics.k8s.io is empty."""

    def __init__(
        self,
        now: Callable[[], datetime],
        values: MetricValues,
        *,
        source: UsageSource | None = None,
        pods: WriteThroughCache[LabPod] | None = None,
        nodes: WriteThroughCache[Node] | None = None,
        versions: Mapping[str, tuple[str, ...]] = VERSIONS,
    ) -> None:
        self._usage = ResourceMetrics(now, source)
        self._values = values
        self._pods = pods
        self._nodes = nodes
        #: The versions of each group, preferred first. They can be changed while the APIs are served.
        self.versions = dict(versions)

    def get(self, path: str, query: str) -> ApiResponse:
        try:
            return ApiResponse.of(self._get(path, query))
        except SelectorError as problem:
            return ApiResponse.failure(bad_request(f"unable to parse the selector: {problem}"))
        except StatusError as problem:
            return ApiResponse.failure(problem)

    def _get(self, path: str, query: str) -> JsonObject:
        info = parse_path(path)
        parts = info.rest if not info.is_resource else ("apis", info.group)
        if parts[0] != "apis" or (len(parts) > 1 and parts[1] not in self.versions):
            raise _not_served(path)
        if not info.is_resource:
            return self._discover(*parts[1:])
        if info.version not in self.versions[info.group]:
            raise _not_served(f"{info.group}/{info.version}")
        request = ApiRequest("GET", path, parse_query(query), {})
        if info.group == EXTERNAL:
            return self._list_external(info, request)
        if info.group == CUSTOM:
            return self._list_custom(info, request)
        return self._read_usage(info, _selector(request, "labelSelector"))

    def _list_external(self, info: RequestInfo, request: ApiRequest) -> JsonObject:
        metric = info.resource
        if metric == "namespaces" and info.subresource:
            metric = info.subresource  # `status` and `finalize`, which the path of a namespace can end in
        elif not info.namespace or info.name:
            raise _not_found("external metrics are at namespaces/NAMESPACE/METRIC")
        series = self._values.external(info.namespace, metric, _selector(request, "labelSelector"))
        items = [
            {
                "metricName": value.name,
                "metricLabels": value.labels,
                "timestamp": format_time(value.timestamp),
                "value": value.value,
            }
            for value in series
        ]
        return _list("ExternalMetricValueList", f"{EXTERNAL}/{info.version}", items)

    def _list_custom(self, info: RequestInfo, request: ApiRequest) -> JsonObject:
        metric, name = info.subresource, info.name
        if not info.namespace or not metric or info.rest:
            raise _not_found("custom metrics are at namespaces/NAMESPACE/RESOURCE/NAME/METRIC")
        metric_labels = _selector(request, "metricLabelSelector")
        object_labels = _selector(request, "labelSelector")
        plural = info.resource.partition(".")[0]
        items = [
            _custom_item(value, info.version)
            for kind in self._kinds(plural)
            for value in self._values.custom(info.namespace, kind, metric, metric_labels)
            if value.object is not None
            and name in ("*", value.object.name)
            and self._has_labels(value, object_labels)
        ]
        if not items and name != "*":
            raise _not_found(f"the server could not find the metric {metric} for {info.resource} {name}")
        return _list("MetricValueList", f"{CUSTOM}/{info.version}", items)

    def _kinds(self, plural: str) -> list[str]:
        kinds = {value.object.kind for value in self._values.all() if value.object is not None}
        return [kind for kind in sorted(kinds) if plural_of(kind) == plural]

    def _has_labels(self, value: SeriesValue, selector: Selector) -> bool:
        """Return whether the described object matches. Only the labels of pods are cached."""
        if value.object is None or value.object.kind != "Pod" or self._pods is None:
            return True
        pod = self._pods.get(value.object.name, value.object.namespace)
        return pod is not None and selector.matches(pod.metadata.labels)

    def _read_usage(self, info: RequestInfo, selector: Selector) -> JsonObject:
        objects: Iterable[LabPod | Node]
        if info.resource == "nodes":
            objects = self._nodes.all() if self._nodes is not None else ()
        elif info.resource == "pods":
            objects = self._pods.all(info.namespace or None) if self._pods is not None else ()
        else:
            raise _not_found("metrics.k8s.io has pods and nodes")
        found = [
            obj.metadata
            for obj in objects
            if info.name in ("", obj.metadata.name) and selector.matches(obj.metadata.labels)
        ]
        if not info.name:
            return self._usage.list_objects(info.version, info.resource, found)
        key = f"{info.namespace}/{info.name}" if info.resource == "pods" else info.name
        return self._usage.get(info.version, info.resource, found, key)

    def _discover(self, group: str = "", version: str = "") -> JsonObject:
        if version:
            return self._resources(group, version)
        if group:
            return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
        groups = [self._group(name) for name in self.versions]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, name: str) -> JsonObject:
        versions = [
            {"groupVersion": f"{name}/{version}", "version": version} for version in self.versions[name]
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> JsonObject:
        kinds: dict[str, str] = dict(KINDS) if group == RESOURCE else {}
        for value in self._values.all():
            if group == EXTERNAL and value.object is None:
                kinds[value.name] = "ExternalMetricValueList"
            elif group == CUSTOM and value.object is not None:
                kinds[f"{plural_of(value.object.kind)}/{value.name}"] = "MetricValueList"
        resources = [
            {
                "name": name,
                "singularName": "",
                "namespaced": kind != "NodeMetrics",
                "kind": kind,
                "verbs": ["get", "list"],
            }
            for name, kind in kinds.items()
        ]
        group_version = f"{group}/{version}"
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": resources,
        }


def plural_of(kind: str) -> str:
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def _selector(request: ApiRequest, option: str) -> Selector:
    return Selector.parse(request.option(option))


def _not_found(message: str) -> StatusError:
    return StatusError(404, message)


def _not_served(what: str) -> StatusError:
    return _not_found(f"{what} is not served here")


def _custom_item(value: SeriesValue, version: str) -> JsonObject:
    assert value.object is not None
    described = {
        "kind": value.object.kind,
        "namespace": value.object.namespace,
        "name": value.object.name,
        "apiVersion": value.object.api_version,
    }
    name = {"metricName": value.name} if version == "v1beta1" else {"metric": {"name": value.name}}
    timestamp = format_time(value.timestamp)
    return {"describedObject": described, "timestamp": timestamp, "value": value.value, **name}


def _list(kind: str, api_version: str, items: list[JsonObject]) -> JsonObject:
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}
