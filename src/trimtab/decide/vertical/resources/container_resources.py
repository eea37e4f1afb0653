"""What a pod's containers have now, and what a VPA says about each of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.model.core.pod import CPU, Container, ContainerStatus, Pod, ResourceList
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import (
    ContainerControlledValues,
    ContainerResourcePolicy,
    ContainerScalingMode,
    PodResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
)

DEFAULT_POLICY = "*"
_NO_CPU = Quantity.from_int(0)
_NO_MEMORY = Quantity.from_int(0, "BinarySI")


def container_of(pod: Pod, name: str) -> Container | None:
    """Return the main container of that name."""
    return next((container for container in pod.spec.containers if container.name == name), None)


def status_of(pod: Pod, name: str) -> ContainerStatus | None:
    """Return the status of the main container of that name."""
    return next((status for status in pod.status.container_statuses if status.name == name), None)


def requests_and_limits(pod: Pod, name: str) -> tuple[ResourceList, ResourceList]:
    """Return what the container really has: its status knows after a resize in place, the spec otherwise."""
    status = status_of(pod, name)
    if status is not None and status.resources is not None:
        return status.resources.requests, status.resources.limits
    container = container_of(pod, name)
    return (container.resources.requests, container.resources.limits) if container else ({}, {})


def amount_of(resources: Mapping[str, Quantity], resource: str) -> Quantity:
    """Return the amount of one resource; what is not listed counts as zero."""
    found = resources.get(resource)
    return found if found is not None else (_NO_CPU if resource == CPU else _NO_MEMORY)


def policy_for(name: str, policy: PodResourcePolicy | None) -> ContainerResourcePolicy | None:
    """Return the container's own policy, else the `*` one; of several `*` the last counts, as upstream's does."""
    fallback = None
    for candidate in policy.container_policies if policy else ():
        if candidate.container_name == name:
            return candidate
        if candidate.container_name == DEFAULT_POLICY:
            fallback = candidate
    return fallback


def controls_limits(name: str, policy: PodResourcePolicy | None) -> bool:
    """Return whether limits follow the requests (the default), rather than staying as the user wrote them."""
    found = policy_for(name, policy)
    values = found.controlled_values if found else None
    return values is None or values == ContainerControlledValues.REQUESTS_AND_LIMITS


def controls_requests_only(name: str, policy: PodResourcePolicy | None) -> bool:
    """Return whether the user keeps the limits for themselves."""
    found = policy_for(name, policy)
    return found is not None and found.controlled_values == ContainerControlledValues.REQUESTS_ONLY


def is_off(name: str, policy: PodResourcePolicy | None) -> bool:
    """Return whether the container is not to be scaled at all."""
    found = policy_for(name, policy)
    return found is not None and found.mode == ContainerScalingMode.OFF


def recommendation_for(
    name: str, recommendation: RecommendedPodResources | None
) -> RecommendedContainerResources | None:
    """Return what is recommended for one container."""
    listed = recommendation.container_recommendations if recommendation else ()
    return next((entry for entry in listed if entry.container_name == name), None)


@dataclass(frozen=True)
class ContainerResources:
    """Requests and limits to give to one container; what is empty stays as it is."""

    requests: ResourceList
    limits: ResourceList


NOTHING = ContainerResources({}, {})
