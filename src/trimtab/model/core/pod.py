"""Pods and their resources, with the fields that autoscaling reads."""

from datetime import datetime

from trimtab.model.core.meta import Condition, ObjectMeta
from trimtab.model.json.wire import Wire
from trimtab.model.quantity import Quantity

ResourceList = dict[str, Quantity]

CPU = "cpu"
MEMORY = "memory"


class ResourceClaim(Wire):
    """A reference of a container to one of its pod's resource claims (DRA)."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Wire):
    """The requests and limits of a container or pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaim, ...] = ()


class ContainerResizePolicy(Wire):
    """Whether an in-place resize of one resource restarts the container."""

    resource_name: str = ""
    restart_policy: str = ""


class Container(Wire):
    """A container of a pod's spec. Only init containers that are sidecars have a `restart_policy`."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    resize_policy: tuple[ContainerResizePolicy, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """Return whether this init container runs beside the main containers."""
        return self.restart_policy == "Always"


class NodeSelectorRequirement(Wire):
    """One requirement on a node's labels or fields."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire):
    """Requirements that must hold together."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire):
    """Terms, at least one of which must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NodeAffinity(Wire):
    """Where the scheduler must put a pod. The DaemonSet controller names the node here."""

    required_during_scheduling_ignored_during_execution: NodeSelector = NodeSelector()


class Affinity(Wire):
    """Scheduling constraints."""

    node_affinity: NodeAffinity = NodeAffinity()


class PodSpec(Wire):
    """The spec of a pod."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    affinity: Affinity | None = None


class ContainerStateRunning(Wire):
    """A container that runs."""

    started_at: datetime | None = None


class ContainerStateTerminated(Wire):
    """A container that ended."""

    exit_code: int = 0
    reason: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerStateWaiting(Wire):
    """A container that has not started."""

    reason: str = ""


class ContainerState(Wire):
    """At most one of the three is set."""

    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class ContainerStatus(Wire):
    """The status of a container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodCondition(Condition, frozen=True):
    """A condition of a pod, and the generation of the spec that it describes."""

    observed_generation: int | None = None


class PodPhase(Wire):
    """The part of a pod's status that shows whether it is ready."""

    phase: str = ""
    reason: str = ""
    conditions: tuple[PodCondition, ...] = ()
    start_time: datetime | None = None

    def condition(self, kind: str) -> PodCondition | None:
        """Return the condition of that type."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


class PodStatus(PodPhase, frozen=True):
    """The status of a pod."""

    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""
    qos_class: str = ""


class Pod(Wire):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        """Return the pod's name."""
        return self.metadata.name

    @property
    def is_finished(self) -> bool:
        """Return whether the pod succeeded or failed."""
        return self.status.phase in {"Succeeded", "Failed"}
