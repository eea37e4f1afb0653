"""What pods request and what a node can allocate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.model.core.objects import Node
from trimtab.model.core.pod import ResourceList
from trimtab_lab.controllers.kinds import LabPod

DEFAULT_MAX_PODS = 110


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU in millicores, memory in bytes, and a number of pods."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def insufficient(self, used: "Resources", requested: "Resources") -> list[str]:
        """Return the resources of which too little is left for `requested` beside `used`."""
        total = used + requested
        names = ("pods", "cpu", "memory")
        return [name for name in names if total.amount(name) > self.amount(name)]

    def share_of(self, total: "Resources") -> float:
        """Return the part of a node's CPU and memory that these are, on average."""
        return (self.cpu / max(total.cpu, 1) + self.memory / max(total.memory, 1)) / 2

    def amount(self, name: str) -> int:
        """Return the amount of a resource."""
        return {"cpu": self.cpu, "memory": self.memory, "pods": self.pods}[name]


def node_allocatable(node: Node) -> Resources:
    """Return the allocatable resources of a node."""
    allocatable = node.status.allocatable or node.status.capacity
    pods = allocatable.get("pods")
    return _resources(allocatable) + Resources(pods=pods.value() if pods else DEFAULT_MAX_PODS)


def pod_requests(pod: LabPod) -> Resources:
    """Return what the scheduler reserves for a pod: the larger of requested and allocated.

    A resize that the node can never grant reserves nothing.
    """
    allocated = allocated_resources(pod)
    pending = pod.status.condition("PodResizePending")
    if pending is not None and pending.reason == "Infeasible":
        return allocated
    requested = spec_requests(pod)
    return Resources(max(requested.cpu, allocated.cpu), max(requested.memory, allocated.memory), 1)


def spec_requests(pod: LabPod) -> Resources:
    """Return the requests in a pod's spec."""
    return _total(pod, {})


def allocated_resources(pod: LabPod) -> Resources:
    """Return what the node has allocated to a pod: its requests until it starts."""
    return _total(pod, {status.name: status.allocated_resources for status in pod.status.container_statuses})


def total_requests(pods: Iterable[LabPod]) -> Resources:
    """Return the requests of all unfinished pods."""
    return sum((pod_requests(pod) for pod in pods if not pod.is_finished), Resources())


def _total(pod: LabPod, allocated: Mapping[str, ResourceList]) -> Resources:
    """Add up containers and sidecars, or take the largest init container if that is more."""
    spec = pod.spec
    sidecars = [container for container in spec.init_containers if container.is_sidecar]
    running = sum(
        (
            _resources(allocated.get(container.name) or container.resources.requests)
            for container in (*spec.containers, *sidecars)
        ),
        Resources(),
    )
    peaks = [
        running,
        *(
            _resources(container.resources.requests)
            for container in spec.init_containers
            if not container.is_sidecar
        ),
    ]
    largest = Resources(max(peak.cpu for peak in peaks), max(peak.memory for peak in peaks), 1)
    return largest + _resources(spec.overhead)


def _resources(amounts: ResourceList) -> Resources:
    cpu, memory = amounts.get("cpu"), amounts.get("memory")
    return Resources(cpu.milli_value() if cpu is not None else 0, memory.value() if memory is not None else 0)
