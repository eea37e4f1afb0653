"""Plays the kubelet of all nodes of some pools, on any API server.

It registers nodes, takes each pod through its life by writing its status, and measures what pods use for metrics.k8s.io. No
container ever runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trimtab.cluster import errors
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.client import DeleteOptions, Preconditions
from trimtab.model.quantity import Quantity
from trimtab.model.times import ZERO_TIME
from trimtab_lab.controllers.kinds import PODS, LabPod
from trimtab_lab.controllers.objects import Key
from trimtab_lab.controllers.pods import is_ready
from trimtab_lab.controllers.work_queue import WorkQueue
from trimtab_lab.load.load import Load
from trimtab_lab.load.usage import ContainerUsage, RunningContainer, RunningPod, RunningPods, UsageByContainer
from trimtab_lab.metrics.apis import UsageSample
from trimtab_lab.nodes.caches import Caches, key_of
from trimtab_lab.nodes.node_pool import NodePool, register_nodes
from trimtab_lab.nodes.pod_lifecycle import LifecycleStep, Timing, next_step, page_cache
from trimtab_lab.nodes.resize import IN_PROGRESS, PENDING, ResizeInputs, needs_resize, resize_step
from trimtab_lab.nodes.scheduler import Resources, allocated_resources, node_allocatable


class UsageSamples:
    """The latest measurement of each pod, as a usage source of the lab's API server.

    Simulations take far more samples than they read, so what only readers need is computed on reading.
    """

    def __init__(self, window: float) -> None:
        self._window = timedelta(seconds=window)
        self._taken_at: datetime | None = None
        self._pods: list[RunningPod] = []
        self._usage: Mapping[str, UsageByContainer] = {}
        self._by_name: dict[tuple[str, str], RunningPod] | None = None

    def take(
        self, pods: list[RunningPod], usage: Mapping[str, UsageByContainer], now: datetime
    ) -> dict[str, list[str]]:
        """Store a measurement. Return the containers over their memory limit, by uid of the pod."""
        self._taken_at, self._pods, self._usage = now, pods, usage
        self._by_name = None
        over_limit: dict[str, list[str]] = {}
        for pod in pods:
            for container in pod.containers:
                limit = container.memory_limit
                if limit is not None and usage[pod.uid][container.name].memory_bytes > limit:
                    over_limit.setdefault(pod.uid, []).append(container.name)
        return over_limit

    def memory(self, pod: LabPod) -> dict[str, int]:
        """Return the memory in bytes of each container of a pod."""
        usage = self._usage.get(pod.metadata.uid, {})
        return {name: container.memory_bytes for name, container in usage.items()}

    def pod_usage(self, namespace: str, name: str, _now: datetime) -> UsageSample | None:
        """Return the usage of each container of a pod, or None when there is no sample."""
        if self._by_name is None:
            self._by_name = {key_of(pod.pod): pod for pod in self._pods}
        pod = self._by_name.get((namespace, name))
        if pod is None or self._taken_at is None:
            return None
        containers = {container: _quantities(usage) for container, usage in self._within_limits(pod)}
        return UsageSample(containers, self._taken_at, self._window)

    def node_usage(self, name: str, _now: datetime) -> UsageSample | None:
        if self._taken_at is None:
            return None
        on_node = [pod for pod in self._pods if pod.pod.spec.node_name == name]
        usages = [usage for pod in on_node for _, usage in self._within_limits(pod)]
        total = ContainerUsage(
            sum(usage.cpu_millicores for usage in usages), sum(usage.memory_bytes for usage in usages)
        )
        return UsageSample({"": _quantities(total)}, self._taken_at, self._window)

    def _within_limits(self, pod: RunningPod) -> Iterator[tuple[str, ContainerUsage]]:
        usage = self._usage[pod.uid]
        for container in pod.containers:
            yield container.name, _limited(container, usage[container.name])


def _limited(container: RunningContainer, usage: ContainerUsage) -> ContainerUsage:
    cpu, memory = usage
    if container.cpu_limit is not None:
        cpu = min(cpu, container.cpu_limit)
    if container.memory_limit is not None:
        memory = min(memory, container.memory_limit)
    return ContainerUsage(cpu, memory)


def _quantities(usage: ContainerUsage) -> dict[str, str]:
    # metrics-server shows whole kibibytes.
    memory = Quantity.from_int(-(-usage.memory_bytes // 1024) * 1024, "BinarySI")
    return {"cpu": str(Quantity.from_milli(usage.cpu_millicores)), "memory": str(memory)}


SAMPLE_SECONDS = 15.0
"""The time between two measurements, metrics-server's default resolution."""


@dataclass(frozen=True)
class NodeConfig:
    """The nodes, how long pods take to start and stop on them, and how often they are measured."""

    pools: Sequence[NodePool] = (NodePool(),)
    timing: Timing = field(default_factory=Timing)
    sample_seconds: float = SAMPLE_SECONDS


class Kubelet:
    """Runs the pods that are bound to its nodes."""

    def __init__(self, caches: Caches, load: Load, config: NodeConfig) -> None:
        self._clock = caches.clock
        self._caches = caches
        self._load = load
        self._pools = list(config.pools)
        self._node_names = {name for pool in config.pools for name in pool.node_names()}
        self._timing = config.timing
        self.sample_seconds = config.sample_seconds
        """The seconds between two measurements, which are also the window of each."""
        self._oom_killed: dict[str, list[str]] = {}
        self._running = RunningPods(lambda pod: self._is_ours(pod) and pod.status.phase == "Running")
        self.samples = UsageSamples(config.sample_seconds)
        self.queue = WorkQueue("pods", caches.clock, self.reconcile)
        caches.pods.subscribe(self._on_pod_event)

    async def register(self) -> None:
        """Create the nodes of all pools."""
        for pool in self._pools:
            await register_nodes(self._caches.client, pool)

    async def add_pool(self, pool: NodePool) -> None:
        """Add nodes to a running cluster."""
        self._node_names.update(pool.node_names())
        await register_nodes(self._caches.client, pool)

    async def run_samples(self) -> None:
        """Measure at fixed intervals until cancelled, so that two runs measure at the same times."""
        while True:
            await self._clock.sleep(self.sample_seconds)
            self.sample()

    def sample(self) -> None:
        """Measure every running pod now, and kill containers over their memory limit."""
        pods, now = self._running_pods(), self._clock.now()
        self._oom_killed = self.samples.take(pods, self._load.measure(pods, now), now)
        for running in pods:
            if running.uid in self._oom_killed:
                self.queue.add(key_of(running.pod))

    def _running_pods(self) -> list[RunningPod]:
        return self._running.select(self._caches.pods.all())

    def _is_ours(self, pod: LabPod) -> bool:
        return pod.spec.node_name in self._node_names

    def _on_pod_event(self, delta: Delta[LabPod]) -> None:
        if delta.change is CacheEvent.SYNCED or not self._is_ours(delta.object):
            return
        old, new = delta.old, delta.new
        if new is not None:
            self.queue.add(key_of(new))
        was_ready, is_ready_now = (pod is not None and is_ready(pod) for pod in (old, new))
        if self._load.has_queues and was_ready != is_ready_now:
            self._load.observe(self._running_pods(), self._clock.now())
        if old is not None and (new is None or allocated_resources(new) != allocated_resources(old)):
            self._retry_deferred(delta.object.spec.node_name)

    def _retry_deferred(self, node: str) -> None:
        """Enqueue pods whose resize waits for free resources of a node."""
        waiting = [
            (pending.last_transition_time or ZERO_TIME, key_of(pod))
            for pod in self._caches.pods_on(node)
            if (pending := pod.status.condition(PENDING)) is not None
        ]
        # As in the kubelet, the pod that waits longest comes first.
        for _, key in sorted(waiting):
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        """Take the next step in the life of one pod."""
        namespace, name = key
        pod = self._caches.pods.get(name, namespace)
        if pod is None or not self._is_ours(pod):
            return
        now, timing = self._clock.now(), self._timing.for_pod(pod)
        step = next_step(pod, timing, now, self._oom_killed.pop(pod.metadata.uid, ()))
        if step.status is None and not step.is_gone:
            step = self._resize(pod, timing) or step
        if step.is_gone:
            await self._delete(pod)
        elif step.status is not None:
            await self._write(pod, step)
            self.queue.add(key)
        if step.wait is not None:
            is_deadline = pod.status.phase == "Running" and not _is_changing(pod)
            self.queue.add_after(key, step.wait, is_deadline=is_deadline)

    def _resize(self, pod: LabPod, timing: Timing) -> LifecycleStep | None:
        if pod.status.phase != "Running" or pod.metadata.deletion_timestamp or not needs_resize(pod):
            return None
        node = self._caches.nodes.get(pod.spec.node_name)
        if node is None:
            return None
        others = [
            allocated_resources(other)
            for other in self._caches.pods_on(pod.spec.node_name)
            if other.metadata.uid != pod.metadata.uid and not other.is_finished
        ]
        inputs = ResizeInputs(node_allocatable(node), sum(others, Resources()), self._memory(pod))
        return resize_step(pod, inputs, timing, self._clock.now())

    def _memory(self, pod: LabPod) -> dict[str, int]:
        """Return the bytes that each container holds. They include page cache, up to the limit."""
        memory, cache = self.samples.memory(pod), page_cache(pod)
        for status in pod.status.container_statuses:
            limit = status.resources.limits.get("memory") if status.resources is not None else None
            held = memory.get(status.name, 0) + cache
            memory[status.name] = held if limit is None else min(held, limit.value())
        return memory

    async def _delete(self, pod: LabPod) -> None:
        options = DeleteOptions(Preconditions(uid=pod.metadata.uid), 0, "Background")
        with suppress(errors.NotFound, errors.Conflict):
            await self._caches.client.delete(PODS, pod.metadata.name, pod.metadata.namespace, options=options)

    async def _write(self, pod: LabPod, step: LifecycleStep) -> None:
        with suppress(errors.NotFound):
            await self._caches.pods.patch(pod, {"status": step.status}, subresource="status")


def _is_changing(pod: LabPod) -> bool:
    """Return whether a running pod terminates, becomes ready or is resized."""
    if pod.metadata.deletion_timestamp is not None or not is_ready(pod):
        return True
    return pod.status.condition(IN_PROGRESS) is not None
