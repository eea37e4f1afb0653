"""What the pods used when they were last measured, for metrics.k8s.io; and who used too much memory."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from trimtab.lab.load.measuring import PodUse, Use
from trimtab.lab.metrics_api import Usage
from trimtab.lab.workloads.kinds import RunPod
from trimtab.model.quantity import Quantity
from trimtab.model.resources import ResourceRequirements

_NO_LIMITS = ResourceRequirements()


class Samples:
    """The latest measurement of each pod; a source of usage for the lab's API server."""

    def __init__(self, window: float) -> None:
        self._window = timedelta(seconds=window)
        self._taken: datetime | None = None
        self._uses: dict[tuple[str, str], PodUse] = {}
        self._nodes: dict[str, list[PodUse]] = {}

    def take(self, pods: list[RunPod], uses: Mapping[str, PodUse], now: datetime) -> dict[str, list[str]]:
        """Keep what the pods use now, within their limits; return the containers over their memory limit, by uid."""
        self._taken = now
        self._uses, self._nodes = {}, {}
        killed: dict[str, list[str]] = {}
        for pod in pods:
            use = uses.get(pod.metadata.uid)
            if not use:
                continue
            within = {name: _within(pod, name, one) for name, one in use.items()}
            over = [name for name, one in use.items() if within[name].memory_bytes < one.memory_bytes]
            if over:
                killed[pod.metadata.uid] = over
            self._uses[pod.metadata.namespace, pod.metadata.name] = within
            self._nodes.setdefault(pod.spec.node_name, []).append(within)
        return killed

    def memory(self, pod: RunPod) -> dict[str, int]:
        """Return the bytes that the containers of a pod used when last measured."""
        use = self._uses.get((pod.metadata.namespace, pod.metadata.name), {})
        return {name: one.memory_bytes for name, one in use.items()}

    def pod_usage(self, namespace: str, name: str, _now: datetime) -> Usage | None:
        """Return the usage of each container of a pod, or None when there is no sample."""
        use = self._uses.get((namespace, name))
        if use is None or self._taken is None:
            return None
        return Usage(
            {container: _quantities(one) for container, one in use.items()}, self._taken, self._window
        )

    def node_usage(self, name: str, _now: datetime) -> Usage | None:
        """Return the usage of a node: that of its pods."""
        if self._taken is None:
            return None
        uses = [one for use in self._nodes.get(name, ()) for one in use.values()]
        total = Use(sum(one.cpu_millicores for one in uses), sum(one.memory_bytes for one in uses))
        return Usage({"": _quantities(total)}, self._taken, self._window)


def _within(pod: RunPod, name: str, use: Use) -> Use:
    """Return what a container can really use: more CPU than its limit is not given to it."""
    status = next((one for one in pod.status.container_statuses if one.name == name), None)
    limits = (status.resources if status is not None and status.resources is not None else _NO_LIMITS).limits
    cpu, memory = limits.get("cpu"), limits.get("memory")
    return Use(
        min(use.cpu_millicores, cpu.milli_value()) if cpu is not None else use.cpu_millicores,
        min(use.memory_bytes, memory.value()) if memory is not None else use.memory_bytes,
    )


def _quantities(use: Use) -> dict[str, str]:
    # Whole kibibytes, as the kubelet's summaries make them appear through metrics-server.
    memory = Quantity.from_int(-(-use.memory_bytes // 1024) * 1024, "BinarySI")
    return {"cpu": str(Quantity.from_milli(use.cpu_millicores)), "memory": str(memory)}
