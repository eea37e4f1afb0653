"""CPU startup boost: more CPU while a container starts, until some time after the pod is Ready."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from trimtab.decide.vertical.admission.pod_annotations import BOOST_PREFIX
from trimtab.decide.vertical.resources.container_resources import (
    NOTHING,
    ContainerResources,
    amount_of,
    controls_limits,
    controls_requests_only,
    policy_for,
)
from trimtab.decide.vertical.resources.proportional import proportional_limits
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.pod import CPU, MEMORY, Container, Pod, ResourceList, ResourceRequirements
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.times import ZERO_TIME, int32_seconds
from trimtab.model.vpa.types import GenericStartupBoost, VerticalPodAutoscaler

READY = "Ready"
_FACTOR = "Factor"
_QUANTITY = "Quantity"
_ONE_MILLI = Quantity.from_milli(1)


class BoostError(ValueError):
    """A startup boost that cannot be computed. The message names the wrong field."""


@dataclass(frozen=True)
class BoostedResources:
    """A container's resources with the boost, and the annotation that stores those without."""

    resources: ContainerResources
    annotation: str
    value: str
    has_base: bool = True
    """Whether the container has a CPU request without the boost."""


def is_boosted(pod: Pod) -> bool:
    """Return whether a container of the pod has a startup boost."""
    return any(key.startswith(BOOST_PREFIX) for key in pod.metadata.annotations)


def _boosted_containers(pod: Pod) -> Iterator[str]:
    return (key[len(BOOST_PREFIX) :] for key in pod.metadata.annotations if key.startswith(BOOST_PREFIX))


def boost_for(container: str, vpa: VerticalPodAutoscaler) -> GenericStartupBoost | None:
    """Return the boost in force: the container policy's, else the VPA's."""
    policy = policy_for(container, vpa.spec.resource_policy)
    chosen = policy.startup_boost if policy and policy.startup_boost else vpa.spec.startup_boost
    return chosen.cpu if chosen else None


def add_boost(
    container: Container,
    vpa: VerticalPodAutoscaler,
    resources: ContainerResources,
    max_cpu: Quantity = Quantity.zero,
    rules: Rules = Rules.TRIMTAB,
) -> BoostedResources | None:
    """Return the container's resources with its startup boost, or None if it has none.

    The annotation stores the resources without the boost. Upstream stores those of the template.
    """
    boost = boost_for(container.name, vpa)
    if boost is None:
        return None
    base = amount_of(resources.requests, CPU)
    if base.is_zero:
        base = amount_of(container.resources.requests, CPU)
    cpu = _boosted_cpu(base, boost)
    if not max_cpu.is_zero and cpu > max_cpu:
        cpu = max_cpu
    without_boost = resources if rules.ours else NOTHING
    return BoostedResources(
        _with_cpu(container, vpa, resources, cpu),
        BOOST_PREFIX + container.name,
        _annotation_value(container, without_boost),
        not base.is_zero,
    )


def _boosted_cpu(base: Quantity, boost: GenericStartupBoost) -> Quantity:
    kind = boost.type or _FACTOR
    if kind == _FACTOR:
        if boost.factor is None:
            raise BoostError("startupBoost.CPU.Factor is required when Type is Factor or not specified")
        if boost.factor < 1:
            raise BoostError("boost factor must be >= 1")
        return Quantity.from_milli(base.milli_value() * boost.factor)
    if kind == _QUANTITY:
        if boost.quantity is None:
            raise BoostError("startupBoost.CPU.Quantity is required when Type is Quantity")
        return Quantity.from_milli(base.milli_value() + boost.quantity.milli_value())
    raise BoostError(f"unsupported startup boost type: {boost.type}")


def _with_cpu(
    container: Container, vpa: VerticalPodAutoscaler, resources: ContainerResources, cpu: Quantity
) -> ContainerResources:
    own = container.resources
    policy = vpa.spec.resource_policy
    if controls_requests_only(container.name, policy):
        limit = own.limits.get(CPU)
        if limit is not None and cpu > limit:
            # One milli below the limit keeps the pod Burstable, as it was.
            cpu = limit - _ONE_MILLI if limit > _ONE_MILLI else limit
    boosted = replace(resources, requests={**resources.requests, CPU: cpu})
    if controls_limits(container.name, policy):
        limits, _ = proportional_limits(own.limits, own.requests, {CPU: cpu}, {})
        if limits and CPU in limits:
            boosted = replace(boosted, limits={**boosted.limits, CPU: limits[CPU]})
    return boosted


def _annotation_value(container: Container, given: ContainerResources) -> str:
    def sized(amounts: ResourceList) -> dict[str, str]:
        return {resource: str(amounts[resource]) for resource in (CPU, MEMORY) if resource in amounts}

    own = container.resources
    requests, limits = {**own.requests, **given.requests}, {**own.limits, **given.limits}
    return wire.encode({"requests": sized(requests), "limits": sized(limits)}).decode()


def expired_boosts(pod: Pod, vpa: VerticalPodAutoscaler, now: datetime) -> frozenset[str]:
    """Return the containers whose boost is over: the pod is Ready for longer than the boost lasts."""
    ready = pod.status.condition(READY)
    if ready is None or ready.status != "True":
        return frozenset()
    elapsed = now - (ready.last_transition_time or ZERO_TIME)
    return frozenset(
        name
        for name in _boosted_containers(pod)
        if not (duration := _duration(name, vpa)) or elapsed > duration
    )


def next_boost_end(pod: Pod, vpa: VerticalPodAutoscaler, now: datetime) -> datetime | None:
    """Return when the next of a Ready pod's boosts is over, or None if all are."""
    ready = pod.status.condition(READY)
    if ready is None or ready.status != "True" or ready.last_transition_time is None:
        return None
    since = ready.last_transition_time
    # A boost is over when more than its duration has passed, and times of conditions have whole seconds.
    ends = (since + _duration(name, vpa) + timedelta(seconds=1) for name in _boosted_containers(pod))
    return min((end for end in ends if end > now), default=None)


def _duration(container: str, vpa: VerticalPodAutoscaler) -> timedelta:
    policy = policy_for(container, vpa.spec.resource_policy)
    own = policy.startup_boost.cpu if policy and policy.startup_boost else None
    general = vpa.spec.startup_boost.cpu if vpa.spec.startup_boost else None
    for boost in (own, general):
        if boost is not None and boost.duration_seconds is not None:
            return int32_seconds(boost.duration_seconds)
    return timedelta()


def without_boosts(pod: Pod) -> Pod:
    """Return the pod with its CPU before the boosts. An unreadable annotation leaves the CPU as it is."""
    before = {}
    for container in pod.spec.containers:
        with suppress(BoostError):
            if BOOST_PREFIX + container.name in pod.metadata.annotations:
                before[container.name] = resources_before_boost(
                    pod.metadata.annotations, container.name, NOTHING
                )
    if not before:
        return pod
    containers = tuple(
        msgspec.structs.replace(
            container, resources=_without_boost(container.resources, before[container.name])
        )
        if container.name in before
        else container
        for container in pod.spec.containers
    )
    statuses = tuple(
        msgspec.structs.replace(status, resources=_without_boost(status.resources, before[status.name]))
        if status.name in before and status.resources is not None
        else status
        for status in pod.status.container_statuses
    )
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, containers=containers),
        status=msgspec.structs.replace(pod.status, container_statuses=statuses),
    )


def _without_boost(own: ResourceRequirements, before: ContainerResources) -> ResourceRequirements:
    def restored(amounts: ResourceList, former: ResourceList) -> ResourceList:
        others = {name: amount for name, amount in amounts.items() if name != CPU}
        return {**others, CPU: former[CPU]} if CPU in former else others

    return msgspec.structs.replace(
        own, requests=restored(own.requests, before.requests), limits=restored(own.limits, before.limits)
    )


def resources_before_boost(
    annotations: Mapping[str, str], container: str, recommended: ContainerResources
) -> ContainerResources:
    """Return the container's resources after the boost: the recommended ones, else those before it."""
    value = annotations.get(BOOST_PREFIX + container)
    if recommended.requests or recommended.limits or value is None:
        return recommended
    try:
        original = wire.decode(value, ResourceRequirements)
    except wire.WireError as error:
        raise BoostError(f"annotation {BOOST_PREFIX}{container} does not hold resources: {error}") from error
    return ContainerResources(original.requests, original.limits)
