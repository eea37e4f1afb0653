"""Objects as the lab's controllers and nodes read them, and their resources.

They have more fields than those of `model.core`: pod templates as a whole, and what running a pod needs.
"""

from datetime import datetime
from math import ceil, floor
from typing import Any

import msgspec

from trimtab.cluster.resource import Json, Resource
from trimtab.model.core.meta import Condition, ObjectMeta
from trimtab.model.core.objects import Node
from trimtab.model.core.pod import Container, ContainerStatus, Pod, PodStatus
from trimtab.model.core.scheduling import PlacedSpec
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError

IntOrString = int | str


class LabPodMeta(ObjectMeta):
    """Metadata with the fields that delay a deletion."""

    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()


class LabContainer(Container):
    """A container with its image."""

    image: str = ""


class LabPodSpec(PlacedSpec):
    """A pod's spec with the fields that scheduler and kubelet need."""

    containers: tuple[LabContainer, ...] = ()
    restart_policy: str = "Always"
    scheduling_gates: tuple[dict[str, str], ...] = ()


class LabContainerStatus(ContainerStatus):
    """A container's status as a kubelet writes it."""

    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    started: bool = False


class LabPodStatus(PodStatus):
    """A pod's status as a kubelet writes it."""

    container_statuses: tuple[LabContainerStatus, ...] = ()


class LabPod(Pod):
    """A pod as controllers, scheduler and kubelet read it."""

    metadata: LabPodMeta = LabPodMeta()
    spec: LabPodSpec = LabPodSpec()
    status: LabPodStatus = LabPodStatus()


class RollingUpdate(Wire):
    """How fast pods are replaced. Only StatefulSets have a partition."""

    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    partition: int = 0


class UpdateStrategy(Wire):
    """How pods of an older template are replaced."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class StatefulSetOrdinals(Wire):
    """The first ordinal of a StatefulSet."""

    start: int = 0


class LabWorkloadSpec(Wire):
    """The spec of a Deployment, ReplicaSet, StatefulSet or DaemonSet, as far as controllers read it."""

    replicas: int = 1
    selector: LabelSelector | None = None
    template: dict[str, Any] = {}
    min_ready_seconds: int = 0
    paused: bool = False
    strategy: UpdateStrategy = UpdateStrategy()
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int = 10
    progress_deadline_seconds: int = 600
    pod_management_policy: str = "OrderedReady"
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    service_name: str = ""


class WorkloadCondition(Condition):
    """A condition with the time of its last update."""

    last_update_time: datetime | None = None


class LabWorkloadStatus(Wire):
    """The status of a workload, as far as controllers read it."""

    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0
    collision_count: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[WorkloadCondition, ...] = ()


class LabWorkload(Wire):
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LabWorkloadSpec = LabWorkloadSpec()
    status: LabWorkloadStatus = LabWorkloadStatus()

    @property
    def selector(self) -> Selector:
        return compile_selector(self.spec.selector)


class LabReplicationControllerSpec(Wire):
    """A ReplicationController's spec. Its selector is plain labels."""

    replicas: int = 1
    selector: dict[str, str] = {}
    template: dict[str, Any] = {}
    min_ready_seconds: int = 0


class LabReplicationController(Wire):
    """A ReplicationController."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LabReplicationControllerSpec = LabReplicationControllerSpec()

    @property
    def selector(self) -> Selector:
        return Selector.from_labels(self.spec.selector)


class LabJobSpec(Wire):
    """A Job's spec."""

    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    template: dict[str, Any] = {}


class UncountedTerminatedPods(Wire):
    """UIDs of finished pods that have the Job's finalizer and are not counted yet."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class LabJobStatus(Wire):
    """A Job's status."""

    succeeded: int = 0
    failed: int = 0
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    uncounted_terminated_pods: UncountedTerminatedPods = UncountedTerminatedPods()
    completed_indexes: str = ""


class LabJob(Wire):
    """A Job."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LabJobSpec = LabJobSpec()
    status: LabJobStatus = LabJobStatus()


class ControllerRevision(Wire):
    """A pod template at one revision of a StatefulSet or DaemonSet."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, Any] = {}
    revision: int = 0


PODS = Resource("", "v1", "pods", "Pod", LabPod)
NODES = Resource("", "v1", "nodes", "Node", Node, namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", LabWorkload)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", LabWorkload)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", LabWorkload)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", LabWorkload)
REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision", ControllerRevision)
REPLICATION_CONTROLLERS = Resource(
    "", "v1", "replicationcontrollers", "ReplicationController", LabReplicationController
)
JOBS = Resource("batch", "v1", "jobs", "Job", LabJob)


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compile a selector. An invalid one, which the API server rejects, selects nothing."""
    try:
        return Selector.from_label_selector(selector)
    except SelectorError:
        return Selector(selects_nothing=True)


def owner_reference(resource: Resource[Any], meta: ObjectMeta) -> Json:
    """Return the owner reference of a controller for the objects that it creates."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def scaled_value(value: IntOrString | None, total: int, *, rounds_up: bool) -> int:
    """Return the number, or the percentage of `total`. Without a value it is 1."""
    if value is None:
        return 1
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        return int(value)
    share = int(value[:-1]) * total / 100
    return ceil(share) if rounds_up else floor(share)
