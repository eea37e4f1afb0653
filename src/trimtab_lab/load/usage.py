"""What the containers of running pods use: shares of the load, noise, memory and queues."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from trimtab.model.core.pod import ResourceRequirements
from trimtab_lab.controllers.kinds import LabPod
from trimtab_lab.controllers.pods import POD_TEMPLATE_HASH_LABEL, is_active, is_ready
from trimtab_lab.load.curves import Moment
from trimtab_lab.load.plan import Even, HotShard, Leader, Share, WorkloadLoad

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


NOISE_SECONDS = 15
"""The time for which a value of noise holds."""
_HOUR_SECONDS = 3600.0
_QUEUE_STEP_SECONDS = 1.0
"""Queues advance in steps that are finer than any sample."""
_MASK = 2**64 - 1
_HALF = 2**32

LeaseHolder = Callable[[str, str], str]
"""Returns the holder of a lease, by namespace and name, or an empty text."""


class ContainerUsage(NamedTuple):
    """The CPU and memory of one container."""

    cpu_millicores: int
    memory_bytes: int


UsageByContainer = Mapping[str, ContainerUsage]


class UsageModel:
    """The load of one workload, with its quantities converted once."""

    def __init__(self, load: WorkloadLoad, seed: int) -> None:
        self.load = load
        self._seed = seed
        self._idle = load.idle_cpu.as_float()
        self._base = load.memory.base.as_float()
        self._per_core = load.memory.per_core.as_float()
        self._growth = load.memory.growth_per_hour.as_float() / _HOUR_SECONDS
        self._others = {
            name: ContainerUsage(other.cpu.milli_value(), other.memory.value())
            for name, other in load.others.items()
        }

    def usage(
        self,
        pods: Iterable[RunningPod],
        shares: Mapping[str, float],
        cores: float,
        cores_per_pod: float,
        moment: Moment,
    ) -> Iterator[tuple[str, UsageByContainer]]:
        """Yield the usage of each pod by uid: its share of `cores`, plus `cores_per_pod`.

        A pod without a share is idle.
        """
        memory_total = self.load.memory.total
        total_bytes = memory_total.at(moment) if memory_total is not None else 0.0
        now, tick = moment.now.timestamp(), int(moment.since // NOISE_SECONDS)
        for pod in pods:
            share = shares.get(pod.uid)
            used = self._idle
            if share is not None:
                used = max(cores * share + cores_per_pod, used)
                if self.load.noise:
                    used *= 1 + self.load.noise * noise(self._seed, pod.salt, tick)
            yield pod.uid, self._pod_usage(pod, used, total_bytes * (share or 0.0), now)

    def _pod_usage(self, pod: RunningPod, cores: float, shared_bytes: float, now: float) -> UsageByContainer:
        usage: dict[str, ContainerUsage] = {}
        main = self.load.container
        for index, container in enumerate(pod.containers):
            name = container.name
            if name == main or (not main and index == 0 and name not in self._others):
                size = self._base + self._per_core * cores + self._growth * max(now - container.started, 0.0)
                usage[name] = ContainerUsage(round(cores * 1000), round(size + shared_bytes))
            else:
                usage[name] = self._others.get(name) or ContainerUsage(1, round(self._base))
        return usage


def no_lease_holder(_namespace: str, _lease: str) -> str:
    return ""


def load_shares(share: Share, pods: Sequence[LabPod], holder: LeaseHolder = no_lease_holder) -> list[float]:
    """Return each pod's share of the load, in the order of `pods`. They add up to 1."""
    if not pods:
        return []
    match share:
        case Leader():
            leader = _find_leader(share, pods, holder)
            if leader is None or len(pods) == 1:
                return load_shares(Even(), pods)
            rest = (1.0 - share.share) / (len(pods) - 1)
            return [share.share if pod is leader else rest for pod in pods]
        case HotShard():
            hot = _by_ordinal(pods)[min(share.ordinal, len(pods) - 1)]
            total = len(pods) - 1 + share.weight
            return [(share.weight if pod is hot else 1.0) / total for pod in pods]
        case _:
            return [1.0 / len(pods)] * len(pods)


def _find_leader(share: Leader, pods: Sequence[LabPod], holder: LeaseHolder) -> LabPod | None:
    if not share.lease:
        return next((pod for pod in pods if pod.metadata.labels.get(share.label) == share.value), None)
    identity = holder(pods[0].metadata.namespace, share.lease)
    # Many programs append an underscore and an id to the pod's name.
    return next((pod for pod in pods if identity.partition("_")[0] == pod.metadata.name), None)


def _by_ordinal(pods: Sequence[LabPod]) -> list[LabPod]:
    """Sort pods so that web-2 comes before web-10."""
    return sorted(pods, key=lambda pod: (len(pod.metadata.name), pod.metadata.name))


def noise(seed: int, salt: int, tick: int) -> float:
    """Return a number between -1 and 1, more often near 0, that depends only on the arguments.

    It mixes them as SplitMix64 does, which is fast and leaves no visible pattern.
    """
    mixed = (seed * 0x9E3779B97F4A7C15 + salt * 0xD1342543DE82EF95 + tick * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    mixed ^= mixed >> 31
    return ((mixed >> 32) + (mixed & 0xFFFFFFFF)) / _HALF - 1.0


class Backlog:
    """The items that wait in a queue.

    It advances in fixed steps, so the result does not depend on when it is read.
    """

    def __init__(self, items: float, since: float) -> None:
        self.items = items
        self.done_per_second = 0.0
        self._since = since

    def advance(self, to: float, arrivals: Callable[[float], float], capacity: float) -> None:
        """Advance to a time, with at most `capacity` items done per second."""
        while self._since + _QUEUE_STEP_SECONDS <= to:
            arrived = max(arrivals(self._since), 0.0) * _QUEUE_STEP_SECONDS
            done = min(self.items + arrived, capacity * _QUEUE_STEP_SECONDS)
            self.items += arrived - done
            self.done_per_second = done / _QUEUE_STEP_SECONDS
            self._since += _QUEUE_STEP_SECONDS
