"""Objects as the workload side reads them: whole templates, and the fields that running a pod needs."""

from datetime import datetime
from typing import Any

import msgspec

from trimtab.cluster.resource import Json, Resource
from trimtab.model.core.meta import Condition, ObjectMeta
from trimtab.model.core.objects import NodeStatus
from trimtab.model.core.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector, Selector, SelectorError

IntOrString = int | str


class HeldMeta(ObjectMeta):
    """Metadata with what delays a deletion."""

    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()


class RunToleration(Wire):
    """A taint that a pod puts up with; an empty key with Exists means every taint."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class RunContainer(Container):
    """A container with its image, which its status repeats."""

    image: str = ""


class RunSpec(PodSpec):
    """A pod's spec with what placing and running it needs."""

    containers: tuple[RunContainer, ...] = ()

    node_selector: dict[str, str] = {}
    tolerations: tuple[RunToleration, ...] = ()
    restart_policy: str = "Always"
    scheduling_gates: tuple[dict[str, str], ...] = ()


class RunContainerStatus(ContainerStatus):
    """A container's status as a node agent writes it."""

    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    started: bool = False


class RunStatus(PodStatus):
    """A pod's status as a node agent writes it."""

    container_statuses: tuple[RunContainerStatus, ...] = ()


class RunPod(Pod):
    """A pod as controllers, scheduler and node agent see it."""

    metadata: HeldMeta = HeldMeta()
    spec: RunSpec = RunSpec()
    status: RunStatus = RunStatus()


class RunTaint(Wire):
    """A node's refusal of pods that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class RunNodeSpec(Wire):
    """What keeps pods away from a node."""

    taints: tuple[RunTaint, ...] = ()
    unschedulable: bool = False


class RunNode(Wire):
    """A node as the scheduler and DaemonSets see it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RunNodeSpec = RunNodeSpec()
    status: NodeStatus = NodeStatus()


class RollingUpdate(Wire):
    """How fast pods are replaced; StatefulSets use the partition, the others the two limits."""

    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    partition: int = 0


class UpdateStrategy(Wire):
    """How pods are replaced by newer ones."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class Ordinals(Wire):
    """Where a StatefulSet starts to count."""

    start: int = 0


class SetSpec(Wire):
    """The fields of Deployment, ReplicaSet, StatefulSet and DaemonSet that their controllers read."""

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
    ordinals: Ordinals = Ordinals()
    service_name: str = ""


class SetCondition(Condition):
    """A condition that also says when it was last confirmed."""

    last_update_time: datetime | None = None


class SetStatus(Wire):
    """What the controllers need to know of what they wrote before."""

    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0
    collision_count: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[SetCondition, ...] = ()


class PodSet(Wire):
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SetSpec = SetSpec()
    status: SetStatus = SetStatus()

    @property
    def selector(self) -> Selector:
        """Return the compiled selector; an invalid one selects nothing."""
        return compiled(self.spec.selector)


class OldSetSpec(Wire):
    """A ReplicationController's spec, whose selector is plain labels."""

    replicas: int = 1
    selector: dict[str, str] = {}
    template: dict[str, Any] = {}
    min_ready_seconds: int = 0


class OldPodSet(Wire):
    """A ReplicationController."""

    metadata: ObjectMeta = ObjectMeta()
    spec: OldSetSpec = OldSetSpec()

    @property
    def selector(self) -> Selector:
        """Return the compiled selector."""
        return Selector.from_labels(self.spec.selector)


class RunJobSpec(Wire):
    """A Job's spec."""

    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    template: dict[str, Any] = {}


class UncountedPods(Wire):
    """Finished pods that still carry the finalizer and are not in the counts yet."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Wire):
    """A Job's status."""

    succeeded: int = 0
    failed: int = 0
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    uncounted_terminated_pods: UncountedPods = UncountedPods()
    completed_indexes: str = ""


class JobObject(Wire):
    """A Job."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RunJobSpec = RunJobSpec()
    status: JobStatus = JobStatus()


class ControllerRevision(Wire):
    """A template as it once was, so that it can be used again."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, Any] = {}
    revision: int = 0


PODS = Resource("", "v1", "pods", "Pod", RunPod)
NODES = Resource("", "v1", "nodes", "Node", RunNode, namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", PodSet)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", PodSet)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", PodSet)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", PodSet)
REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision", ControllerRevision)
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController", OldPodSet)
JOBS = Resource("batch", "v1", "jobs", "Job", JobObject)


def compiled(selector: LabelSelector | None) -> Selector:
    """Compile a selector; the API server refuses invalid ones, so one that is selects nothing."""
    try:
        return Selector.from_label_selector(selector)
    except SelectorError:
        return Selector(selects_nothing=True)


def owner_reference(resource: Resource[Any], meta: ObjectMeta) -> Json:
    """Return the reference by which an object controls what it makes."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
