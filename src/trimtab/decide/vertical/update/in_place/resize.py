"""The JSON patch for a pod's `resize` subresource, and the notes that go with it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trimtab.decide.vertical.admission.patches import (
    IN_PLACE_ANNOTATION,
    Existing,
    Operation,
    changes,
    resource_operations,
)
from trimtab.decide.vertical.admission.pod_annotations import ORIGINALS_ANNOTATION, Originals
from trimtab.decide.vertical.admission.startup_boost import (
    expired_boosts,
    resources_before_boost,
)
from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.resources.container_resources import NOTHING, ContainerResources
from trimtab.decide.vertical.resources.fitting import given
from trimtab.decide.vertical.resources.pod_resources import Sizing, size_pod
from trimtab.decide.vertical.resources.pod_rules import (
    NO_LIMIT_RANGES,
    LimitRanges,
    resize_refusal,
)
from trimtab.decide.vertical.update.disruption_budget import BOOST_PREFIX
from trimtab.model.core.pod import CPU, Pod, ResourceRequirements
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler


@dataclass(frozen=True)
class ResizePlan:
    """What a resize in place sends."""

    operations: tuple[Operation, ...] = ()
    originals: dict[str, str] = field(default_factory=dict)
    """Annotations to write first: what the user wrote, which a resize would make unknown."""
    annotations: dict[str, str | None] = field(default_factory=dict)
    """Annotations to write afterwards; None takes one away."""
    refusal: str = ""
    """Why the API server would refuse it, whatever the node; nothing is to be sent then."""
    resources: dict[str, ResourceRequirements] = field(default_factory=dict)
    """What each container that is resized has afterwards."""


def size_running_pod(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    ranges: LimitRanges = NO_LIMIT_RANGES,
    compat: VpaCompat = DEFAULT,
) -> Sizing:
    """Return what the VPA gives to a pod that runs, by the ratios that its user wrote."""
    if not compat.ratio_is_the_users:
        return size_pod(pod, vpa, ranges, compat)
    return size_pod(Originals.read(pod).template(pod), vpa, ranges, compat, running=pod)


def plan_resize(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    resources: Sequence[ContainerResources],
    now: datetime,
    compat: VpaCompat = DEFAULT,
) -> ResizePlan:
    """Return the patch and the notes of a resize; the CPU of containers that are boosted right now is left alone."""
    return plan_sizes(pod, _wanted(pod, vpa, resources, now, compat), expired_boosts(pod, vpa, now), compat)


def plan_sizes(
    pod: Pod,
    wanted: Sequence[ContainerResources | None],
    unboosted: Iterable[str] = (),
    compat: VpaCompat = DEFAULT,
) -> ResizePlan:
    """Return the patch and the notes that give each container what is wanted, None for those left alone.

    The startup boosts of the containers `unboosted` end with it.
    """
    operations: list[Operation] = []
    resized: dict[str, ContainerResources] = {}
    for index, container in enumerate(pod.spec.containers):
        sizes = wanted[index]
        if sizes is None:
            continue
        if compat.resizes_only_changes:
            sizes = changes(sizes, container)
            if not (sizes.requests or sizes.limits):
                continue
        resized[container.name] = sizes
        operations.extend(resource_operations(index, Existing.of(container), sizes))
    after = given(pod, [resized.get(container.name, NOTHING) for container in pod.spec.containers])
    refusal = resize_refusal(pod, after) if compat.sizes_are_admissible and operations else ""
    originals = Originals.read(pod).kept(pod, resized) if compat.ratio_is_the_users else None
    is_noted = compat.ratio_is_the_users and pod.metadata.annotations.get(IN_PLACE_ANNOTATION) == "true"
    return ResizePlan(
        tuple(operations),
        {ORIGINALS_ANNOTATION: originals} if originals is not None else {},
        {
            **({} if is_noted else {IN_PLACE_ANNOTATION: "true"}),
            # Without its note a container is sized as any other.
            **{BOOST_PREFIX + name: None for name in sorted(unboosted)},
        },
        refusal,
        {
            container.name: container.resources
            for container in after.spec.containers
            if container.name in resized
        },
    )


def _wanted(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    resources: Sequence[ContainerResources],
    now: datetime,
    compat: VpaCompat,
) -> list[ContainerResources | None]:
    """Return what each container should have; None for those that are left alone."""
    mode = vpa.spec.update_policy.update_mode if vpa.spec.update_policy else None
    is_off = mode == UpdateMode.OFF
    expired = expired_boosts(pod, vpa, now)
    found: list[ContainerResources | None] = []
    for index, container in enumerate(pod.spec.containers):
        recommended = NOTHING if is_off else resources[index]
        if container.name in expired:
            found.append(resources_before_boost(pod.metadata.annotations, container.name, recommended))
        elif is_off:
            found.append(None)
        elif BOOST_PREFIX + container.name in pod.metadata.annotations:
            found.append(_without_cpu(recommended) if compat.disruptions_last_until_ready else None)
        else:
            found.append(recommended)
    return found


def _without_cpu(sizes: ContainerResources) -> ContainerResources:
    """Return sizes but for the CPU."""
    requests, limits = (
        {name: amount for name, amount in amounts.items() if name != CPU}
        for amounts in (sizes.requests, sizes.limits)
    )
    return ContainerResources(requests, limits)
