"""What the lab serves: resources as data, found by group, version and plural name.

Built-in resources are listed in `builtin`; custom ones are added and removed as their definitions come and go.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trimtab.model.status import MODIFIED, StatusError, conflict, not_found, qualified
from trimtab_lab.kinds.strategy import Strategy
from trimtab_lab.schemas.shapes import ANY, Shape, shape_of_kind

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class TableColumn:
    """A printer column: header, JSON path of the value, type and format."""

    name: str
    path: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""


@dataclass(frozen=True)
class ScalePaths:
    """The JSON paths of a custom resource's scale."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True, eq=False)
class ServedResource:
    """A resource: its names, its versions and its rules."""

    group: str
    plural: str
    kind: str
    versions: tuple[str, ...] = ("v1",)
    is_namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    has_generation: bool = False
    strategy: Strategy = field(default_factory=Strategy)
    singular_name: str = ""
    list_kind_name: str = ""
    storage_name: str = ""
    storage_group_name: str | None = None
    storage_version_name: str = ""
    shapes: dict[str, Shape] = field(default_factory=dict)
    columns: dict[str, tuple[TableColumn, ...]] = field(default_factory=dict)
    scales: dict[str, ScalePaths] = field(default_factory=dict)
    #: The structural schema of each version of a custom resource; empty for built-in ones.
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_custom: bool = False

    @property
    def singular(self) -> str:
        return self.singular_name or self.kind.lower()

    @property
    def list_kind(self) -> str:
        return self.list_kind_name or self.kind + "List"

    @property
    def storage(self) -> str:
        """Return the name under which the objects are stored."""
        return self.storage_name or qualified(self.plural, self.group)

    @property
    def storage_group(self) -> str:
        """Return the group in whose form objects are stored. Events of both groups share one."""
        return self.group if self.storage_group_name is None else self.storage_group_name

    @property
    def storage_version(self) -> str:
        """Return the version in which objects are stored."""
        return self.storage_version_name or self.versions[0]

    @property
    def storage_api_version(self) -> str:
        """Return the `apiVersion` of stored objects."""
        return f"{self.storage_group}/{self.storage_version}" if self.storage_group else self.storage_version

    def stores(self, version: str) -> bool:
        """Return whether objects are stored in this version of the resource's own group."""
        return (self.group, version) == (self.storage_group, self.storage_version)

    @property
    def has_status(self) -> bool:
        """Return whether status is written through a subresource."""
        return "status" in self.subresources

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def not_found(self, name: str) -> StatusError:
        """Return the error for an object that does not exist."""
        return not_found(self.plural, self.group, name)

    def conflict(self, name: str, reason: str = MODIFIED) -> StatusError:
        """Return the error for an object that changed since the client read it."""
        return conflict(self.plural, self.group, name, reason)

    def shape(self, version: str) -> Shape:
        if self.is_custom:
            return self.shapes.get(version, ANY)
        return shape_of_kind(self.group, version, self.kind)


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Order versions as Kubernetes prefers them: v2, v1, v2beta1, v1alpha1, then the rest by name."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), version)


class Registry:
    """The resources served now."""

    def __init__(self, resources: tuple[ServedResource, ...]) -> None:
        self._resources: dict[tuple[str, str], ServedResource] = {}
        self._served: dict[tuple[str, str, str], ServedResource] = {}
        #: Changes whenever the set of resources does, so that discovery and OpenAPI can be cached.
        self.generation = 0
        for resource in resources:
            self.add(resource)

    def add(self, resource: ServedResource) -> None:
        """Serve a resource, replacing an earlier form of it."""
        self.remove(resource.group, resource.plural)
        self._resources[(resource.group, resource.plural)] = resource
        for version in resource.versions:
            self._served[(resource.group, version, resource.plural)] = resource
        self.generation += 1

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a resource."""
        resource = self._resources.pop((group, plural), None)
        if resource is not None:
            for version in resource.versions:
                del self._served[(group, version, plural)]
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        return self._served.get((group, version, plural))

    def get(self, group: str, plural: str) -> ServedResource | None:
        return self._resources.get((group, plural))

    def by_storage(self, storage: str) -> ServedResource | None:
        """Return the resource whose objects are stored under a name."""
        return next((resource for resource in self if resource.storage == storage), None)

    def by_kind(self, group: str, kind: str) -> ServedResource | None:
        listed = (resource for resource in self if "list" in resource.verbs)
        return next(
            (resource for resource in listed if (resource.group, resource.kind) == (group, kind)), None
        )

    def __iter__(self) -> Iterator[ServedResource]:
        yield from list(self._resources.values())

    def groups(self) -> dict[str, list[str]]:
        """Return the versions of each group, preferred first."""
        groups: dict[str, set[str]] = {}
        for group, version, _ in self._served:
            groups.setdefault(group, set()).add(version)
        return {group: sorted(versions, key=version_rank) for group, versions in groups.items()}

    def in_version(self, group: str, version: str) -> list[ServedResource]:
        served = [resource for (g, v, _), resource in self._served.items() if (g, v) == (group, version)]
        return sorted(served, key=lambda resource: resource.plural)
