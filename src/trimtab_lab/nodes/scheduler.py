"""A small scheduler: what pods request, why a pod may not run on a node, and the emptiest node that it fits on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from trimtab.cluster import errors
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.transport import Request
from trimtab.model.core.objects import Node, Taint
from trimtab.model.core.pod import ResourceList
from trimtab.model.core.scheduling import find_untolerated_taint, matches_node_affinity
from trimtab.model.json import wire
from trimtab_lab.controllers.kinds import PODS, LabPod, LabPodSpec
from trimtab_lab.controllers.objects import Key
from trimtab_lab.controllers.pods import condition, is_active
from trimtab_lab.controllers.work_queue import WorkQueue
from trimtab_lab.nodes.caches import Caches, key_of

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def node_mismatch(spec: LabPodSpec, node: Node) -> str:
    """Return why a pod may not run on a node, or an empty text if it may."""
    if not matches_node_affinity(spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    taint = find_untolerated_taint(spec.tolerations, _taints(node))
    return f"node(s) had untolerated taint(s) {{{taint.key}: {taint.value}}}" if taint is not None else ""


def _taints(node: Node) -> Sequence[Taint]:
    taints = node.spec.taints
    if not node.spec.unschedulable or any(taint.key == UNSCHEDULABLE for taint in taints):
        return taints
    # A cordoned node counts as tainted, so that DaemonSets can tolerate it.
    return (*taints, Taint(key=UNSCHEDULABLE, effect="NoSchedule"))


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
        return {"cpu": self.cpu, "memory": self.memory, "pods": self.pods}[name]


def node_allocatable(node: Node) -> Resources:
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
    return _total(pod, {})


def allocated_resources(pod: LabPod) -> Resources:
    """Return what the node has allocated to a pod: its requests until it starts."""
    return _total(pod, {status.name: status.allocated_resources for status in pod.status.container_statuses})


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


_INSUFFICIENT = {"cpu": "Insufficient cpu", "memory": "Insufficient memory", "pods": "Too many pods"}


class Scheduler:
    """Binds pods that have no node."""

    def __init__(self, caches: Caches) -> None:
        self._clock = caches.clock
        self._caches = caches
        self._unschedulable: dict[Key, None] = {}
        self._reserved: dict[str, dict[str, tuple[LabPod, Resources]]] = {}
        self.queue = WorkQueue("scheduling", caches.clock, self.reconcile)
        caches.pods.subscribe(self._on_pod_event)
        caches.nodes.subscribe(self._on_node_event)

    def _on_pod_event(self, delta: Delta[LabPod]) -> None:
        if delta.change is CacheEvent.SYNCED:
            return
        pod = delta.object
        if delta.new is not None and not pod.spec.node_name:
            self.queue.add(key_of(pod))
        elif delta.new is None or pod.is_finished:
            self._unschedulable.pop(key_of(pod), None)
            self._retry_unschedulable()

    def _on_node_event(self, _delta: Delta[Node]) -> None:
        self._retry_unschedulable()

    def _retry_unschedulable(self) -> None:
        for key in self._unschedulable:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        """Bind one pod, or write the reason why it is unschedulable."""
        namespace, name = key
        pod = self._caches.pods.get(name, namespace)
        if pod is None or pod.spec.node_name or not is_active(pod) or pod.spec.scheduling_gates:
            self._unschedulable.pop(key, None)
            return
        reasons: Counter[str] = Counter()
        fitting: list[tuple[float, int, str]] = []
        for node in self._caches.nodes.all():
            if mismatch := node_mismatch(pod.spec, node):
                reasons[mismatch] += 1
                continue
            allocatable = node_allocatable(node)
            used = self._used(node.metadata.name)
            insufficient = allocatable.insufficient(used, pod_requests(pod))
            reasons.update(_INSUFFICIENT[name] for name in insufficient)
            if not insufficient:
                fitting.append((used.share_of(allocatable), used.pods, node.metadata.name))
        if fitting:
            await self._bind(pod, min(fitting)[2])
            self._unschedulable.pop(key, None)
            return
        self._unschedulable[key] = None
        await self._write_unschedulable(pod, reasons)

    def _used(self, node: str) -> Resources:
        """Return what the pods of a node reserve, each computed once per version of the pod."""
        before, reserved = self._reserved.get(node, {}), dict[str, tuple[LabPod, Resources]]()
        for pod in self._caches.pods_on(node):
            if not pod.is_finished:
                known = before.get(pod.metadata.uid)
                if known is None or known[0] is not pod:
                    known = (pod, pod_requests(pod))
                reserved[pod.metadata.uid] = known
        self._reserved[node] = reserved
        return sum((amounts for _, amounts in reserved.values()), Resources())

    async def _bind(self, pod: LabPod, node: str) -> None:
        meta = pod.metadata
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = PODS.path(meta.namespace, meta.name, "binding")
        request = Request("POST", path, (), {"Content-Type": "application/json"}, wire.encode(body))
        await self._caches.client.sender.send(f"binding pods {meta.key} to {node}", request)
        self._caches.assume_bound(pod, node)

    async def _write_unschedulable(self, pod: LabPod, reasons: Counter[str]) -> None:
        total = len(self._caches.nodes.all())
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "no nodes"
        message = f"0/{total} nodes are available: {listed}."
        before = pod.status.condition("PodScheduled")
        if before is not None and before.message == message:
            return
        scheduled = condition(
            pod.status.conditions,
            "PodScheduled",
            holds=False,
            reason="Unschedulable",
            message=message,
            now=self._clock.now(),
        )
        with suppress(errors.NotFound):
            await self._caches.pods.patch(pod, {"status": {"conditions": [scheduled]}}, subresource="status")
