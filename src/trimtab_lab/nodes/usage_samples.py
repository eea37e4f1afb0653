"""The latest usage of all running pods, for metrics.k8s.io."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from trimtab.model.quantity import Quantity
from trimtab_lab.controllers.kinds import LabPod
from trimtab_lab.load.pods import RunningContainer, RunningPod
from trimtab_lab.load.usage import ContainerUsage, UsageByContainer
from trimtab_lab.metrics.usage import UsageSample
from trimtab_lab.nodes.write_through_cache import key_of


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
        """Return the usage of a node, which is that of its pods."""
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
