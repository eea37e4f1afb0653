"""The JSON patch for a pod's `resize` subresource, and the annotations that go with it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trimtab.decide.vertical.admission.patches import (
    IN_PLACE_ANNOTATION,
    ExistingObjects,
    Operation,
    differing_resources,
    resource_operations,
)
from trimtab.decide.vertical.admission.pod_annotations import (
    BOOST_PREFIX,
    ORIGINALS_ANNOTATION,
    OriginalResources,
)
from trimtab.decide.vertical.admission.startup_boost import expired_boosts, resources_before_boost
from trimtab.decide.vertical.resources.container_resources import NOTHING, ContainerResources
from trimtab.decide.vertical.resources.fitting import apply_sizes
from trimtab.decide.vertical.resources.limit_ranges import NO_LIMIT_RANGES, LimitRanges
from trimtab.decide.vertical.resources.pod_resources import Sizing, size_pod
from trimtab.decide.vertical.resources.pod_rules import resize_refusal
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.pod import CPU, Pod, ResourceRequirements
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler


@dataclass(frozen=True)
class ResizePlan:
    """What a resize in place sends."""

    operations: tuple[Operation, ...] = ()
    annotations_before: dict[str, str] = field(default_factory=dict)
    """Annotations to write first: the user's own resources, which a resize would hide."""
    annotations_after: dict[str, str | None] = field(default_factory=dict)
    """Annotations to write afterwards; None removes one."""
    refusal: str = ""
    """Why the API server would refuse the resize on any node. Then nothing is sent."""
    resources: dict[str, ResourceRequirements] = field(default_factory=dict)
    """The resources after the resize, by container that is resized."""


def size_running_pod(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    ranges: LimitRanges = NO_LIMIT_RANGES,
    rules: Rules = Rules.TRIMTAB,
    server_rules: ServerRules = KUBERNETES_1_36,
) -> Sizing:
    """Return what the VPA gives to a running pod, by the ratios that its user wrote."""
    if not rules.ours:
        return size_pod(pod, vpa, ranges, rules, server_rules=server_rules)
    return size_pod(OriginalResources.read(pod).as_template(pod), vpa, ranges, rules, pod, server_rules)


def plan_resize(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    resources: Sequence[ContainerResources],
    now: datetime,
    rules: Rules = Rules.TRIMTAB,
    server_rules: ServerRules = KUBERNETES_1_36,
) -> ResizePlan:
    """Plan a resize to these sizes, except the CPU of containers that are still boosted."""
    wanted = _wanted(pod, vpa, resources, now, rules)
    return plan_sizes(pod, wanted, expired_boosts(pod, vpa, now), rules, server_rules)


def plan_sizes(
    pod: Pod,
    wanted: Sequence[ContainerResources | None],
    ended_boosts: Collection[str] = (),
    rules: Rules = Rules.TRIMTAB,
    server_rules: ServerRules = KUBERNETES_1_36,
) -> ResizePlan:
    """Plan a resize that gives each container its wanted size.

    None leaves a container alone. The startup boosts of the containers `ended_boosts` end with it.
    """
    resized = _resized(pod, wanted, rules)
    operations = tuple(
        operation
        for index, container in enumerate(pod.spec.containers)
        if container.name in resized
        for operation in resource_operations(index, ExistingObjects.of(container), resized[container.name])
    )
    after = apply_sizes(pod, [resized.get(container.name, NOTHING) for container in pod.spec.containers])
    return ResizePlan(
        operations,
        _annotations_before(pod, resized, rules),
        _annotations_after(pod, ended_boosts, rules),
        resize_refusal(pod, after, server_rules) if rules.ours and operations else "",
        {
            container.name: container.resources
            for container in after.spec.containers
            if container.name in resized
        },
    )


def _resized(
    pod: Pod, wanted: Sequence[ContainerResources | None], rules: Rules
) -> dict[str, ContainerResources]:
    """Return the sizes to send, by container.

    Upstream also sends sizes that change nothing.
    """
    resized: dict[str, ContainerResources] = {}
    for container, size in zip(pod.spec.containers, wanted, strict=True):
        if size is None:
            continue
        if rules.ours:
            size = differing_resources(size, container)
            if not (size.requests or size.limits):
                continue
        resized[container.name] = size
    return resized


def _annotations_before(pod: Pod, resized: Mapping[str, ContainerResources], rules: Rules) -> dict[str, str]:
    if not rules.ours:
        return {}
    originals = OriginalResources.read(pod).annotation_for_resize(pod, resized)
    return {ORIGINALS_ANNOTATION: originals} if originals is not None else {}


def _annotations_after(pod: Pod, ended_boosts: Collection[str], rules: Rules) -> dict[str, str | None]:
    is_set = rules.ours and pod.metadata.annotations.get(IN_PLACE_ANNOTATION) == "true"
    return {
        **({} if is_set else {IN_PLACE_ANNOTATION: "true"}),
        # Without its boost annotation a container is sized like any other.
        **{BOOST_PREFIX + name: None for name in sorted(ended_boosts)},
    }


def _wanted(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    resources: Sequence[ContainerResources],
    now: datetime,
    rules: Rules,
) -> list[ContainerResources | None]:
    mode = vpa.spec.update_policy.update_mode if vpa.spec.update_policy else None
    is_off = mode == UpdateMode.OFF
    expired = expired_boosts(pod, vpa, now)
    wanted: list[ContainerResources | None] = []
    for container, size in zip(pod.spec.containers, resources, strict=True):
        recommended = NOTHING if is_off else size
        if container.name in expired:
            wanted.append(resources_before_boost(pod.metadata.annotations, container.name, recommended))
        elif is_off:
            wanted.append(None)
        elif BOOST_PREFIX + container.name in pod.metadata.annotations:
            wanted.append(_without_cpu(recommended) if rules.ours else None)
        else:
            wanted.append(recommended)
    return wanted


def _without_cpu(sizes: ContainerResources) -> ContainerResources:
    requests, limits = (
        {name: amount for name, amount in amounts.items() if name != CPU}
        for amounts in (sizes.requests, sizes.limits)
    )
    return ContainerResources(requests, limits)
