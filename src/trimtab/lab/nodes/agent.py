"""The node agent: plays scheduler and kubelet for the nodes of its pools, on any API server.

It registers nodes, binds pods to them, takes each pod through its life by writing its status, and measures what pods
use. No container ever runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.subscriptions import CacheEvent, Delta
from trimtab.lab.controllers.base.kinds import RunNode, RunPod
from trimtab.lab.controllers.base.pods import is_ready
from trimtab.lab.controllers.base.work_queue import WorkQueue
from trimtab.lab.controllers.base.write_through_cache import Key, WriteThroughCache
from trimtab.lab.load.load import Load
from trimtab.lab.load.pods import Members
from trimtab.lab.nodes.capacity import Amount, allocatable, allocated_to
from trimtab.lab.nodes.node_pool import NodePool, register_nodes
from trimtab.lab.nodes.pod_lifecycle import LifecycleStep, Timing, next_step, page_cache
from trimtab.lab.nodes.resize import PENDING, Surroundings, resize_step, wants_resize
from trimtab.lab.nodes.scheduler import Scheduler
from trimtab.lab.nodes.usage_samples import UsageSamples
from trimtab.model.times import ZERO_TIME

SAMPLE_SECONDS = 15.0
"""How often pods are measured: metrics-server's default resolution."""


@dataclass(frozen=True)
class NodeSetting:
    """Which nodes there are, how long things take on them, and how often they are measured."""

    pools: Sequence[NodePool] = (NodePool(),)
    timing: Timing = field(default_factory=Timing)
    sample_seconds: float = SAMPLE_SECONDS


class NodeAgent:
    """Runs the pods of some nodes."""

    def __init__(
        self,
        clock: Clock,
        pods: WriteThroughCache[RunPod],
        nodes: WriteThroughCache[RunNode],
        load: Load,
        setting: NodeSetting,
    ) -> None:
        self._clock = clock
        self._pods = pods
        self._nodes = nodes
        self._load = load
        self._pools = list(setting.pools)
        self._node_names = {name for pool in setting.pools for name in pool.node_names()}
        self._timing = setting.timing
        self._sample_seconds = setting.sample_seconds
        self._killed: dict[str, list[str]] = {}
        self._members = Members(lambda pod: self._runs(pod) and pod.status.phase == "Running")
        self.samples = UsageSamples(setting.sample_seconds)
        self.scheduler = Scheduler(clock, pods, nodes)
        self.queue = WorkQueue("pods", clock, self.reconcile)
        pods.subscribe(self._pod_changed)

    @property
    def queues(self) -> tuple[WorkQueue, ...]:
        """Return the loops to run."""
        return (self.scheduler.queue, self.queue)

    async def register(self) -> None:
        """Create the nodes of all pools."""
        for pool in self._pools:
            await register_nodes(self._pods.client, pool)

    async def add_pool(self, pool: NodePool) -> None:
        """Add nodes to a running cluster."""
        self._node_names.update(pool.node_names())
        await register_nodes(self._pods.client, pool)

    async def run_samples(self) -> None:
        """Measure for ever, at even times, so that samples of two runs fall on the same moments."""
        while True:
            await self._clock.sleep(self._sample_seconds)
            self.sample()

    def sample(self) -> None:
        """Measure every running pod now; those over their memory limit are killed."""
        members = self._members.of(self._pods.all())
        now = self._clock.now()
        self._killed = self.samples.take(members, self._load.measure(members, now), now)
        for member in members:
            if member.uid in self._killed:
                self.queue.add((member.pod.metadata.namespace, member.pod.metadata.name))

    def _runs(self, pod: RunPod) -> bool:
        """Tell whether a pod is on one of our nodes; other nodes have agents of their own."""
        return pod.spec.node_name in self._node_names

    def _pod_changed(self, delta: Delta[RunPod]) -> None:
        if delta.change is CacheEvent.SYNCED:
            return
        pod = delta.object
        if not self._runs(pod):
            return
        if delta.new is not None:
            self.queue.add((pod.metadata.namespace, pod.metadata.name))
        was_ready = delta.old is not None and is_ready(delta.old)
        if self._load.has_queues and was_ready != (delta.new is not None and is_ready(delta.new)):
            self._load.observe(self._members.of(self._pods.all()), self._clock.now())
        if delta.old is not None and (
            delta.new is None or allocated_to(delta.new) != allocated_to(delta.old)
        ):
            self._retry_deferred(pod.spec.node_name)

    def _retry_deferred(self, node: str) -> None:
        """Look again at resizes that had to wait for room on a node."""
        waiting = [
            (found.last_transition_time or ZERO_TIME, pod)
            for pod in self.scheduler.pods_on(node)
            if (found := pod.status.condition(PENDING)) is not None
        ]
        # Whoever waits longest comes first, as under a kubelet.
        for _, pod in sorted(waiting, key=lambda entry: (entry[0], entry[1].metadata.key)):
            self.queue.add((pod.metadata.namespace, pod.metadata.name))

    async def reconcile(self, key: Key) -> None:
        """Take the next step in the life of one pod."""
        namespace, name = key
        pod = self._pods.get(name, namespace)
        if pod is None or not self._runs(pod):
            return
        now, timing = self._clock.now(), self._timing.of(pod)
        step = next_step(pod, timing, now, self._killed.get(pod.metadata.uid, ()))
        self._killed.pop(pod.metadata.uid, None)
        if step == LifecycleStep() or (step.status is None and not step.is_gone):
            step = self._resize(pod, timing) or step
        if step.is_gone:
            await self._pods.delete(pod, now, grace_seconds=0)
        elif step.status is not None:
            await self._write(pod, step)
            self.queue.add(key)
        if step.wait is not None:
            self.queue.add_after(
                key, step.wait, is_deadline=pod.status.phase == "Running" and not _is_moving(pod)
            )

    def _resize(self, pod: RunPod, timing: Timing) -> LifecycleStep | None:
        if pod.status.phase != "Running" or pod.metadata.deletion_timestamp or not wants_resize(pod):
            return None
        node = self._nodes.get(pod.spec.node_name)
        if node is None:
            return None
        others = [
            allocated_to(other)
            for other in self.scheduler.pods_on(pod.spec.node_name)
            if other.metadata.uid != pod.metadata.uid and not other.is_finished
        ]
        around = Surroundings(allocatable(node), sum(others, Amount()), self._memory(pod))
        return resize_step(pod, around, timing, self._clock.now())

    def _memory(self, pod: RunPod) -> dict[str, int]:
        """Return the bytes that each container holds, page cache included, which its limit bounds."""
        used, cache = self.samples.memory(pod), page_cache(pod)
        for one in pod.status.container_statuses:
            limit = one.resources.limits.get("memory") if one.resources is not None else None
            held = used.get(one.name, 0) + cache
            used[one.name] = held if limit is None else min(held, limit.value())
        return used

    async def _write(self, pod: RunPod, step: LifecycleStep) -> None:
        try:
            await self._pods.patch(pod, {"status": step.status}, subresource="status")
        except errors.NotFound:
            return


def _is_moving(pod: RunPod) -> bool:
    """Tell whether a running pod is on its way to another state: it is going, or it starts again."""
    if pod.metadata.deletion_timestamp is not None or not is_ready(pod):
        return True
    return any(one.type == "PodResizeInProgress" for one in pod.status.conditions)
