"""What each container of a pod should request and be limited to, once everything is capped."""

from dataclasses import dataclass, replace

from trimtab.decide.vertical.cap import NO_LIMIT_RANGES, Capped, Cut, LimitRanges, cap_for_pod
from trimtab.decide.vertical.compat import DEFAULT, Compat
from trimtab.decide.vertical.containers import controls_limits, recommendation_for, requests_and_limits
from trimtab.decide.vertical.proportional import proportional_limits
from trimtab.model.pod import Pod
from trimtab.model.resources import ResourceList
from trimtab.model.vpa.types import (
    PodResourcePolicy,
    RecommendedPodResources,
    UpdateMode,
    VerticalPodAutoscaler,
)


@dataclass(frozen=True)
class ContainerResources:
    """Requests and limits to give to one container; what is empty stays as it is."""

    requests: ResourceList
    limits: ResourceList


NOTHING = ContainerResources({}, {})


@dataclass(frozen=True)
class Sizing:
    """The resources of all containers, in the pod's order, with the words that explain them and every cut made."""

    containers: tuple[ContainerResources, ...]
    annotations: dict[str, tuple[str, ...]]
    cuts: tuple[Cut, ...] = ()


def size_pod(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    ranges: LimitRanges = NO_LIMIT_RANGES,
    compat: Compat = DEFAULT,
) -> Sizing:
    """Return what the VPA gives to each container of the pod."""
    capped = Capped(None)
    if vpa.status.recommendation is not None:
        capped = cap_for_pod(vpa, pod, ranges, compat)
    return size_by(capped, pod, vpa, ranges)


def size_by(capped: Capped, pod: Pod, vpa: VerticalPodAutoscaler, ranges: LimitRanges) -> Sizing:
    """Return the requests of an already capped recommendation, with limits that keep their ratio to them."""
    policy = _policy(vpa)
    default_limits = ranges.container.default if ranges.container else {}
    annotations = dict(capped.annotations)
    containers: list[ContainerResources] = []
    for container in pod.spec.containers:
        resources, notes = _size(container.name, pod, policy, capped.recommendation, default_limits)
        containers.append(resources)
        if notes:
            annotations[container.name] = (*annotations.get(container.name, ()), *notes)
    return Sizing(tuple(containers), annotations, capped.cuts)


def _policy(vpa: VerticalPodAutoscaler) -> PodResourcePolicy | None:
    mode = vpa.spec.update_policy.update_mode if vpa.spec.update_policy else None
    return None if mode == UpdateMode.OFF else vpa.spec.resource_policy


def _size(
    name: str,
    pod: Pod,
    policy: PodResourcePolicy | None,
    recommendation: RecommendedPodResources | None,
    default_limits: ResourceList,
) -> tuple[ContainerResources, tuple[str, ...]]:
    entry = recommendation_for(name, recommendation)
    if entry is None:
        return NOTHING, ()
    sized = ContainerResources(_named(entry.target), {})
    if not controls_limits(name, policy):
        return sized, ()
    requests, limits = requests_and_limits(pod, name)
    found, notes = proportional_limits(limits, requests, entry.target, default_limits)
    return (sized, ()) if found is None else (replace(sized, limits=found), notes)


def _named(amounts: ResourceList) -> ResourceList:
    """Drop a resource without a name: the API would refuse the whole pod for it."""
    return {resource: amount for resource, amount in amounts.items() if resource}
