"""Parts that Kubernetes objects share: metadata, owners, conditions and references."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from trimtab.model.json.wire import Json, Wire, without_members


class NamespacedName(NamedTuple):
    """The namespace and the name of an object."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "NamespacedName":
        """Return the two parts of `namespace/name`."""
        namespace, _, name = text.partition("/")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class OwnerReference(Wire):
    """The owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False

    @property
    def group(self) -> str:
        """Return the API group, empty for the core group."""
        return group_of(self.api_version)


class ObjectMeta(Wire):
    """The part of metadata that decisions and writes need."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> str:
        """Return `namespace/name`, or the name alone for a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def namespaced_name(self) -> NamespacedName:
        """Return the namespace and the name."""
        return NamespacedName(self.namespace, self.name)


class ListMeta(Wire):
    """The metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int = 0


class Condition(Wire):
    """One observed fact about an object (the shape shared by pods, HPAs and VPAs)."""

    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class CrossVersionObjectReference(Wire):
    """A reference to an object in the same namespace, by kind and name."""

    kind: str = ""
    name: str = ""
    api_version: str = ""

    @property
    def group(self) -> str:
        """Return the API group, empty for the core group."""
        return group_of(self.api_version)

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def group_of(api_version: str) -> str:
    """Return the group of `group/version`, empty for the core group."""
    return api_version.rpartition("/")[0]


def annotations_of(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations of an object's JSON."""
    return (data.get("metadata") or {}).get("annotations") or {}


def replace_annotations(data: Mapping[str, Any], annotations: Mapping[str, str]) -> Json:
    """Return an object's JSON with these annotations and no others."""
    metadata = without_members(data.get("metadata") or {}, ("annotations",))
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {**data, "metadata": metadata}
