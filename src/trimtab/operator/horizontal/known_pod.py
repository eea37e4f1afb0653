"""What is kept of a pod: the facts that decisions read, and what tells its versions apart.

A pod is 5 to 8 KB of JSON and 4 KB as a typed object, and a cluster has a hundred thousand of them. Kept this way one
takes half a KB: pods of one workload have the same labels, owners and requests, so these are read once and shared
(docs/decisions/0150-what-is-kept-of-a-pod.md).
"""

from collections.abc import Callable, Hashable
from datetime import datetime
from sys import intern
from typing import Generic, TypeVar

import msgspec

from trimtab.decide.horizontal import PodFacts
from trimtab.decide.horizontal.pods import Template, facts_of
from trimtab.decide.horizontal.requests import Asks, asks_of
from trimtab.model import wire
from trimtab.model.meta import OwnerReference
from trimtab.model.pod import Container, PodPhase, PodSpec
from trimtab.model.resources import ResourceList, ResourceRequirements
from trimtab.model.wire import Wire

D = TypeVar("D")
S = TypeVar("S")
V = TypeVar("V")
Text = msgspec.Raw
"""JSON that is not read yet: most of it was read before, in another pod of the same workload."""

NOTHING = Text()
_ABSENT = frozenset({b"", b"null"})
MOST_SHARED = 8192
"""Distinct values of one kind that are remembered; beyond twice as many, the ones seen longest ago are let go."""


class SlimPodMeta(Wire):
    """The metadata of a pod, without what may be large and decides nothing here."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: datetime | None = None
    labels: Text = NOTHING
    owner_references: Text = NOTHING

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class SlimContainer(Wire):
    """A container, as far as it asks for resources."""

    name: str = ""
    resources: Text = NOTHING
    restart_policy: str = ""


class SlimPodSpec(Wire):
    """The spec of a pod, as far as it asks for resources."""

    containers: tuple[SlimContainer, ...] | None = None
    init_containers: tuple[SlimContainer, ...] | None = None
    resources: Text = NOTHING
    overhead: Text = NOTHING


class SlimPod(Wire):
    """A pod as it is read for scaling out: what follows from its template is left as JSON."""

    metadata: SlimPodMeta = SlimPodMeta()
    spec: SlimPodSpec = SlimPodSpec()
    status: PodPhase = PodPhase()


class KnownPod(msgspec.Struct, frozen=True, gc=False):
    """A pod in the cache; it is its own metadata, so that nothing is kept twice."""

    facts: PodFacts
    namespace: str
    resource_version: str

    @property
    def metadata(self) -> "KnownPod":
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


class Shared(Generic[S, V]):
    """Values by what they are read from, each read and kept once.

    It saves memory and work, and nothing depends on it: it may forget at any time.
    """

    def __init__(self, read: Callable[[S], V], most: int = MOST_SHARED) -> None:
        self._read = read
        self._most = most
        self._recent: dict[Hashable, V] = {}
        self._older: dict[Hashable, V] = {}

    def of(self, key: Hashable, source: S) -> V:
        """Return what `source` says; equal keys stand for equal sources."""
        found = self._recent.get(key)
        return self._remember(key, source) if found is None else found

    def _remember(self, key: Hashable, source: S) -> V:
        known = self._older.get(key)
        value = self._read(source) if known is None else known
        if len(self._recent) >= self._most:
            self._older, self._recent = self._recent, {}
        self._recent[key] = value
        return value


class PodReader:
    """Makes known pods of slim ones; `pod_level_resources` is the feature gate of that name."""

    def __init__(self, *, pod_level_resources: bool) -> None:
        self._pod_level_resources = pod_level_resources
        self._labels = Shared(_labels)
        self._owners = Shared(_owners)
        self._asks = Shared(self._read_asks)

    def __call__(self, pod: SlimPod) -> KnownPod:
        """Return what is kept of a pod."""
        meta = pod.metadata
        template = Template(
            self._labels.of(bytes(meta.labels), meta.labels),
            self._owners.of(bytes(meta.owner_references), meta.owner_references),
            self._asks.of(_texts(pod.spec), pod.spec),
        )
        return KnownPod(facts_of(meta, pod.status, template), intern(meta.namespace), meta.resource_version)

    def _read_asks(self, spec: SlimPodSpec) -> Asks:
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
        resources=_read(spec.resources, ResourceRequirements, None),
        overhead=_read(spec.overhead, ResourceList, {}),
    )


def _container(one: SlimContainer) -> Container:
    resources = _read(one.resources, ResourceRequirements, ResourceRequirements())
    return Container(name=one.name, resources=resources, restart_policy=one.restart_policy)


def _labels(text: Text) -> dict[str, str]:
    return _read(text, dict[str, str], {})


def _owners(text: Text) -> tuple[OwnerReference, ...]:
    return _read(text, tuple[OwnerReference, ...], ())


def _read(text: Text, kind: type[V], absent: D) -> V | D:
    """Read JSON; what is not there, or is null, is absent."""
    return absent if bytes(text) in _ABSENT else wire.decode(bytes(text), kind)
