"""Findings about manifests that are valid each, but not meant together.

Only the objects of one bundle are compared. Objects of the cluster are unknown here, so most findings are warnings.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trimtab.model.core.meta import CrossVersionObjectReference, NamespacedName, group_of
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.hpa.dry_run import is_dry_run
from trimtab.model.hpa.metric_kinds import measured_by
from trimtab.model.hpa.types import HorizontalPodAutoscaler
from trimtab.model.vpa.defaults import policies_of
from trimtab.model.vpa.types import (
    SCOPE_ANNOTATION,
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
class BundleFinding:
    """What is wrong with one member beside the others, with its position in the bundle and the field."""

    position: int
    field: str
    text: str
    is_error: bool = False


def bundle_findings(members: Sequence[Member]) -> list[BundleFinding]:
    """Return the findings about a bundle, in the order of its members."""
    findings = [
        *_same_name_twice(members),
        *_two_on_one_target(members),
        *_hpa_against_vpa(members),
        *_missing_scopes(members),
        *_scopes_without_selector(members),
    ]
    return sorted(findings, key=lambda finding: finding.position)


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


def _same_name_twice(members: Sequence[Member]) -> Iterator[BundleFinding]:
    names: set[tuple[str, str, str]] = set()
    for position, member in enumerate(members):
        name = (_group(member), member.kind, member.metadata.key)
        if name in names:
            yield BundleFinding(
                position,
                "metadata.name",
                "the same object stands in this bundle twice; the last one applied wins",
            )
        names.add(name)


def _two_on_one_target(members: Sequence[Member]) -> Iterator[BundleFinding]:
    """Warn of two HPAs on one workload, and of two VPAs on one workload and scope."""
    first: dict[tuple[Target, str], Member] = {}
    for position, member in enumerate(members):
        if isinstance(member, HorizontalPodAutoscaler) and not is_dry_run(member):
            claim = _target(member, member.spec.scale_target_ref), "HorizontalPodAutoscaler"
        elif isinstance(member, VerticalPodAutoscaler) and member.spec.target_ref:
            scope = next(iter(member.scope_names), "")
            claim = _target(member, member.spec.target_ref), f"VerticalPodAutoscaler/{scope}"
        else:
            continue
        other = first.setdefault(claim, member)
        if (_group(other), other.metadata.key) != (_group(member), member.metadata.key):
            yield _second(position, member, other)


def _second(position: int, member: Member, first: Member) -> BundleFinding:
    if isinstance(member, HorizontalPodAutoscaler):
        if _group(member) != _group(first):
            text = (
                f"HorizontalPodAutoscaler.{_group(first)} {first.metadata.key} scales the same workload: where another program "
                "serves the native one, the other does not act; keep one"
            )
            return BundleFinding(position, "spec.scaleTargetRef", text, is_error=True)
        text = "scales the same workload: both stop with AmbiguousSelector; keep one"
        return BundleFinding(position, "spec.scaleTargetRef", f"{first.metadata.key} {text}")
    text = (
        "is for the same pods: the older one controls its pods and this one has no effect; keep one, or give them "
        "different scopes"
    )
    return BundleFinding(position, "spec.targetRef", f"{first.metadata.key} {text}")


def _hpa_against_vpa(members: Sequence[Member]) -> Iterator[BundleFinding]:
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
                yield BundleFinding(
                    position,
                    "spec.targetRef",
                    f"HorizontalPodAutoscaler {key} scales {member.spec.target_ref} on {resource}, which this VPA changes: "
                    "each undoes the other's work; scale on another metric, or leave the resource out of controlledResources",
                )


def _measured(hpa: HorizontalPodAutoscaler) -> Iterator[str]:
    """Yield the resources that an HPA measures, by default CPU."""
    if not hpa.spec.metrics:
        yield CPU
    for metric in hpa.spec.metrics:
        if resource := measured_by(metric).resource:
            yield resource


def _missing_scopes(members: Sequence[Member]) -> Iterator[BundleFinding]:
    known = {member.metadata.key for member in members if isinstance(member, VPAScope)}
    for position, member in enumerate(members):
        if not isinstance(member, VerticalPodAutoscaler) or not member.scope_names:
            continue
        name = member.scope_names[0]
        if name and str(NamespacedName(member.metadata.namespace, name)) not in known:
            yield BundleFinding(
                position,
                "spec.vpaScope.name"
                if member.spec.vpa_scope
                else f"metadata.annotations[{SCOPE_ANNOTATION}]",
                f'VPAScope "{name}" is not in this bundle; it must exist in namespace {member.metadata.namespace} '
                "before this VPA is created",
            )


def _scopes_without_selector(members: Iterable[Member]) -> Iterator[BundleFinding]:
    for position, member in enumerate(members):
        if not isinstance(member, VPAScope):
            continue
        selectors = (member.spec.pod_selector, member.spec.node_selector)
        if not any(
            selector and (selector.match_labels or selector.match_expressions) for selector in selectors
        ):
            yield BundleFinding(
                position, "spec", "selects every pod, so it narrows nothing; set podSelector or nodeSelector"
            )


def _group(member: Member) -> str:
    return group_of(member.api_version)


def _target(member: Member, reference: CrossVersionObjectReference) -> Target:
    return (member.metadata.namespace, reference.group, reference.kind, reference.name)
