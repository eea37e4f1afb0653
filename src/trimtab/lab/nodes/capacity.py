"""What pods ask for and what a node has left (pure)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.lab.controllers.base.kinds import RunNode, RunPod
from trimtab.model.core.pod import ResourceList

DEFAULT_PODS = 110


@dataclass(frozen=True, slots=True)
class Amount:
    """CPU in millicores, memory in bytes, and a number of pods."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def lacks(self, used: "Amount", more: "Amount") -> list[str]:
        """Return the resources of which `more` does not fit beside `used`."""
        pairs = (
            ("pods", self.pods, used.pods + more.pods),
            ("cpu", self.cpu, used.cpu + more.cpu),
            ("memory", self.memory, used.memory + more.memory),
        )
        return [name for name, have, need in pairs if need > have]


def allocatable(node: RunNode) -> Amount:
    """Return what a node offers."""
    offered = node.status.allocatable or node.status.capacity
    pods = offered.get("pods")
    return Amount(_milli(offered, "cpu"), _whole(offered, "memory"), pods.value() if pods else DEFAULT_PODS)


def requests_of(pod: RunPod) -> Amount:
    """Return what the scheduler reserves for a pod: the larger of what it asks for and what it has been given.

    A resize that the node can never grant reserves nothing.
    """
    given = allocated_to(pod)
    pending = pod.status.condition("PodResizePending")
    if pending is not None and pending.reason == "Infeasible":
        return given
    asked = _reserved(pod, {})
    return Amount(max(asked.cpu, given.cpu), max(asked.memory, given.memory), 1)


def wanted_by(pod: RunPod) -> Amount:
    """Return what a pod's spec asks for."""
    return _reserved(pod, {})


def allocated_to(pod: RunPod) -> Amount:
    """Return what the node has granted a pod; a pod that has not started has been granted what it asks for."""
    given = {one.name: one.allocated_resources for one in pod.status.container_statuses}
    return _reserved(pod, given)


def used_by(pods: Iterable[RunPod]) -> Amount:
    """Return what the scheduler sees taken on a node; pods that ended take nothing."""
    return sum((requests_of(pod) for pod in pods if not pod.is_finished), Amount())


def _reserved(pod: RunPod, given: Mapping[str, ResourceList]) -> Amount:
    """Add up containers and sidecars, or take the largest init container if that is more."""
    spec = pod.spec
    lasting = [*spec.containers, *(one for one in spec.init_containers if one.is_sidecar)]
    running = sum((_amount(given.get(one.name) or one.resources.requests) for one in lasting), Amount())
    first = [_amount(one.resources.requests) for one in spec.init_containers if not one.is_sidecar]
    extra = _amount(spec.overhead)
    cpu = max([running.cpu, *(one.cpu for one in first)]) + extra.cpu
    memory = max([running.memory, *(one.memory for one in first)]) + extra.memory
    return Amount(cpu, memory, 1)


def _amount(amounts: ResourceList) -> Amount:
    return Amount(_milli(amounts, "cpu"), _whole(amounts, "memory"))


def _milli(amounts: ResourceList, name: str) -> int:
    found = amounts.get(name)
    return found.milli_value() if found is not None else 0


def _whole(amounts: ResourceList, name: str) -> int:
    found = amounts.get(name)
    return found.value() if found is not None else 0
