"""Metric queries: what one request reads. Equal queries are equal values, so that they can share one fetch.

What is authorized and what another adapter is asked are both derived from the query, so they cannot differ (S14).
"""

from dataclasses import dataclass
from urllib.parse import quote

from trimtab.cluster.access_reviews import ResourceAttributes
from trimtab.model.labels.selector import EVERYTHING, Selector

CUSTOM_GROUP = "custom.metrics.k8s.io"
EXTERNAL_GROUP = "external.metrics.k8s.io"
CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
EXTERNAL_VERSIONS = ("v1beta1",)
NAMESPACES = "namespaces"
ANY = "*"
_NAMESPACE_METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class CustomMetricQuery:
    """Reads a metric of one object, or of all objects that `objects` selects if the name is `*`.

    `resource` is `plural.group`, as `statefulsets.apps`. A metric of a namespace has the resource `namespaces`, the
    namespace as `name`, and an empty `namespace`. A namespace inside of a namespace is a ValueError: it would be
    authorized in the outer one and read from the inner one.
    """

    namespace: str
    resource: str
    name: str
    metric: str
    objects: Selector = EVERYTHING
    series: Selector = EVERYTHING

    def __post_init__(self) -> None:
        if self.resource == NAMESPACES and self.namespace:
            raise ValueError(f"namespace {self.name} cannot be an object of namespace {self.namespace}")

    @property
    def selects_objects(self) -> bool:
        """Return whether the query selects objects by labels."""
        return self.name == ANY

    def attributes(self, version: str) -> ResourceAttributes:
        """Return what a caller must be allowed to get.

        A namespace is authorized like an object inside of it.
        """
        if self.resource == NAMESPACES:
            return ResourceAttributes(
                "get", CUSTOM_GROUP, _NAMESPACE_METRICS, self.name, version, self.metric
            )
        return ResourceAttributes(
            "get", CUSTOM_GROUP, self.resource, self.namespace, version, self.name, self.metric
        )

    def path(self, version: str) -> str:
        """Return the path of this query, as `routes` parses it."""
        name, metric = quote(self.name, safe="*"), quote(self.metric, safe="")
        root = f"/apis/{CUSTOM_GROUP}/{version}"
        if self.resource == NAMESPACES:
            assert not self.namespace, "a namespace has no namespace"
            return f"{root}/namespaces/{name}/{_NAMESPACE_METRICS}/{metric}"
        namespace = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{root}{namespace}/{self.resource}/{name}/{metric}"

    def parameters(self) -> list[tuple[str, str]]:
        """Return the query parameters that belong to the path."""
        pairs = (("labelSelector", str(self.objects)), ("metricLabelSelector", str(self.series)))
        return [(name, value) for name, value in pairs if value]

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.metric} of {self.resource} {where}"


@dataclass(frozen=True, slots=True)
class ExternalMetricQuery:
    """Reads the series of a metric that describes no object of the cluster."""

    namespace: str
    metric: str
    series: Selector = EVERYTHING

    def attributes(self, version: str) -> ResourceAttributes:
        """Return what a caller must be allowed to list: kube-apiserver authorizes a path without a name so."""
        return ResourceAttributes("list", EXTERNAL_GROUP, self.metric, self.namespace, version)

    def path(self, version: str) -> str:
        """Return the path of this query, as `routes` parses it."""
        return f"/apis/{EXTERNAL_GROUP}/{version}/namespaces/{self.namespace}/{quote(self.metric, safe='')}"

    def parameters(self) -> list[tuple[str, str]]:
        """Return the query parameters that belong to the path."""
        return [("labelSelector", str(self.series))] if not self.series.is_empty else []

    def __str__(self) -> str:
        return f"external metric {self.metric} in {self.namespace}"


MetricQuery = CustomMetricQuery | ExternalMetricQuery
