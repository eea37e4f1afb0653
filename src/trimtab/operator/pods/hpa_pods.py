"""What is kept of a pod: the facts that decisions read, and what tells its versions apart.

A pod is 5 to 8 KB of JSON and 4 KB as a typed object, and a cluster has a hundred thousand of them. Kept this way one
takes half a KB: pods of one workload have the same labels, owners and requests, so these are read once and shared
(docs/decisions/0150-what-is-kept-of-a-pod.md).
"""

from collections.abc import Hashable
from datetime import datetime
from sys import intern

import msgspec

from trimtab.decide.horizontal import PodSnapshot
from trimtab.decide.horizontal.observation.pods import Template, facts_of
from trimtab.decide.horizontal.observation.requests import PodRequests, asks_of
from trimtab.model.core.meta import OwnerReference
from trimtab.model.core.pod import Container, PodPhase, PodSpec, ResourceList, ResourceRequirements
from trimtab.model.json.wire import Wire
from trimtab.operator.pods.interning import (
    NOTHING,
    InternTable,
    RawJson,
    labels_in,
    owners_in,
    read,
)


class SlimPodMeta(Wire):
    """The metadata of a pod, without what may be large and decides nothing here."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: datetime | None = None
    labels: RawJson = NOTHING
    owner_references: RawJson = NOTHING

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class SlimContainer(Wire):
    """A container, as far as it asks for resources."""

    name: str = ""
    resources: RawJson = NOTHING
    restart_policy: str = ""


class SlimPodSpec(Wire):
    """The spec of a pod, as far as it asks for resources."""

    containers: tuple[SlimContainer, ...] | None = None
    init_containers: tuple[SlimContainer, ...] | None = None
    resources: RawJson = NOTHING
    overhead: RawJson = NOTHING


class PodWire(Wire):
    """A pod as it is read for scaling out: what follows from its template is left as JSON."""

    metadata: SlimPodMeta = SlimPodMeta()
    spec: SlimPodSpec = SlimPodSpec()
    status: PodPhase = PodPhase()


class CachedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod in the cache; it is its own metadata, so that nothing is kept twice."""

    facts: PodSnapshot
    namespace: str
    resource_version: str

    @property
    def metadata(self) -> "CachedPod":
        """Return what the cache tells pods and their versions apart by."""
        return self

    @property
    def name(self) -> str:
        """Return the name."""
        return self.facts.name

    @property
    def uid(self) -> str:
        """Return the uid."""
        return self.facts.uid

    @property
    def owner_references(self) -> tuple[OwnerReference, ...]:
        """Return the owners."""
        return self.facts.owners

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.facts.name}"


class PodDecoder:
    """Makes known pods of slim ones; `pod_level_resources` is the feature gate of that name."""

    def __init__(self, *, pod_level_resources: bool) -> None:
        self._pod_level_resources = pod_level_resources
        self._labels = InternTable(labels_in)
        self._owners = InternTable(owners_in)
        self._asks = InternTable(self._read_asks)

    def __call__(self, pod: PodWire) -> CachedPod:
        """Return what is kept of a pod."""
        meta = pod.metadata
        template = Template(
            self._labels.of(bytes(meta.labels), meta.labels),
            self._owners.of(bytes(meta.owner_references), meta.owner_references),
            self._asks.of(_texts(pod.spec), pod.spec),
        )
        return CachedPod(facts_of(meta, pod.status, template), intern(meta.namespace), meta.resource_version)

    def _read_asks(self, spec: SlimPodSpec) -> PodRequests:
        return asks_of(_whole(spec), pod_level_resources=self._pod_level_resources)


def _texts(spec: SlimPodSpec) -> Hashable:
    """Return everything that a spec asks for, unread."""
    return (
        bytes(spec.resources),
        bytes(spec.overhead),
        *[(one.name, bytes(one.resources)) for one in spec.containers or ()],
        *[(one.name, bytes(one.resources), one.restart_policy) for one in spec.init_containers or ()],
    )


def _whole(spec: SlimPodSpec) -> PodSpec:
    return PodSpec(
        containers=tuple(map(_container, spec.containers or ())),
        init_containers=tuple(map(_container, spec.init_containers or ())),
        resources=read(spec.resources, ResourceRequirements, None),
        overhead=read(spec.overhead, ResourceList, {}),
    )


def _container(one: SlimContainer) -> Container:
    resources = read(one.resources, ResourceRequirements, ResourceRequirements())
    return Container(name=one.name, resources=resources, restart_policy=one.restart_policy)
