"""metrics.k8s.io: what pods and nodes use now, from whatever knows it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from trimtab.clock import Clock
from trimtab.cluster.resource import Json
from trimtab.lab.apiserver.errors import method_not_allowed, not_found
from trimtab.lab.apiserver.request import ApiRequest, ApiResponse, RequestPath
from trimtab.lab.controllers.base.kinds import RunNode, RunPod
from trimtab.lab.controllers.base.write_through_cache import WriteThroughCache
from trimtab.lab.handlers.get_list import ReadHandler
from trimtab.lab.metrics.values import MetricValues, SeriesValue
from trimtab.lab.resources.registry import ServedResource
from trimtab.lab.storage.codec import JsonObject
from trimtab.lab.storage.store import Entry, ObjectStore
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.model.times import format_duration, format_time

GROUP, VERSION = "metrics.k8s.io", "v1beta1"


class UsageSource(Protocol):
    """Something that knows what is used, such as the lab's node agent."""

    def pod_usage(self, namespace: str, name: str, now: datetime) -> "UsageSample | None":
        """Return the usage of each container of a pod, or None when there is no sample."""
        ...

    def node_usage(self, name: str, now: datetime) -> "UsageSample | None":
        """Return the usage of a node, under the empty container name."""
        ...


class UsageSample:
    """One sample: quantities per container, when it was taken and over how long."""

    __slots__ = ("containers", "timestamp", "window")

    def __init__(self, containers: dict[str, dict[str, str]], timestamp: datetime, window: timedelta) -> None:
        self.containers = containers
        self.timestamp = timestamp
        self.window = window


class MetricsApi:
    """The read-only resources of metrics.k8s.io."""

    def __init__(self, clock: Clock, store: ObjectStore, reads: ReadHandler) -> None:
        self._clock = clock
        self._store = store
        self._reads = reads
        #: Set by whoever runs the nodes; without one there are no samples.
        self.source: UsageSource | None = None

    def handle(
        self,
        request: ApiRequest,
        resource: ServedResource,
        target: RequestPath,
        verb: str,
        core: ServedResource,
    ) -> ApiResponse:
        """Answer a get or a list; `core` is the resource whose objects are measured."""
        if verb == "get":
            key = f"{target.namespace}/{target.name}" if resource.is_namespaced else target.name
            entry = self._store.get(core.storage, key)
            found = list(self._measured(resource, [entry] if entry is not None else []))
            if not found:
                raise not_found(resource.plural, GROUP, f"{key}")
            return ApiResponse.of(found[0])
        if verb != "list":
            raise method_not_allowed()
        page = self._reads.page(request, core, target)
        items = list(self._measured(resource, page.entries))
        return ApiResponse.of(
            {"kind": resource.list_kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}
        )

    def _measured(self, resource: ServedResource, entries: Iterable[Entry]) -> Iterable[JsonObject]:
        if self.source is None:
            return
        now = self._clock.now()
        for entry in entries:
            if resource.is_namespaced:
                usage = self.source.pod_usage(entry.namespace, entry.name, now)
            else:
                usage = self.source.node_usage(entry.name, now)
            if usage is not None:
                yield _sample(resource, entry, usage, now)


def _sample(resource: ServedResource, entry: Entry, usage: UsageSample, now: datetime) -> JsonObject:
    meta: JsonObject = {"name": entry.name, "creationTimestamp": format_time(now)}
    if entry.namespace:
        meta["namespace"] = entry.namespace
    if entry.labels:
        meta["labels"] = dict(entry.labels)
    sample: JsonObject = {
        "kind": resource.kind,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": meta,
        "timestamp": format_time(usage.timestamp),
        "window": format_duration(usage.window),
    }
    if resource.is_namespaced:
        sample["containers"] = [{"name": name, "usage": used} for name, used in usage.containers.items()]
    else:
        sample["usage"] = usage.containers.get("", {})
    return sample


RESOURCE, CUSTOM, EXTERNAL = "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"
VERSIONS = {RESOURCE: ("v1beta1",), CUSTOM: ("v1beta2", "v1beta1"), EXTERNAL: ("v1beta1",)}
Answer = tuple[int, Json]


class MetricsAnswers:
    """Answers GET requests of the metrics APIs; without mirrors only those about values."""

    def __init__(
        self,
        now: Callable[[], datetime],
        values: MetricValues,
        *,
        usage: UsageSource | None = None,
        pods: WriteThroughCache[RunPod] | None = None,
        nodes: WriteThroughCache[RunNode] | None = None,
    ) -> None:
        self._now = now
        self._values = values
        self._usage = usage
        self._pods = pods
        self._nodes = nodes

    def answer(self, path_and_query: str) -> Answer:
        """Return status and body of a GET."""
        split = urlsplit(path_and_query)
        parts = [unquote(part) for part in split.path.strip("/").split("/")]
        if parts[0] != "apis" or (len(parts) > 1 and parts[1] not in VERSIONS):
            return failure(404, "NotFound", f"{split.path} is not served here")
        if len(parts) < 4:
            return self._discover(parts[1:])
        group, version, rest = parts[1], parts[2], parts[3:]
        if version not in VERSIONS[group]:
            return failure(404, "NotFound", f"{group}/{version} is not served here")
        query = {name: found[0] for name, found in parse_qs(split.query).items()}
        try:
            if group == EXTERNAL:
                return self._external(rest, query)
            if group == CUSTOM:
                return self._custom(version, rest, query)
            return self._resource(rest, query)
        except SelectorError as problem:
            return failure(400, "BadRequest", f"unable to parse the selector: {problem}")

    def _external(self, rest: list[str], query: Mapping[str, str]) -> Answer:
        if len(rest) != 3 or rest[0] != "namespaces":
            return failure(404, "NotFound", "external metrics are at namespaces/NAMESPACE/METRIC")
        found = self._values.external(rest[1], rest[2], Selector.parse(query.get("labelSelector", "")))
        items = [
            {
                "metricName": one.name,
                "metricLabels": one.labels,
                "timestamp": _moment(one),
                "value": one.value,
            }
            for one in found
        ]
        return 200, _list("ExternalMetricValueList", f"{EXTERNAL}/v1beta1", items)

    def _custom(self, version: str, rest: list[str], query: Mapping[str, str]) -> Answer:
        if len(rest) != 5 or rest[0] != "namespaces":
            return failure(404, "NotFound", "custom metrics are at namespaces/NAMESPACE/RESOURCE/NAME/METRIC")
        _, namespace, resource, name, metric = rest
        of_metric = Selector.parse(query.get("metricLabelSelector", ""))
        of_object = Selector.parse(query.get("labelSelector", ""))
        plural = resource.partition(".")[0]
        found = [
            one
            for kind in self._kinds(plural)
            for one in self._values.custom(namespace, kind, metric, of_metric)
            if one.object is not None and name in ("*", one.object.name) and self._has_labels(one, of_object)
        ]
        if not found and name != "*":
            message = f"the server could not find the metric {metric} for {resource} {name}"
            return failure(404, "NotFound", message)
        items = [_custom_item(one, version) for one in found]
        return 200, _list("MetricValueList", f"{CUSTOM}/{version}", items)

    def _kinds(self, plural: str) -> list[str]:
        kinds = {one.object.kind for one in self._values.all() if one.object is not None}
        return [kind for kind in sorted(kinds) if plural_of(kind) == plural]

    def _has_labels(self, one: SeriesValue, selector: Selector) -> bool:
        """Tell whether the described object matches; only pods have labels that are known here."""
        if one.object is None or one.object.kind != "Pod" or self._pods is None:
            return True
        pod = self._pods.get(one.object.name, one.object.namespace)
        return pod is not None and selector.matches(pod.metadata.labels)

    def _resource(self, rest: list[str], query: Mapping[str, str]) -> Answer:
        selector = Selector.parse(query.get("labelSelector", ""))
        if rest[0] == "nodes":
            return self._nodes_usage(rest[1] if len(rest) > 1 else "", selector)
        namespace = rest[1] if rest[0] == "namespaces" and len(rest) > 2 else None
        rest = rest[2:] if namespace is not None else rest
        if rest[0] != "pods":
            return failure(404, "NotFound", "metrics.k8s.io has pods and nodes")
        return self._pods_usage(namespace, rest[1] if len(rest) > 1 else "", selector)

    def _pods_usage(self, namespace: str | None, name: str, selector: Selector) -> Answer:
        found: list[Json] = []
        for pod in self._pods.all(namespace) if self._pods is not None else ():
            if name in ("", pod.metadata.name) and selector.matches(pod.metadata.labels):
                usage = self._usage_of_pod(pod)
                found += [_usage_sample("PodMetrics", pod, usage)] if usage is not None else []
        return _one_or_list(found, name, "PodMetrics", "pods")

    def _usage_of_pod(self, pod: RunPod) -> UsageSample | None:
        if self._usage is None:
            return None
        return self._usage.pod_usage(pod.metadata.namespace, pod.metadata.name, self._now())

    def _nodes_usage(self, name: str, selector: Selector) -> Answer:
        found: list[Json] = []
        for node in self._nodes.all() if self._nodes is not None and self._usage is not None else ():
            if name in ("", node.metadata.name) and selector.matches(node.metadata.labels):
                assert self._usage is not None
                usage = self._usage.node_usage(node.metadata.name, self._now())
                found += [_usage_sample("NodeMetrics", node, usage)] if usage is not None else []
        return _one_or_list(found, name, "NodeMetrics", "nodes")

    def _discover(self, rest: list[str]) -> Answer:
        if len(rest) == 2:
            return 200, self._resources(rest[0], rest[1])
        groups = [_group(name) for name in VERSIONS]
        if rest:
            return 200, {"kind": "APIGroup", "apiVersion": "v1", **_group(rest[0])}
        return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _resources(self, group: str, version: str) -> Json:
        names: dict[str, tuple[str, bool]] = {}
        if group == RESOURCE:
            names = {"pods": ("PodMetrics", True), "nodes": ("NodeMetrics", False)}
        for one in self._values.all():
            if group == EXTERNAL and one.object is None:
                names[one.name] = ("ExternalMetricValueList", True)
            elif group == CUSTOM and one.object is not None:
                names[f"{plural_of(one.object.kind)}/{one.name}"] = ("MetricValueList", True)
        resources = [
            {"name": name, "singularName": "", "namespaced": scoped, "kind": kind, "verbs": ["get", "list"]}
            for name, (kind, scoped) in names.items()
        ]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}",
            "resources": resources,
        }


def failure(code: int, reason: str, message: str) -> Answer:
    """Return a refusal as the API spells it."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return code, {**body, "message": message, "reason": reason, "code": code}


def plural_of(kind: str) -> str:
    """Return the plural by which a kind's objects are asked for."""
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def _custom_item(one: SeriesValue, version: str) -> Json:
    assert one.object is not None
    described = one.object
    item: Json = {
        "describedObject": {
            "kind": described.kind,
            "namespace": described.namespace,
            "name": described.name,
            "apiVersion": described.api_version,
        },
        "timestamp": _moment(one),
        "value": one.value,
    }
    return item | ({"metricName": one.name} if version == "v1beta1" else {"metric": {"name": one.name}})


def _usage_sample(kind: str, thing: RunPod | RunNode, usage: UsageSample) -> Json:
    meta: Json = {"name": thing.metadata.name, "creationTimestamp": format_time(usage.timestamp)}
    meta |= {"namespace": thing.metadata.namespace} if thing.metadata.namespace else {}
    meta |= {"labels": thing.metadata.labels} if thing.metadata.labels else {}
    sample: Json = {
        "kind": kind,
        "apiVersion": f"{RESOURCE}/v1beta1",
        "metadata": meta,
        "timestamp": format_time(usage.timestamp),
        "window": format_duration(usage.window),
    }
    if kind == "NodeMetrics":
        return sample | {"usage": usage.containers.get("", {})}
    return sample | {"containers": [{"name": name, "usage": used} for name, used in usage.containers.items()]}


def _one_or_list(found: list[Json], name: str, kind: str, plural: str) -> Answer:
    if not name:
        return 200, _list(f"{kind}List", f"{RESOURCE}/v1beta1", found)
    if not found:
        return failure(404, "NotFound", f'{plural}.{RESOURCE} "{name}" not found')
    return 200, found[0]


def _list(kind: str, api_version: str, items: list[Json]) -> Json:
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, "items": items}


def _group(name: str) -> Json:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in VERSIONS[name]]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _moment(one: SeriesValue) -> str:
    return format_time(one.timestamp)
