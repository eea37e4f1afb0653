"""Containers of a pod: their actual resources, their policy and their recommendation."""

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
    """Return the container's actual resources, from its status if present, else from its spec."""
    status = status_of(pod, name)
    if status is not None and status.resources is not None:
        return status.resources.requests, status.resources.limits
    container = container_of(pod, name)
    return (container.resources.requests, container.resources.limits) if container else ({}, {})


def amount_of(resources: Mapping[str, Quantity], resource: str) -> Quantity:
    """Return the amount of one resource, or zero if it is not listed."""
    amount = resources.get(resource)
    return amount if amount is not None else (_NO_CPU if resource == CPU else _NO_MEMORY)


def policy_for(name: str, policy: PodResourcePolicy | None) -> ContainerResourcePolicy | None:
    """Return the container's own policy, else the `*` one.

    Of several `*` policies the last counts, as in upstream.
    """
    fallback = None
    for candidate in policy.container_policies if policy else ():
        if candidate.container_name == name:
            return candidate
        if candidate.container_name == DEFAULT_POLICY:
            fallback = candidate
    return fallback


def controls_limits(name: str, policy: PodResourcePolicy | None) -> bool:
    """Return whether limits follow the requests, which is the default."""
    own = policy_for(name, policy)
    values = own.controlled_values if own else None
    return values is None or values == ContainerControlledValues.REQUESTS_AND_LIMITS


def controls_requests_only(name: str, policy: PodResourcePolicy | None) -> bool:
    """Return whether limits stay as the user wrote them."""
    own = policy_for(name, policy)
    return own is not None and own.controlled_values == ContainerControlledValues.REQUESTS_ONLY


def is_off(name: str, policy: PodResourcePolicy | None) -> bool:
    """Return whether the container is not scaled at all."""
    own = policy_for(name, policy)
    return own is not None and own.mode == ContainerScalingMode.OFF


def recommendation_for(
    name: str, recommendation: RecommendedPodResources | None
) -> RecommendedContainerResources | None:
    """Return the recommendation for one container."""
    listed = recommendation.container_recommendations if recommendation else ()
    return next((entry for entry in listed if entry.container_name == name), None)


@dataclass(frozen=True)
class ContainerResources:
    """Requests and limits to give to one container. Resources that are not listed stay as they are."""

    requests: ResourceList
    limits: ResourceList


NOTHING = ContainerResources({}, {})
