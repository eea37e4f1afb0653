"""What is asked of the adapter: one frozen value per distinct question, so that equal questions share one flight."""

from dataclasses import dataclass
from urllib.parse import quote

from trimtab.model.labels.selector import EVERYTHING, Selector

CUSTOM_GROUP = "custom.metrics.k8s.io"
EXTERNAL_GROUP = "external.metrics.k8s.io"
CUSTOM_VERSIONS = ("v1beta2", "v1beta1")
EXTERNAL_VERSIONS = ("v1beta1",)
NAMESPACES = "namespaces"
ANY = "*"


@dataclass(frozen=True, slots=True)
class CustomQuestion:
    """A metric of one object, or with the name `*` of all objects that `objects` selects.

    `resource` is `plural.group`, as `statefulsets.apps`. A metric of a namespace has the resource `namespaces`, the
    namespace as `name`, and no namespace of its own.
    """

    namespace: str
    resource: str
    name: str
    metric: str
    objects: Selector = EVERYTHING
    series: Selector = EVERYTHING

    @property
    def is_about_many(self) -> bool:
        """Return whether all selected objects are meant."""
        return self.name == ANY

    def path(self, version: str) -> str:
        """Return the path that asks this, as `routes` reads it."""
        name, metric = quote(self.name, safe="*"), quote(self.metric, safe="")
        root = f"/apis/{CUSTOM_GROUP}/{version}"
        if self.resource == NAMESPACES:
            return f"{root}/namespaces/{name}/metrics/{metric}"
        within = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{root}{within}/{self.resource}/{name}/{metric}"

    def parameters(self) -> list[tuple[str, str]]:
        """Return the query parameters that go with the path."""
        pairs = (("labelSelector", str(self.objects)), ("metricLabelSelector", str(self.series)))
        return [(name, value) for name, value in pairs if value]

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.metric} of {self.resource} {where}"


@dataclass(frozen=True, slots=True)
class ExternalQuestion:
    """The series of a metric that belongs to no object of the cluster."""

    namespace: str
    metric: str
    series: Selector = EVERYTHING

    def path(self, version: str) -> str:
        """Return the path that asks this, as `routes` reads it."""
        return f"/apis/{EXTERNAL_GROUP}/{version}/namespaces/{self.namespace}/{quote(self.metric, safe='')}"

    def parameters(self) -> list[tuple[str, str]]:
        """Return the query parameters that go with the path."""
        return [("labelSelector", str(self.series))] if not self.series.is_empty else []

    def __str__(self) -> str:
        return f"external metric {self.metric} in {self.namespace}"


Question = CustomQuestion | ExternalQuestion
