"""Decodes pods whole, as far as any decision reads them, for processes with a vertical component.

Pods of one workload share their labels, owners and resources, and of annotations only those that decisions read are kept
(docs/decisions/cache-only-needed-pod-fields-and-stream-lists.md).
"""

from collections.abc import Hashable
from sys import intern

from trimtab.cluster.resource import TransformedResource
from trimtab.decide.vertical.admission.patches import IN_PLACE_ANNOTATION
from trimtab.decide.vertical.admission.pod_annotations import (
    BOOST_PREFIX,
    OBSERVED_CONTAINERS_ANNOTATION,
    ORIGINALS_ANNOTATION,
)
from trimtab.decide.vertical.admission.startup_boost import READY
from trimtab.decide.vertical.control.role_labels import LABEL_ANNOTATION, LEASE_ANNOTATION, OTHERS_ANNOTATION
from trimtab.decide.vertical.update.refused_replacements import REFUSED_ANNOTATION
from trimtab.decide.vertical.update.resize.annotation import RESIZE_ANNOTATION
from trimtab.decide.vertical.update.resize.status import RESIZE_IN_PROGRESS, RESIZE_PENDING
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.pod import (
    Affinity,
    Container,
    ContainerResizePolicy,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
)
from trimtab.model.json import wire
from trimtab.operator.pods.amounts import decode_amounts, decode_requirements
from trimtab.operator.pods.interning import InternTable, RawJson, decode, decode_labels, decode_owners
from trimtab.operator.pods.wire import (
    WHOLE_PODS,
    ContainerStatusWire,
    WholeContainerWire,
    WholeMetaWire,
    WholePodWire,
    WholeSpecWire,
    WholeStatusWire,
)

_CONDITIONS = frozenset({READY, RESIZE_PENDING, RESIZE_IN_PROGRESS})
"""The conditions of a pod that decisions read."""

_ANNOTATIONS = frozenset(
    {
        IN_PLACE_ANNOTATION,
        LABEL_ANNOTATION,
        LEASE_ANNOTATION,
        OBSERVED_CONTAINERS_ANNOTATION,
        ORIGINALS_ANNOTATION,
        OTHERS_ANNOTATION,
        REFUSED_ANNOTATION,
        RESIZE_ANNOTATION,
    }
)
"""The annotations of a pod that decisions read, beside those that begin with `BOOST_PREFIX`."""
_MARKS = (b"vpa", b"trimtab.dev", b"\\u")
"""Annotations without any of these texts have none of the names. A name could be spelt with \\u."""
_NO_ANNOTATIONS: dict[str, str] = {}


class WholePodDecoder:
    """Decodes pods. Equal parts become one object."""

    def __init__(self) -> None:
        self._labels = InternTable(decode_labels)
        self._owners = InternTable(decode_owners)
        self._annotations = InternTable[dict[str, str], dict[str, str]](lambda annotations: annotations)
        self._containers = InternTable(_decode_containers)
        self._spec_parts = InternTable(_decode_spec_parts)
        self._requirements = InternTable(_decode_requirements)
        self._amounts = InternTable(decode_amounts)

    def __call__(self, pod: WholePodWire) -> Pod:
        """Return the pod as it is cached."""
        return Pod(
            metadata=self._meta(pod.metadata), spec=self._spec(pod.spec), status=self._status(pod.status)
        )

    def _meta(self, meta: WholeMetaWire) -> ObjectMeta:
        return ObjectMeta(
            name=meta.name,
            generate_name=intern(meta.generate_name),
            namespace=intern(meta.namespace),
            uid=meta.uid,
            resource_version=meta.resource_version,
            generation=meta.generation,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
            labels=self._labels.of(bytes(meta.labels), meta.labels),
            annotations=self._read_annotations(bytes(meta.annotations)),
            owner_references=self._owners.of(bytes(meta.owner_references), meta.owner_references),
        )

    def _read_annotations(self, text: bytes) -> dict[str, str]:
        # Other programs write annotations that differ per pod (addresses, times), so the text is no key for sharing.
        if not any(mark in text for mark in _MARKS):
            return _NO_ANNOTATIONS
        annotations = {
            name: value
            for name, value in wire.decode(text, dict[str, str]).items()
            if name in _ANNOTATIONS or name.startswith(BOOST_PREFIX)
        }
        return self._annotations.of(tuple(annotations.items()), annotations)

    def _spec(self, spec: WholeSpecWire) -> PodSpec:
        resources, overhead, affinity = self._spec_parts.of(
            (bytes(spec.resources), bytes(spec.overhead), bytes(spec.affinity)), spec
        )
        containers, init_containers = spec.containers or (), spec.init_containers or ()
        return PodSpec(
            node_name=intern(spec.node_name),
            containers=self._containers.of(_container_texts(containers), containers),
            init_containers=self._containers.of(_container_texts(init_containers), init_containers),
            resources=resources,
            overhead=overhead,
            affinity=affinity,
        )

    def _status(self, status: WholeStatusWire) -> PodStatus:
        return PodStatus(
            phase=intern(status.phase),
            reason=status.reason,
            conditions=tuple(condition for condition in status.conditions if condition.type in _CONDITIONS),
            start_time=status.start_time,
            container_statuses=tuple(map(self._container_status, status.container_statuses)),
            resize=status.resize,
        )

    def _container_status(self, status: ContainerStatusWire) -> ContainerStatus:
        return ContainerStatus(
            name=intern(status.name),
            ready=status.ready,
            restart_count=status.restart_count,
            state=status.state,
            last_state=status.last_state,
            resources=self._requirements.of(bytes(status.resources), status.resources),
            allocated_resources=self._amounts.of(
                bytes(status.allocated_resources), status.allocated_resources
            ),
        )


def whole_pods() -> TransformedResource[Pod]:
    """Return the resource that caches pods whole."""
    return WHOLE_PODS.with_transform(WholePodDecoder())


def _decode_containers(containers: tuple[WholeContainerWire, ...]) -> tuple[Container, ...]:
    return tuple(map(_decode_container, containers))


def _decode_container(container: WholeContainerWire) -> Container:
    return Container(
        name=intern(container.name),
        resources=decode_requirements(container.resources, ResourceRequirements()),
        restart_policy=container.restart_policy,
        resize_policy=decode(container.resize_policy, tuple[ContainerResizePolicy, ...], ()),
    )


def _decode_requirements(text: RawJson) -> ResourceRequirements | None:
    return decode_requirements(text, None)


def _decode_spec_parts(
    spec: WholeSpecWire,
) -> tuple[ResourceRequirements | None, ResourceList, Affinity | None]:
    return (
        _decode_requirements(spec.resources),
        decode_amounts(spec.overhead),
        decode(spec.affinity, Affinity, None),
    )


def _container_texts(containers: tuple[WholeContainerWire, ...]) -> Hashable:
    return tuple(
        (
            container.name,
            bytes(container.resources),
            container.restart_policy,
            bytes(container.resize_policy),
        )
        for container in containers
    )
