"""Pods as load sees them: what does not change between two measurements is worked out once.

A day of a hundred pods has half a million measurements, so each of them must be little more than arithmetic.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from zlib import crc32

from trimtab.lab.controllers.base.kinds import RunPod
from trimtab.lab.controllers.base.pods import HASH_LABEL, is_active, is_ready
from trimtab.model.core.pod import ResourceRequirements

_NO_LIMITS = ResourceRequirements()


class RunningContainer(NamedTuple):
    """A container that runs: since when (seconds since 1970), and how much it may use at most."""

    name: str
    started: float
    cpu_limit: int | None
    memory_limit: int | None


class Member(NamedTuple):
    """A running pod of a workload."""

    pod: RunPod
    uid: str
    workload: tuple[str, str]
    serves: bool
    salt: int
    containers: tuple[RunningContainer, ...]


class Members:
    """Turns pods into members, each only when it changed."""

    def __init__(self, runs: Callable[[RunPod], bool]) -> None:
        self._runs = runs
        self._known: dict[str, tuple[RunPod, Member | None]] = {}

    def of(self, pods: Iterable[RunPod]) -> list[Member]:
        """Return the running pods among `pods`."""
        known, before = {}, self._known
        found: list[Member] = []
        for pod in pods:
            uid = pod.metadata.uid
            pair = before.get(uid)
            if pair is None or pair[0] is not pod:
                pair = (pod, member_of(pod) if self._runs(pod) else None)
            known[uid] = pair
            if pair[1] is not None:
                found.append(pair[1])
        self._known = known
        return found


def member_of(pod: RunPod) -> Member:
    """Return a pod as load sees it."""
    return Member(
        pod,
        pod.metadata.uid,
        workload_of(pod),
        is_ready(pod) and is_active(pod),
        crc32(pod.metadata.name.encode()),
        tuple(_running(pod)),
    )


def workload_of(pod: RunPod) -> tuple[str, str]:
    """Return namespace and name of the workload that a pod belongs to; for a ReplicaSet, its Deployment's."""
    owner = next((one for one in pod.metadata.owner_references if one.controller), None)
    if owner is None:
        return (pod.metadata.namespace, pod.metadata.name)
    suffix = pod.metadata.labels.get(HASH_LABEL)
    name = owner.name
    if owner.kind == "ReplicaSet" and suffix:
        name = name.removesuffix(f"-{suffix}")
    return (pod.metadata.namespace, name)


def _running(pod: RunPod) -> Iterable[RunningContainer]:
    for status in pod.status.container_statuses:
        if status.state.running is None:
            continue
        begun = status.state.running.started_at or pod.status.start_time
        limits = (status.resources or _NO_LIMITS).limits
        cpu, memory = limits.get("cpu"), limits.get("memory")
        yield RunningContainer(
            status.name,
            begun.timestamp() if begun is not None else 0.0,
            cpu.milli_value() if cpu is not None else None,
            memory.value() if memory is not None else None,
        )
