"""Pods as they are decoded from JSON.

Parts that the pods of a workload have in common stay text, because an `InternTable` decodes equal text once.
"""

from datetime import datetime

from trimtab.cluster.resource import PODS
from trimtab.model.core.pod import ContainerState, PodPhase
from trimtab.model.json.wire import Wire
from trimtab.operator.pods.interning import NOTHING, RawJson


class PodMetaWire(Wire):
    """The metadata of a pod, without what may be large and decides nothing about replicas."""

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


class ContainerWire(Wire):
    """A container, as far as it requests resources."""

    name: str = ""
    resources: RawJson = NOTHING
    restart_policy: str = ""


class PodSpecWire(Wire):
    """The spec of a pod, as far as it requests resources."""

    node_name: str = ""
    containers: tuple[ContainerWire, ...] | None = None
    init_containers: tuple[ContainerWire, ...] | None = None
    resources: RawJson = NOTHING
    overhead: RawJson = NOTHING


class PodWire(Wire):
    """A pod, as far as horizontal decisions read it."""

    metadata: PodMetaWire = PodMetaWire()
    spec: PodSpecWire = PodSpecWire()
    status: PodPhase = PodPhase()


class WholeMetaWire(PodMetaWire, frozen=True):
    """The metadata of a pod."""

    generate_name: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    annotations: RawJson = NOTHING


class WholeContainerWire(ContainerWire, frozen=True):
    """A container."""

    resize_policy: RawJson = NOTHING


class WholeSpecWire(Wire):
    """The spec of a pod."""

    node_name: str = ""
    containers: tuple[WholeContainerWire, ...] | None = None
    init_containers: tuple[WholeContainerWire, ...] | None = None
    resources: RawJson = NOTHING
    overhead: RawJson = NOTHING
    affinity: RawJson = NOTHING


class ContainerStatusWire(Wire):
    """The status of a container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    resources: RawJson = NOTHING
    allocated_resources: RawJson = NOTHING


class WholeStatusWire(PodPhase, frozen=True):
    """The status of a pod."""

    container_statuses: tuple[ContainerStatusWire, ...] = ()
    resize: str = ""


class WholePodWire(Wire):
    """A pod, as far as any decision reads it."""

    metadata: WholeMetaWire = WholeMetaWire()
    spec: WholeSpecWire = WholeSpecWire()
    status: WholeStatusWire = WholeStatusWire()


SLIM_PODS = PODS.into(PodWire)
WHOLE_PODS = PODS.into(WholePodWire)
