"""Running pods, with what load and usage need of them computed once per change."""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from zlib import crc32

from trimtab.model.core.pod import ResourceRequirements
from trimtab_lab.controllers.kinds import LabPod
from trimtab_lab.controllers.pods import POD_TEMPLATE_HASH_LABEL, is_active, is_ready

_NO_LIMITS = ResourceRequirements()


class RunningContainer(NamedTuple):
    """A running container: its start in seconds since 1970, its CPU limit in millicores, memory in bytes."""

    name: str
    started: float
    cpu_limit: int | None
    memory_limit: int | None


class RunningPod(NamedTuple):
    """A running pod of a workload."""

    pod: LabPod
    uid: str
    workload: tuple[str, str]
    is_serving: bool
    salt: int
    containers: tuple[RunningContainer, ...]


class RunningPods:
    """Selects running pods and caches their `RunningPod` until they change."""

    def __init__(self, is_running: Callable[[LabPod], bool]) -> None:
        self._is_running = is_running
        self._cache: dict[str, tuple[LabPod, RunningPod | None]] = {}

    def select(self, pods: Iterable[LabPod]) -> list[RunningPod]:
        """Return the running pods among `pods`."""
        cache, before = {}, self._cache
        selected: list[RunningPod] = []
        for pod in pods:
            uid = pod.metadata.uid
            cached = before.get(uid)
            if cached is None or cached[0] is not pod:
                cached = (pod, running_pod(pod) if self._is_running(pod) else None)
            cache[uid] = cached
            if cached[1] is not None:
                selected.append(cached[1])
        self._cache = cache
        return selected


def running_pod(pod: LabPod) -> RunningPod:
    """Return the running pod of a pod."""
    return RunningPod(
        pod,
        pod.metadata.uid,
        workload_of(pod),
        is_ready(pod) and is_active(pod),
        crc32(pod.metadata.name.encode()),
        tuple(_running_containers(pod)),
    )


def workload_of(pod: LabPod) -> tuple[str, str]:
    """Return namespace and name of a pod's workload, of its Deployment rather than its ReplicaSet."""
    controller = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    if controller is None:
        return (pod.metadata.namespace, pod.metadata.name)
    suffix = pod.metadata.labels.get(POD_TEMPLATE_HASH_LABEL)
    name = controller.name
    if controller.kind == "ReplicaSet" and suffix:
        name = name.removesuffix(f"-{suffix}")
    return (pod.metadata.namespace, name)


def _running_containers(pod: LabPod) -> Iterable[RunningContainer]:
    for status in pod.status.container_statuses:
        if status.state.running is None:
            continue
        started = status.state.running.started_at or pod.status.start_time
        limits = (status.resources or _NO_LIMITS).limits
        cpu, memory = limits.get("cpu"), limits.get("memory")
        yield RunningContainer(
            status.name,
            started.timestamp() if started is not None else 0.0,
            cpu.milli_value() if cpu is not None else None,
            memory.value() if memory is not None else None,
        )
