"""Queries of the metrics APIs, as frozen values.

Equal queries are equal values, so that a sync sends each of them once, however many HPAs need the result. Paths and
parameters are those of the three API groups. No part of them comes from a response.
"""

from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote

RESOURCE_GROUP = "metrics.k8s.io"
CUSTOM_GROUP = "custom.metrics.k8s.io"
EXTERNAL_GROUP = "external.metrics.k8s.io"

Parameters = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PodUsage:
    """CPU and memory of all pods of a namespace, or of all namespaces."""

    group: ClassVar[str] = RESOURCE_GROUP
    namespace: str | None = None

    def path(self, version: str) -> str:
        """Return the request path."""
        if not self.namespace:
            return f"/apis/{self.group}/{version}/pods"
        return f"{_root(self.group, version, self.namespace)}/pods"

    def parameters(self) -> Parameters:
        """Return the query parameters."""
        return []


@dataclass(frozen=True, slots=True)
class ObjectMetric:
    """A custom metric of an object. `resource` is `plural.group`, as in `ingresses.networking.k8s.io`."""

    group: ClassVar[str] = CUSTOM_GROUP
    namespace: str
    resource: str
    name: str
    metric: str
    selector: str = ""

    def path(self, version: str) -> str:
        """Return the request path."""
        root = _root(self.group, version, self.namespace)
        if self.resource == "namespaces":
            # The object's own name is ignored, so that nobody reads another namespace's metrics through it.
            return f"{root}/metrics/{_segment(self.metric)}"
        return f"{root}/{_segment(self.resource)}/{_segment(self.name)}/{_segment(self.metric)}"

    def parameters(self) -> Parameters:
        """Return the query parameters."""
        return [("metricLabelSelector", self.selector)] if self.selector else []


@dataclass(frozen=True, slots=True)
class PodsMetric:
    """A custom metric of each pod that matches a label selector."""

    group: ClassVar[str] = CUSTOM_GROUP
    namespace: str
    metric: str
    pods: str
    selector: str = ""

    def path(self, version: str) -> str:
        """Return the request path."""
        return f"{_root(self.group, version, self.namespace)}/pods/*/{_segment(self.metric)}"

    def parameters(self) -> Parameters:
        """Return the query parameters."""
        pairs = (("labelSelector", self.pods), ("metricLabelSelector", self.selector))
        return [(name, value) for name, value in pairs if value]


@dataclass(frozen=True, slots=True)
class ExternalMetric:
    """The series of an external metric that match a label selector."""

    group: ClassVar[str] = EXTERNAL_GROUP
    namespace: str
    metric: str
    selector: str = ""

    def path(self, version: str = "v1beta1") -> str:
        """Return the request path."""
        return f"{_root(self.group, version, self.namespace)}/{_segment(self.metric)}"

    def parameters(self) -> Parameters:
        """Return the query parameters."""
        return [("labelSelector", self.selector)] if self.selector else []


Query = PodUsage | ObjectMetric | PodsMetric | ExternalMetric


def _root(group: str, version: str, namespace: str) -> str:
    return f"/apis/{group}/{version}/namespaces/{_segment(namespace)}"


def _segment(name: str) -> str:
    """Quote a segment of a path. Reject segments that could address another object."""
    if not name or name in {".", ".."} or "/" in name or "%" in name:
        raise ValueError(f"{name!r} cannot be part of a metrics path")
    return quote(name, safe=":")


class MetricsError(Exception):
    """A metrics API returned no usable response. The message names the API and the cause."""

    def __init__(self, message: str = "", *, is_forbidden: bool = False) -> None:
        super().__init__(message)
        self.is_forbidden = is_forbidden
        """Whether this process lacks the right to read the metric."""
