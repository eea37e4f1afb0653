"""Decodes pods into the snapshots that horizontal decisions read.

A pod is 5 to 8 KB of JSON and 4 KB as a typed object. A `CachedPod` takes half a KB, because pods of one workload
share their labels, owners and requests (docs/decisions/cache-only-needed-pod-fields-and-stream-lists.md).
"""

from collections.abc import Hashable
from sys import intern

import msgspec

from trimtab.decide.horizontal.observation.pods import PodSnapshot, SharedPodFields, build_snapshot
from trimtab.decide.horizontal.observation.requests import PodRequests, pod_requests
from trimtab.model.core.meta import OwnerReference
from trimtab.model.core.pod import Container, Pod, PodSpec, ResourceRequirements
from trimtab.operator.pods.amounts import decode_amounts, decode_requirements
from trimtab.operator.pods.interning import InternTable, decode_labels, decode_owners
from trimtab.operator.pods.wire import ContainerWire, PodSpecWire, PodWire


class CachedPod(msgspec.Struct, frozen=True, gc=False):
    """A cached pod. It is its own metadata, so that no value is stored twice."""

    facts: PodSnapshot
    namespace: str
    resource_version: str

    @property
    def metadata(self) -> "CachedPod":
        """Return the metadata that an informer reads."""
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
    """Reduces decoded pods to `CachedPod`.

    `pod_level_resources` is the feature gate of that name. `keeps_nodes` says whether a pod filter needs nodes.
    """

    def __init__(self, *, pod_level_resources: bool, keeps_nodes: bool = False) -> None:
        self._pod_level_resources = pod_level_resources
        self._keeps_nodes = keeps_nodes
        self._labels = InternTable(decode_labels)
        self._owners = InternTable(decode_owners)
        self._requests = InternTable(self._decode_requests)

    def __call__(self, pod: PodWire) -> CachedPod:
        """Return the pod as it is cached."""
        meta = pod.metadata
        template = SharedPodFields(
            self._labels.of(bytes(meta.labels), meta.labels),
            self._owners.of(bytes(meta.owner_references), meta.owner_references),
            self._requests.of(_resource_texts(pod.spec), pod.spec),
        )
        node = intern(pod.spec.node_name) if self._keeps_nodes else ""
        return CachedPod(
            build_snapshot(meta, pod.status, template, node), intern(meta.namespace), meta.resource_version
        )

    def _decode_requests(self, spec: PodSpecWire) -> PodRequests:
        return pod_requests(_decode_spec(spec), pod_level_resources=self._pod_level_resources)


class PodReducer:
    """Reduces whole pods to `CachedPod`, where a vertical component keeps pods whole."""

    def __init__(self, *, pod_level_resources: bool, keeps_nodes: bool = False) -> None:
        self._pod_level_resources = pod_level_resources
        self._keeps_nodes = keeps_nodes
        self._requests = InternTable(self._read_requests, size_of=lambda _, spec: _size_of_spec(spec))

    def __call__(self, pod: Pod) -> CachedPod:
        """Return the snapshot of a pod."""
        meta, spec = pod.metadata, pod.spec
        # Equal parts of whole pods are one object. The table keeps the objects, so their ids stay valid.
        key = (id(spec.containers), id(spec.init_containers), id(spec.resources), id(spec.overhead))
        requests, *_ = self._requests.of(key, spec)
        template = SharedPodFields(meta.labels, meta.owner_references, requests)
        node = spec.node_name if self._keeps_nodes else ""
        return CachedPod(
            build_snapshot(meta, pod.status, template, node), meta.namespace, meta.resource_version
        )

    def _read_requests(self, spec: PodSpec) -> tuple[PodRequests, object]:
        parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead)
        return pod_requests(spec, pod_level_resources=self._pod_level_resources), parts


def _size_of_spec(spec: PodSpec) -> int:
    """Estimate the bytes that the resources of a spec take, and the requests that are read from them."""
    requirements = [container.resources for container in (*spec.containers, *spec.init_containers)]
    if spec.resources is not None:
        requirements.append(spec.resources)
    amounts = len(spec.overhead) + sum(len(part.requests) + len(part.limits) for part in requirements)
    return 512 * (1 + len(requirements) + amounts)


def _resource_texts(spec: PodSpecWire) -> Hashable:
    return (
        bytes(spec.resources),
        bytes(spec.overhead),
        *[(container.name, bytes(container.resources)) for container in spec.containers or ()],
        *[
            (container.name, bytes(container.resources), container.restart_policy)
            for container in spec.init_containers or ()
        ],
    )


def _decode_spec(spec: PodSpecWire) -> PodSpec:
    return PodSpec(
        containers=tuple(map(_decode_container, spec.containers or ())),
        init_containers=tuple(map(_decode_container, spec.init_containers or ())),
        resources=decode_requirements(spec.resources, None),
        overhead=decode_amounts(spec.overhead),
    )


def _decode_container(container: ContainerWire) -> Container:
    resources = decode_requirements(container.resources, ResourceRequirements())
    return Container(name=container.name, resources=resources, restart_policy=container.restart_policy)
