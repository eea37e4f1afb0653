"""The requests of pods, which utilization is measured against.

A pod's request is its pod-level request where that is set (KEP-2837), else the sum over its containers and sidecars. The
overhead of a sandbox is no part of it, because usage is that of containers. Everything is in thousandths.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from trimtab.decide.horizontal.arithmetic import int64_of
from trimtab.model.core.pod import Container, PodSpec, ResourceList
from trimtab.model.json.wire import Wire

_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


class ContainerRequests(Wire):
    """The requests of one container."""

    name: str
    requests: dict[str, int] = msgspec.field(default_factory=dict)


class PodRequests(NamedTuple):
    """The requests of a pod, as a whole and per container."""

    requests: dict[str, int]
    is_pod_level: bool
    containers: tuple[ContainerRequests, ...]
    overhead: dict[str, int] = {}
    """What Kubernetes before 1.38 adds to pod-level requests."""


def pod_requests(spec: PodSpec, *, pod_level_resources: bool) -> PodRequests:
    """Return the requests of a pod, with the feature gate `pod_level_resources`."""
    containers = container_requests(spec)
    pod_level = pod_level_requests(spec) if pod_level_resources else None
    if pod_level is None:
        return PodRequests(summed_requests(containers), False, containers)
    return PodRequests(pod_level, True, containers, _in_milli(spec.overhead))


def container_requests(spec: PodSpec) -> tuple[ContainerRequests, ...]:
    """Return the requests of every container that runs as long as the pod."""
    return tuple(
        ContainerRequests(name=container.name, requests=_in_milli(container.resources.requests))
        for container in running_containers(spec)
    )


def running_containers(spec: PodSpec) -> Iterator[Container]:
    """Yield the containers and the sidecars. Other init containers end before usage is measured."""
    yield from spec.containers
    yield from (container for container in spec.init_containers if container.is_sidecar)


def summed_requests(containers: tuple[ContainerRequests, ...]) -> dict[str, int]:
    """Return the sum of each resource that every container requests."""
    if len(containers) == 1:
        return containers[0].requests
    if not containers:
        return {}
    common = set(containers[0].requests).intersection(*(container.requests for container in containers))
    return {name: sum(container.requests[name] for container in containers) for name in sorted(common)}


def pod_level_requests(spec: PodSpec) -> dict[str, int] | None:
    """Return the effective requests of a pod that sets any at pod level, else None."""
    if spec.resources is None:
        return None
    own = {name: amount for name, amount in spec.resources.requests.items() if _is_pod_level(name)}
    if not own:
        return None
    return _aggregated(spec) | _in_milli(own)


def _is_pod_level(resource: str) -> bool:
    return resource in _POD_LEVEL or resource.startswith(_HUGE_PAGES)


def _aggregated(spec: PodSpec) -> dict[str, int]:
    """Return what the scheduler reserves: all running containers, or an init container if that is more."""
    running: dict[str, int] = {}
    for container in running_containers(spec):
        _add(running, _in_milli(container.resources.requests))
    sidecars: dict[str, int] = {}
    for container in spec.init_containers:
        starting = _in_milli(container.resources.requests)
        _add(starting, sidecars)
        if container.is_sidecar:
            sidecars = starting
        for name, amount in starting.items():
            running[name] = max(running.get(name, 0), amount)
    return running


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _in_milli(amounts: ResourceList) -> dict[str, int]:
    return {name: int64_of(amount.milli_value()) for name, amount in amounts.items()}
