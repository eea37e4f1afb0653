"""Pods as the vertical loops keep them: whole as far as they are read, and what the pods of a workload share, once.

Labels, owners, annotations and resources stay JSON text while a pod is decoded. Pods of one workload have the same
text, so it is read once, and what it says is one object for all of them (docs/decisions/0150-what-is-kept-of-a-pod.md).
"""

from collections.abc import Hashable
from datetime import datetime
from sys import intern

from trimtab.cluster.resource import PODS, TransformedResource
from trimtab.decide.vertical.admission.startup_boost import READY
from trimtab.decide.vertical.update.resize.status import RESIZE_IN_PROGRESS, RESIZE_PENDING
from trimtab.model.core.meta import ObjectMeta
from trimtab.model.core.pod import (
    Affinity,
    Container,
    ContainerResizePolicy,
    ContainerState,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
)
from trimtab.model.json.wire import Wire
from trimtab.operator.pods.interning import (
    NOTHING,
    InternTable,
    RawJson,
    labels_in,
    owners_in,
    read,
)

_CONDITIONS = frozenset({READY, RESIZE_PENDING, RESIZE_IN_PROGRESS})
"""Of a pod's conditions the ones that any vertical decision asks about."""


class _Meta(Wire):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: RawJson = NOTHING
    annotations: RawJson = NOTHING
    owner_references: RawJson = NOTHING

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class _Container(Wire):
    name: str = ""
    resources: RawJson = NOTHING
    restart_policy: str = ""
    resize_policy: RawJson = NOTHING


class _Spec(Wire):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    resources: RawJson = NOTHING
    overhead: RawJson = NOTHING
    affinity: RawJson = NOTHING


class _ContainerStatus(Wire):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    resources: RawJson = NOTHING
    allocated_resources: RawJson = NOTHING


class _Status(Wire):
    phase: str = ""
    reason: str = ""
    conditions: tuple[PodCondition, ...] = ()
    start_time: datetime | None = None
    container_statuses: tuple[_ContainerStatus, ...] = ()
    resize: str = ""


class RawPod(Wire):
    """A pod of which only what differs from pod to pod is read."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class VpaPodDecoder:
    """Makes pods of raw ones; what was read before is not read again."""

    def __init__(self) -> None:
        self._labels = InternTable(labels_in)
        self._owners = InternTable(owners_in)
        self._containers = InternTable(_containers)
        self._spec_parts = InternTable(_parts)
        self._requirements = InternTable(_requirements)
        self._amounts = InternTable(_amounts)

    def __call__(self, pod: RawPod) -> Pod:
        """Return the pod."""
        return Pod(
            metadata=self._meta(pod.metadata), spec=self._spec(pod.spec), status=self._status(pod.status)
        )

    def _meta(self, meta: _Meta) -> ObjectMeta:
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
            annotations=self._labels.of(bytes(meta.annotations), meta.annotations),
            owner_references=self._owners.of(bytes(meta.owner_references), meta.owner_references),
        )

    def _spec(self, spec: _Spec) -> PodSpec:
        resources, overhead, affinity = self._spec_parts.of(
            (bytes(spec.resources), bytes(spec.overhead), bytes(spec.affinity)), spec
        )
        return PodSpec(
            node_name=intern(spec.node_name),
            containers=self._containers.of(_texts(spec.containers), spec.containers),
            init_containers=self._containers.of(_texts(spec.init_containers), spec.init_containers),
            resources=resources,
            overhead=overhead,
            affinity=affinity,
        )

    def _status(self, status: _Status) -> PodStatus:
        return PodStatus(
            phase=intern(status.phase),
            reason=status.reason,
            conditions=tuple(one for one in status.conditions if one.type in _CONDITIONS),
            start_time=status.start_time,
            container_statuses=tuple(map(self._container_status, status.container_statuses)),
            resize=status.resize,
        )

    def _container_status(self, one: _ContainerStatus) -> ContainerStatus:
        return ContainerStatus(
            name=intern(one.name),
            ready=one.ready,
            restart_count=one.restart_count,
            state=one.state,
            last_state=one.last_state,
            resources=self._requirements.of(bytes(one.resources), one.resources),
            allocated_resources=self._amounts.of(bytes(one.allocated_resources), one.allocated_resources),
        )


def shared_pods() -> TransformedResource[Pod]:
    """Return pods as a cache should keep them for the vertical loops."""
    return PODS.into(RawPod).kept_as(VpaPodDecoder())


def _containers(containers: tuple[_Container, ...]) -> tuple[Container, ...]:
    return tuple(map(_container, containers))


def _requirements(text: RawJson) -> ResourceRequirements | None:
    return read(text, ResourceRequirements, None)


def _amounts(text: RawJson) -> ResourceList:
    return read(text, ResourceList, {})


def _parts(spec: _Spec) -> tuple[ResourceRequirements | None, ResourceList, Affinity | None]:
    return (
        _requirements(spec.resources),
        _amounts(spec.overhead),
        read(spec.affinity, Affinity, None),
    )


def _container(one: _Container) -> Container:
    return Container(
        name=intern(one.name),
        resources=read(one.resources, ResourceRequirements, ResourceRequirements()),
        restart_policy=one.restart_policy,
        resize_policy=read(one.resize_policy, tuple[ContainerResizePolicy, ...], ()),
    )


def _texts(containers: tuple[_Container, ...]) -> Hashable:
    return tuple(
        (one.name, bytes(one.resources), one.restart_policy, bytes(one.resize_policy)) for one in containers
    )
