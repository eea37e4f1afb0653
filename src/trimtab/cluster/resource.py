"""Resources of the API: group, version, plural name, and the type that objects are decoded into."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from trimtab.model.core.objects import Lease, LimitRange, Node
from trimtab.model.core.pod import Pod
from trimtab.model.core.workloads import Job, ReplicationController, Workload

T = TypeVar("T")
U = TypeVar("U")
Json = dict[str, Any]
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A resource of the API and the type that its objects are decoded into.

    A struct type decodes only its own fields, so an object of it must not be sent back with `update`. Use `patch`, or
    read `resource.untyped()`.
    """

    group: str
    version: str
    plural: str
    kind: str
    struct: type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return `group/version`, or the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def into(self, kind: type[U]) -> "Resource[U]":
        """Return the resource with another type."""
        return replace(self, struct=kind)  # type: ignore[arg-type,return-value]  # replace keeps the old parameter

    def untyped(self) -> "Resource[Json]":
        """Return the resource decoded as plain JSON, with all fields."""
        return self.into(Json)

    def with_transform(self, transform: Callable[[T], U]) -> "TransformedResource[U]":
        """Return the resource for a cache that stores only `transform(object)`."""
        return TransformedResource(self, transform)

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the path of the resource. Without a namespace it covers all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment(namespace)]
        elif self.namespaced and name is not None:
            raise ValueError(f"{self.plural} {name!r}: a namespaced object needs a namespace")
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment(name))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)

    def describe(self, namespace: str | None, name: str | None) -> str:
        """Return the name of an object in messages, as `deployments shop/web`."""
        if namespace and name:
            return f"{self.plural} {namespace}/{name}"
        return f"{self.plural} {namespace or name or ''}".rstrip()


@dataclass(frozen=True, slots=True)
class TransformedResource(Generic[T]):
    """A resource with a transform. The transform is applied page by page while a list arrives."""

    resource: Resource[Any]
    reduce: Callable[[Any], T]


def resource_of(what: Resource[T] | TransformedResource[T]) -> Resource[Any]:
    """Return the resource, with or without a transform."""
    return what.resource if isinstance(what, TransformedResource) else what


def _segment(name: str) -> str:
    """Quote a segment of a path. Reject segments that could address another object."""
    if _PLAIN.fullmatch(name) and name not in {".", ".."}:
        return name  # nearly every name: quoting it took longer than the rest of the path
    if not name or name in {".", ".."} or "/" in name or "%" in name:
        raise ValueError(f"{name!r} cannot be the name of an object")
    return quote(name, safe="")


PODS = Resource("", "v1", "pods", "Pod", Pod)
NODES = Resource("", "v1", "nodes", "Node", Node, namespaced=False)
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange", LimitRange)
REPLICATION_CONTROLLERS = Resource(
    "", "v1", "replicationcontrollers", "ReplicationController", ReplicationController
)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", Workload)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", Workload)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", Workload)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", Workload)
JOBS = Resource("batch", "v1", "jobs", "Job", Job)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", Lease)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event", Json)
CORE_EVENTS = Resource("", "v1", "events", "Event", Json)
