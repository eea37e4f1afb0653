"""What several manifests mean together: legal each for itself, surely not meant side by side.

Only objects of one bundle are compared. What the cluster holds besides is not known here, so these are warnings.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trimtab.model.core.meta import CrossVersionObjectReference
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.hpa.types import HorizontalPodAutoscaler, MetricSourceType
from trimtab.model.vpa.defaults import policies_of
from trimtab.model.vpa.types import (
    ContainerResourcePolicy,
    ContainerScalingMode,
    UpdateMode,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerCheckpoint,
    VPAScope,
)

Member: TypeAlias = (
    HorizontalPodAutoscaler | VerticalPodAutoscaler | VPAScope | VerticalPodAutoscalerCheckpoint
)
Target: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True)
class BundleWarning:
    """A doubt about one member: its position in the bundle, the field, and what to consider."""

    position: int
    field: str
    text: str


def bundle_warnings(members: Sequence[Member]) -> list[BundleWarning]:
    """Return what should make the author of a bundle think again, in the order of its members."""
    found = [
        *_same_name_twice(members),
        *_two_on_one_target(members),
        *_hpa_against_vpa(members),
        *_missing_scopes(members),
        *_scopes_without_selector(members),
    ]
    return sorted(found, key=lambda warning: warning.position)


def controlled_resources(vpa: VerticalPodAutoscaler) -> frozenset[str]:
    """Return the resources that a VPA may change on some container of its pods."""
    if vpa.spec.update_policy and vpa.spec.update_policy.update_mode == UpdateMode.OFF:
        return frozenset()
    policies = {policy.container_name: policy for policy in policies_of(vpa)}
    # Containers that no policy names are scaled as well.
    policies.setdefault("*", ContainerResourcePolicy(container_name="*"))
    return frozenset(
        resource
        for policy in policies.values()
        if policy.mode != ContainerScalingMode.OFF
        for resource in (policy.controlled_resources or (CPU, MEMORY))
    )


def _same_name_twice(members: Sequence[Member]) -> Iterator[BundleWarning]:
    seen: dict[tuple[str, str], int] = {}
    for position, member in enumerate(members):
        name = (member.kind, member.metadata.key)
        if name in seen:
            yield BundleWarning(
                position,
                "metadata.name",
                "the same object stands in this bundle twice; the last one applied wins",
            )
        seen[name] = position


def _two_on_one_target(members: Sequence[Member]) -> Iterator[BundleWarning]:
    """Two HPAs on one workload always fight; of two VPAs with one scope the older wins."""
    autoscalers: dict[tuple[Target, str], list[int]] = defaultdict(list)
    for position, member in enumerate(members):
        if isinstance(member, HorizontalPodAutoscaler):
            autoscalers[_target(member, member.spec.scale_target_ref), "HorizontalPodAutoscaler"].append(
                position
            )
        elif isinstance(member, VerticalPodAutoscaler) and member.spec.target_ref:
            scope = member.spec.vpa_scope.name if member.spec.vpa_scope else ""
            autoscalers[_target(member, member.spec.target_ref), f"VerticalPodAutoscaler/{scope}"].append(
                position
            )
    for positions in autoscalers.values():
        first = members[positions[0]]
        for position in positions[1:]:
            if members[position].metadata.key != first.metadata.key:
                yield _second(position, members[position], first)


def _second(position: int, member: Member, first: Member) -> BundleWarning:
    if isinstance(member, HorizontalPodAutoscaler):
        consequence = "both stop with AmbiguousSelector; keep one"
        return BundleWarning(
            position, "spec.scaleTargetRef", f"{first.metadata.key} scales the same workload: {consequence}"
        )
    consequence = (
        "the older one controls its pods and this one has no effect; keep one, or give them different scopes"
    )
    return BundleWarning(
        position, "spec.targetRef", f"{first.metadata.key} is for the same pods: {consequence}"
    )


def _hpa_against_vpa(members: Sequence[Member]) -> Iterator[BundleWarning]:
    measured: dict[Target, list[tuple[str, str]]] = defaultdict(list)
    for member in members:
        if isinstance(member, HorizontalPodAutoscaler):
            target = _target(member, member.spec.scale_target_ref)
            measured[target] += [
                (member.metadata.key, resource) for resource in sorted(set(_measured(member)))
            ]
    for position, member in enumerate(members):
        if not isinstance(member, VerticalPodAutoscaler) or not member.spec.target_ref:
            continue
        for key, resource in measured[_target(member, member.spec.target_ref)]:
            if resource in controlled_resources(member):
                yield BundleWarning(
                    position,
                    "spec.targetRef",
                    f"HorizontalPodAutoscaler {key} scales {member.spec.target_ref} on {resource}, which this VPA changes: "
                    "each undoes the other's work; scale on another metric, or leave the resource out of controlledResources",
                )


def _measured(hpa: HorizontalPodAutoscaler) -> Iterator[str]:
    """Yield the resources an HPA measures; without any metric it is CPU, the default."""
    if not hpa.spec.metrics:
        yield CPU
    for metric in hpa.spec.metrics:
        if metric.type == MetricSourceType.RESOURCE and metric.resource:
            yield metric.resource.name
        elif metric.type == MetricSourceType.CONTAINER_RESOURCE and metric.container_resource:
            yield metric.container_resource.name


def _missing_scopes(members: Sequence[Member]) -> Iterator[BundleWarning]:
    known = {member.metadata.key for member in members if isinstance(member, VPAScope)}
    for position, member in enumerate(members):
        if (
            not isinstance(member, VerticalPodAutoscaler)
            or not member.spec.vpa_scope
            or not member.spec.vpa_scope.name
        ):
            continue
        name = member.spec.vpa_scope.name
        if f"{member.metadata.namespace}/{name}" not in known:
            yield BundleWarning(
                position,
                "spec.vpaScope.name",
                f'VPAScope "{name}" is not in this bundle; it must exist in namespace {member.metadata.namespace} '
                "before this VPA is created",
            )


def _scopes_without_selector(members: Iterable[Member]) -> Iterator[BundleWarning]:
    for position, member in enumerate(members):
        if isinstance(member, VPAScope) and not _narrows(member):
            yield BundleWarning(
                position, "spec", "selects every pod, so it narrows nothing; set podSelector or nodeSelector"
            )


def _narrows(scope: VPAScope) -> bool:
    selectors = (scope.spec.pod_selector, scope.spec.node_selector)
    return any(selector and (selector.match_labels or selector.match_expressions) for selector in selectors)


def _target(member: Member, reference: CrossVersionObjectReference) -> Target:
    return (member.metadata.namespace, reference.group, reference.kind, reference.name)
