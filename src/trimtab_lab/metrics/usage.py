"""metrics.k8s.io: the usage of pods and nodes, as metrics-server reports it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from trimtab.model.times import format_duration, format_time
from trimtab_lab.apiserver.errors import not_found
from trimtab_lab.apiserver.request import ApiResponse, ResourceRequest
from trimtab_lab.handlers.context import HandlerContext
from trimtab_lab.handlers.get_list import ReadHandler
from trimtab_lab.storage.codec import JsonObject

GROUP = "metrics.k8s.io"
#: Both hold the same fields. v1 is served since Kubernetes 1.37.
VERSIONS = ("v1", "v1beta1")
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
        """Return the metrics of the objects that have a sample."""
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
