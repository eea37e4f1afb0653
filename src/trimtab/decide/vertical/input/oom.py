"""Finds OOM kills in changed pods and in the kubelet's eviction events."""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.decide.vertical.resources.container_resources import requests_and_limits, status_of
from trimtab.decide.vertical.rules import Rules
from trimtab.model import times
from trimtab.model.core.objects import Event
from trimtab.model.core.pod import MEMORY, ContainerStateTerminated, ContainerStatus, Pod
from trimtab.model.quantity import Quantity, QuantityError
from trimtab.model.times import ZERO_TIME_NS

_OOM_KILLED = "OOMKilled"


@dataclass(frozen=True)
class OOM:
    """An OOM kill. `memory_bytes` is the request of the container, or its usage, at that time."""

    namespace: str
    pod: str
    container: str
    time_ns: int
    memory_bytes: int


def ooms_of_update(old: Pod, new: Pod, rules: Rules = Rules.TRIMTAB) -> tuple[OOM, ...]:
    """Return the kills between two versions of a pod. Later updates do not repeat them."""
    return tuple(
        oom for status in new.status.container_statuses for oom in _ooms_of_container(status, old, new, rules)
    )


def ooms_of_pod(pod: Pod) -> tuple[OOM, ...]:
    """Return the kills that the status of a pod still shows: the last two ends of each container."""
    return tuple(
        _oom(pod, status.name, ended)
        for status in pod.status.container_statuses
        for ended in (status.last_state.terminated, status.state.terminated)
        if ended is not None and _is_oom(ended) and ended.finished_at is not None
    )


def _ooms_of_container(status: ContainerStatus, old: Pod, new: Pod, rules: Rules) -> Iterator[OOM]:
    previous = status_of(old, status.name)
    if previous is None:
        return
    has_restarted = status.restart_count > previous.restart_count
    terminated = status.state.terminated
    if _is_oom(terminated) and (previous.state.terminated is None or has_restarted):
        yield _oom(new, status.name, terminated)
        return
    # No version of the pod may show the terminated state. Then the last state of the running container shows the kill,
    # and the old version of the pod has the request.
    last = status.last_state.terminated
    is_running_again = previous.state.running is not None and status.state.running is not None
    is_new = rules.ours and _is_new(last, previous)
    if _is_oom(last) and ((has_restarted and is_running_again) or is_new):
        yield _oom(old, status.name, last)


def _is_new(last: ContainerStateTerminated | None, previous: ContainerStatus) -> bool:
    """Return whether the previous status of a container does not have this termination."""
    if last is None or last.finished_at is None:
        return False
    earlier = (previous.state.terminated, previous.last_state.terminated)
    return all(state is None or state.finished_at != last.finished_at for state in earlier)


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
    """Return the containers for which the kubelet evicted a pod under memory pressure."""
    if event.reason != "Evicted" or event.involved_object.kind != "Pod":
        return ()
    annotations = event.metadata.annotations
    names, usages, resources = (
        annotations.get(key, "").split(",") if annotations.get(key) else []
        for key in ("offending_containers", "offending_containers_usage", "starved_resource")
    )
    if not len(names) == len(usages) == len(resources):
        return ()
    created = event.metadata.creation_timestamp
    moment = ZERO_TIME_NS if created is None else times.to_ns(created)
    pod = event.involved_object
    return tuple(
        OOM(pod.namespace, pod.name, name, moment, amount)
        for name, usage, resource in zip(names, usages, resources, strict=True)
        if resource == MEMORY and (amount := _bytes(usage)) is not None
    )


def _bytes(text: str) -> int | None:
    try:
        return Quantity.parse(text).value()
    except QuantityError:
        return None
