"""metrics.k8s.io: what pods and nodes use now, from whatever knows it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol

from trimtab.clock import Clock
from trimtab.lab.codec import JsonObject
from trimtab.lab.errors import method_not_allowed, not_found
from trimtab.lab.reads import Reads
from trimtab.lab.registry import Resource
from trimtab.lab.request import Request, Response, Target
from trimtab.lab.store import Entry, Store
from trimtab.model.times import format_duration, format_time

GROUP, VERSION = "metrics.k8s.io", "v1beta1"


class UsageSource(Protocol):
    """Something that knows what is used, such as the lab's node agent."""

    def pod_usage(self, namespace: str, name: str, now: datetime) -> "Usage | None":
        """Return the usage of each container of a pod, or None when there is no sample."""
        ...

    def node_usage(self, name: str, now: datetime) -> "Usage | None":
        """Return the usage of a node, under the empty container name."""
        ...


class Usage:
    """One sample: quantities per container, when it was taken and over how long."""

    __slots__ = ("containers", "timestamp", "window")

    def __init__(self, containers: dict[str, dict[str, str]], timestamp: datetime, window: timedelta) -> None:
        self.containers = containers
        self.timestamp = timestamp
        self.window = window


class MetricsApi:
    """The read-only resources of metrics.k8s.io."""

    def __init__(self, clock: Clock, store: Store, reads: Reads) -> None:
        self._clock = clock
        self._store = store
        self._reads = reads
        #: Set by whoever runs the nodes; without one there are no samples.
        self.source: UsageSource | None = None

    def handle(
        self, request: Request, resource: Resource, target: Target, verb: str, core: Resource
    ) -> Response:
        """Answer a get or a list; `core` is the resource whose objects are measured."""
        if verb == "get":
            key = f"{target.namespace}/{target.name}" if resource.is_namespaced else target.name
            entry = self._store.get(core.storage, key)
            found = list(self._measured(resource, [entry] if entry is not None else []))
            if not found:
                raise not_found(resource.plural, GROUP, f"{key}")
            return Response.of(found[0])
        if verb != "list":
            raise method_not_allowed()
        page = self._reads.page(request, core, target)
        items = list(self._measured(resource, page.entries))
        return Response.of(
            {"kind": resource.list_kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}
        )

    def _measured(self, resource: Resource, entries: Iterable[Entry]) -> Iterable[JsonObject]:
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


def _sample(resource: Resource, entry: Entry, usage: Usage, now: datetime) -> JsonObject:
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
