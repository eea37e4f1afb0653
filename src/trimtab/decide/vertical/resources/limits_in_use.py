"""Memory limits that cannot be lowered, because the container uses more than the lower limit.

The kubelet refuses such a resize as a whole, page cache included, and tries again until the usage falls. Meanwhile
nothing else of the resize is carried out. So the limit is left at what the container has, and the rest goes on.
"""

from datetime import datetime

import msgspec

from trimtab.decide.vertical.resources.container_resources import ContainerResources, requests_and_limits
from trimtab.decide.vertical.resources.pod_resources import Sizing
from trimtab.decide.vertical.update.in_place.resize_note import read_note
from trimtab.model.core.pod import CPU, MEMORY, Container, Pod, ResourceList

LIMIT_DUE = "its memory limit was in use when it should have been lowered, and is tried again"


def lowers_memory_limit(pod: Pod) -> bool:
    """Return whether the pod's spec asks for a lower memory limit than a container has."""
    return any(_is_lower(container.resources.limits, pod, container) for container in pod.spec.containers)


def keep_limits(pod: Pod, sizes: tuple[ContainerResources, ...]) -> tuple[ContainerResources, ...]:
    """Return the sizes with memory limits that are no lower than those that the containers have."""
    return tuple(
        _with_limit(own, requests_and_limits(pod, container.name)[1])
        if _is_lower(own.limits, pod, container)
        else own
        for container, own in zip(pod.spec.containers, sizes, strict=True)
    )


def keep_memory(pod: Pod, sizes: tuple[ContainerResources, ...]) -> tuple[ContainerResources, ...]:
    """Return the sizes with the memory that the containers have, where the limit would be lowered.

    For pods whose QoS class binds the request to the limit.
    """
    kept = []
    for container, own in zip(pod.spec.containers, sizes, strict=True):
        requests, limits = requests_and_limits(pod, container.name)
        if _is_lower(own.limits, pod, container):
            own = ContainerResources(_with(own.requests, requests), _with(own.limits, limits))
        kept.append(own)
    return tuple(kept)


def is_limit_due(pod: Pod, sizing: Sizing, now: datetime) -> bool:
    """Return whether a memory limit that could not be lowered should be tried again."""
    note = read_note(pod)
    if note.refused_at is None or note.holds_limits(now):
        return False
    return any(
        _is_lower(own.limits, pod, container)
        for container, own in zip(pod.spec.containers, sizing.containers, strict=True)
    )


def present_sizes(pod: Pod) -> tuple[ContainerResources, ...]:
    """Return what the containers have, as their statuses say."""
    return tuple(_present(pod, container) for container in pod.spec.containers)


def as_requested(pod: Pod) -> Pod:
    """Return the pod as if its containers had what its spec asks for."""
    status = msgspec.structs.replace(pod.status, container_statuses=())
    return msgspec.structs.replace(pod, status=status)


def _present(pod: Pod, container: Container) -> ContainerResources:
    requests, limits = requests_and_limits(pod, container.name)
    sized = (CPU, MEMORY)
    return ContainerResources(
        {name: requests[name] for name in sized if name in requests},
        {name: limits[name] for name in sized if name in limits},
    )


def _is_lower(limits: ResourceList, pod: Pod, container: Container) -> bool:
    wanted, has = limits.get(MEMORY), requests_and_limits(pod, container.name)[1].get(MEMORY)
    return wanted is not None and has is not None and wanted < has


def _with_limit(own: ContainerResources, limits: ResourceList) -> ContainerResources:
    return ContainerResources(own.requests, _with(own.limits, limits))


def _with(amounts: ResourceList, present: ResourceList) -> ResourceList:
    return {**amounts, MEMORY: present[MEMORY]} if MEMORY in present else dict(amounts)
