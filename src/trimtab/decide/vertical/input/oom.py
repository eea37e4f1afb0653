"""Out-of-memory kills, seen in what changed about a pod or in the kubelet's eviction events."""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.resources.container_resources import (
    requests_and_limits,
    status_of,
)
from trimtab.model import times
from trimtab.model.core.objects import Event
from trimtab.model.core.pod import MEMORY, ContainerStateTerminated, ContainerStatus, Pod
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.model.times import ZERO_TIME_NS

_OOM_KILLED = "OOMKilled"


@dataclass(frozen=True)
class OOM:
    """A container ran out of memory; `memory_bytes` is what it had, or used, then."""

    namespace: str
    pod: str
    container: str
    time_ns: int
    memory_bytes: int


def ooms_of_update(old: Pod, new: Pod, compat: VpaCompat = DEFAULT) -> tuple[OOM, ...]:
    """Return the kills between two versions of a pod, each once however often the pod is updated afterwards."""
    return tuple(
        oom
        for status in new.status.container_statuses
        for oom in _ooms_of_container(status, old, new, compat)
    )


def _ooms_of_container(status: ContainerStatus, old: Pod, new: Pod, compat: VpaCompat) -> Iterator[OOM]:
    before = status_of(old, status.name)
    if before is None:
        return
    has_restarted = status.restart_count > before.restart_count
    dead = status.state.terminated
    if _is_oom(dead) and (before.state.terminated is None or has_restarted):
        yield _oom(new, status.name, dead)
        return
    # The dead state may never be seen: then the running container's previous life tells of it, and what it
    # had then is in the old version of the pod.
    died = status.last_state.terminated
    runs_on = before.state.running is not None and status.state.running is not None
    is_unseen = compat.unseen_kills_count and _is_unseen(died, before)
    if _is_oom(died) and ((has_restarted and runs_on) or is_unseen):
        yield _oom(old, status.name, died)


def _is_unseen(died: ContainerStateTerminated | None, before: ContainerStatus) -> bool:
    """Return whether the earlier version of a container did not tell of a death, by the time it happened."""
    if died is None or died.finished_at is None:
        return False
    told = (before.state.terminated, before.last_state.terminated)
    return all(state is None or state.finished_at != died.finished_at for state in told)


def _is_oom(state: ContainerStateTerminated | None) -> bool:
    return state is not None and state.reason == _OOM_KILLED


def _oom(pod: Pod, container: str, state: ContainerStateTerminated | None) -> OOM:
    requests, _ = requests_and_limits(pod, container)
    memory = requests.get(MEMORY)
    finished = state.finished_at if state else None
    return OOM(
        namespace=pod.metadata.namespace,
        pod=pod.name,
        container=container,
        time_ns=ZERO_TIME_NS if finished is None else times.to_ns(finished),
        memory_bytes=0 if memory is None else memory.value(),
    )


def ooms_of_event(event: Event) -> tuple[OOM, ...]:
    """Return the containers that a pod was evicted for when its node ran short of memory."""
    if event.reason != "Evicted" or event.involved_object.kind != "Pod":
        return ()
    notes = event.metadata.annotations
    names, usages, resources = (
        notes.get(key, "").split(",") if notes.get(key) else []
        for key in ("offending_containers", "offending_containers_usage", "starved_resource")
    )
    if not len(names) == len(usages) == len(resources):
        return ()
    created = event.metadata.creation_timestamp
    moment = ZERO_TIME_NS if created is None else times.to_ns(created)
    found = event.involved_object
    return tuple(
        OOM(found.namespace, found.name, name, moment, amount)
        for name, usage, resource in zip(names, usages, resources, strict=True)
        if resource == MEMORY and (amount := _bytes(usage)) is not None
    )


def _bytes(text: str) -> int | None:
    try:
        return Quantity.parse(text).value()
    except QuantityError:
        return None
