"""Memory limits that cannot be lowered, because the container uses more than the lower limit.

The kubelet refuses such a resize as a whole, counting page cache as usage, and retries until the usage falls. Until
then it carries out no other part of the resize. So the limit stays at its actual value, and the rest is resized.
"""

from datetime import datetime

import msgspec

from trimtab.decide.vertical.resources.container_resources import ContainerResources, requests_and_limits
from trimtab.decide.vertical.resources.pod_resources import Sizing
from trimtab.decide.vertical.resources.pod_rules import SIZED
from trimtab.decide.vertical.update.resize.annotation import read_resize_annotation
from trimtab.model.core.pod import MEMORY, Container, Pod, ResourceList

LIMIT_DUE = "its memory limit was in use when it should have been lowered, and is tried again"


def lowers_memory_limit(pod: Pod) -> bool:
    """Return whether the pod's spec has a lower memory limit than a container has."""
    return any(_is_lower(container.resources.limits, pod, container) for container in pod.spec.containers)


def keep_limits(pod: Pod, sizes: tuple[ContainerResources, ...]) -> tuple[ContainerResources, ...]:
    """Return the sizes with memory limits no lower than the actual ones."""
    return tuple(
        ContainerResources(size.requests, _with_memory(size.limits, _actual(pod, container).limits))
        if _is_lower(size.limits, pod, container)
        else size
        for container, size in zip(pod.spec.containers, sizes, strict=True)
    )


def keep_memory(pod: Pod, sizes: tuple[ContainerResources, ...]) -> tuple[ContainerResources, ...]:
    """Return the sizes with the actual memory where the limit would be lowered.

    For pods whose QoS class binds the request to the limit.
    """
    kept = []
    for container, size in zip(pod.spec.containers, sizes, strict=True):
        if _is_lower(size.limits, pod, container):
            actual = _actual(pod, container)
            requests = _with_memory(size.requests, actual.requests)
            size = ContainerResources(requests, _with_memory(size.limits, actual.limits))
        kept.append(size)
    return tuple(kept)


def is_limit_due(pod: Pod, sizing: Sizing, now: datetime) -> bool:
    """Return whether to retry a memory limit that the kubelet refused to lower."""
    last = read_resize_annotation(pod)
    if last.refused_at is None or last.keeps_memory_limits(now):
        return False
    return any(
        _is_lower(size.limits, pod, container)
        for container, size in zip(pod.spec.containers, sizing.containers, strict=True)
    )


def actual_sizes(pod: Pod) -> tuple[ContainerResources, ...]:
    """Return the containers' actual CPU and memory, from their statuses."""
    return tuple(
        ContainerResources(_sized(actual.requests), _sized(actual.limits))
        for actual in (_actual(pod, container) for container in pod.spec.containers)
    )


def as_requested(pod: Pod) -> Pod:
    """Return the pod as if its containers had the resources of its spec."""
    status = msgspec.structs.replace(pod.status, container_statuses=())
    return msgspec.structs.replace(pod, status=status)


def _actual(pod: Pod, container: Container) -> ContainerResources:
    return ContainerResources(*requests_and_limits(pod, container.name))


def _sized(amounts: ResourceList) -> ResourceList:
    return {name: amounts[name] for name in SIZED if name in amounts}


def _is_lower(limits: ResourceList, pod: Pod, container: Container) -> bool:
    wanted, actual = limits.get(MEMORY), requests_and_limits(pod, container.name)[1].get(MEMORY)
    return wanted is not None and actual is not None and wanted < actual


def _with_memory(amounts: ResourceList, actual: ResourceList) -> ResourceList:
    return {**amounts, MEMORY: actual[MEMORY]} if MEMORY in actual else dict(amounts)
