"""Admits one pod: raw pod in, JSON patch out.

The pod is raw JSON, since a patch depends on whether `requests` is absent or empty, which typed values do not show.
No pod is refused here. A malformed pod is left alone, with the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from trimtab.decide.vertical.admission.patches import (
    HELD_BACK_ANNOTATION,
    UPDATES_ANNOTATION,
    ExistingObjects,
    Operation,
    add_annotation,
    add_empty_annotations,
    container_text,
    describe_resources,
    differing_resources,
    resource_operations,
    updates_text,
)
from trimtab.decide.vertical.admission.pod_annotations import (
    OBSERVED_CONTAINERS_ANNOTATION,
    ORIGINALS_ANNOTATION,
    OriginalResources,
    format_observed,
)
from trimtab.decide.vertical.admission.startup_boost import BoostError, add_boost
from trimtab.decide.vertical.control.claims import VPAIndex
from trimtab.decide.vertical.control.control import NO_CONTROL, Control, control_of
from trimtab.decide.vertical.control.controllers import ControllerIndex
from trimtab.decide.vertical.control.scope import NodeLabels
from trimtab.decide.vertical.resources.container_resources import (
    NOTHING,
    ContainerResources,
    is_off,
    status_of,
)
from trimtab.decide.vertical.resources.fitting import apply_sizes, first_violation
from trimtab.decide.vertical.resources.limit_ranges import NO_LIMIT_RANGES, LimitRanges
from trimtab.decide.vertical.resources.pod_resources import Sizing, size_pod
from trimtab.decide.vertical.resources.pod_rules import never_resized
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.pod import Pod, PodStatus
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import UpdateMode, VerticalPodAutoscaler

_UNNAMED = "%"
_NO_BOOST = "no startup boost"
_NO_BASE = "without a CPU request there is none to go back to, and a resize cannot remove one"


@dataclass(frozen=True)
class AdmissionContext:
    """The cluster and the settings that an admission depends on."""

    index: VPAIndex
    owners: ControllerIndex
    nodes: NodeLabels = field(default_factory=dict)
    ranges: Mapping[str, LimitRanges] = field(default_factory=dict)
    """Merged LimitRanges by namespace."""
    gates: FeatureGates = field(default_factory=FeatureGates)
    rules: Rules = Rules.TRIMTAB
    max_boost_cpu: Quantity = Quantity.zero
    serves_resize: bool = True
    """Whether the cluster resizes pods in place, which ends a startup boost."""
    server_rules: ServerRules = KUBERNETES_1_36


@dataclass(frozen=True)
class PodAdmission:
    """The result for one pod: operations to apply, its controlling VPA, and the reason."""

    operations: tuple[Operation, ...]
    reason: str
    control: Control = NO_CONTROL
    sizing: Sizing | None = None
    error: str = ""


def admit_pod(raw: object, namespace: str, context: AdmissionContext) -> PodAdmission:
    """Return the patch for a pod under creation in `namespace`. Never raises and never refuses."""
    try:
        pod = wire.convert(raw, Pod)
    except (wire.WireError, RecursionError) as error:
        return PodAdmission((), "the pod cannot be read", error=str(error))
    pod = _located(pod, namespace, context.rules)
    if context.rules.ours:
        # A pod under creation has no status; one that was posted with it is another pod's.
        pod = msgspec.structs.replace(pod, status=PodStatus())
    control = control_of(pod, context.index, context.owners, context.nodes, is_new=True)
    if control.claim is None and control.booster is not None and context.gates.cpu_startup_boost:
        reason = f"VPA {control.booster.key} boosts its start, in mode Off"
        control = replace(control, claim=control.booster, reason=reason)
    if control.claim is None:
        return PodAdmission((), control.reason, control)
    vpa = control.claim.vpa
    assert isinstance(raw, dict)
    try:
        return _patched(raw, pod, control, vpa, context)
    except BoostError as error:
        return PodAdmission((), "its startup boost cannot be computed", control, error=str(error))


def _located(pod: Pod, namespace: str, rules: Rules) -> Pod:
    """Fill in what the API server fills in only after admission: name and namespace."""
    metadata = pod.metadata
    if not metadata.name:
        metadata = msgspec.structs.replace(
            metadata, name=metadata.generate_name + _UNNAMED, namespace=namespace
        )
    elif not metadata.namespace and rules.ours:
        metadata = msgspec.structs.replace(metadata, namespace=namespace)
    return msgspec.structs.replace(pod, metadata=metadata)


def _patched(
    raw: Mapping[str, Any],
    pod: Pod,
    control: Control,
    vpa: VerticalPodAutoscaler,
    context: AdmissionContext,
) -> PodAdmission:
    ranges = context.ranges.get(pod.metadata.namespace, NO_LIMIT_RANGES)
    existing = existing_resources(raw, pod, context.rules)
    if not context.rules.ours:
        sizing = size_pod(pod, vpa, ranges, context.rules, server_rules=context.server_rules)
        operations = calculate_operations(pod, vpa, sizing, existing, context)
    else:
        before = OriginalResources.read(pod).restore(pod)
        sizing = size_pod(before, vpa, ranges, context.rules, server_rules=context.server_rules)
        operations = _changed_operations(pod, before, vpa, sizing, existing, context)
    if not isinstance(_part(raw, "metadata").get("annotations"), dict) and (
        operations or not context.rules.ours
    ):
        operations = [add_empty_annotations(), *operations]
    if not context.rules.ours:
        operations.append(add_annotation(OBSERVED_CONTAINERS_ANNOTATION, _observed(pod)))
    reason = control.reason if operations else "it already has what is recommended"
    return PodAdmission(tuple(operations), reason, control, sizing)


def calculate_operations(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    sizing: Sizing,
    existing: tuple[ExistingObjects, ...],
    context: AdmissionContext,
) -> list[Operation]:
    """Return every operation of upstream's patch for one pod, also those that change nothing."""
    operations: list[Operation] = []
    updates: list[str] = []
    for index, wanted, boosts in _wanted(pod, vpa, sizing, context).containers:
        operations.extend(boosts)
        added = resource_operations(index, existing[index], wanted)
        if added:
            operations.extend(added)
            words = (*_annotations(pod, index, vpa, sizing), *describe_resources(wanted))
            updates.append(container_text(index, words))
    if updates:
        operations.append(add_annotation(UPDATES_ANNOTATION, updates_text(vpa.metadata.name, updates)))
    return operations


def _changed_operations(
    pod: Pod,
    before: Pod,
    vpa: VerticalPodAutoscaler,
    sizing: Sizing,
    existing: tuple[ExistingObjects, ...],
    context: AdmissionContext,
) -> list[Operation]:
    """Return the operations that change something. Annotations describe the whole change of the user's pod."""
    operations: list[Operation] = []
    annotations: dict[str, str] = {}
    updates: list[str] = []
    changed: dict[int, ContainerResources] = {}
    all_wanted = _wanted(before, vpa, sizing, context)
    for index, wanted, boosts in all_wanted.containers:
        annotations.update({_annotation_name(operation): operation["value"] for operation in boosts})
        total = differing_resources(wanted, before.spec.containers[index])
        if total.requests or total.limits:
            words = (*_annotations(before, index, vpa, sizing), *describe_resources(total))
            updates.append(container_text(index, words))
            changed[index] = total
        missing = differing_resources(wanted, pod.spec.containers[index])
        if missing.requests or missing.limits:
            operations.extend(resource_operations(index, existing[index], missing))
    if updates:
        annotations[UPDATES_ANNOTATION] = updates_text(vpa.metadata.name, updates)
        annotations[ORIGINALS_ANNOTATION] = OriginalResources.annotation_for_admission(before, changed)
    held_back = ("" if _is_mode_off(vpa) else sizing.note, all_wanted.without_boost)
    if any(held_back):
        annotations[HELD_BACK_ANNOTATION] = "; ".join(filter(None, held_back))
    annotations[OBSERVED_CONTAINERS_ANNOTATION] = _observed(pod)
    present = pod.metadata.annotations
    operations.extend(
        add_annotation(name, value) for name, value in annotations.items() if present.get(name) != value
    )
    return operations


@dataclass(frozen=True)
class _Wanted:
    """The wanted resources of a pod."""

    containers: list[tuple[int, ContainerResources, list[Operation]]]
    """Index of each container that may change, its resources, and the annotations of its boost."""
    without_boost: str = ""
    """Which startup boosts are omitted, and why."""


def _wanted(pod: Pod, vpa: VerticalPodAutoscaler, sizing: Sizing, context: AdmissionContext) -> _Wanted:
    """Return the wanted resources, without boosts that the API server would refuse or never end."""
    is_boosting = context.gates.cpu_startup_boost
    wanted = _boosted(pod, vpa, sizing, context, is_boosting=is_boosting)
    if not context.rules.ours or not any(boosts for _, _, boosts in wanted.containers):
        return wanted
    reason = _never_ends(pod, context)
    if not reason:
        sizes = {index: resources for index, resources, _ in wanted.containers}
        boosted = apply_sizes(pod, [sizes.get(index, NOTHING) for index in range(len(pod.spec.containers))])
        ranges = context.ranges.get(pod.metadata.namespace, NO_LIMIT_RANGES)
        violation = first_violation(pod, boosted, ranges, context.server_rules)
        reason = violation.message if violation is not None else ""
    if not reason:
        return wanted
    return replace(
        _boosted(pod, vpa, sizing, context, is_boosting=False), without_boost=f"{_NO_BOOST}: {reason}"
    )


def _never_ends(pod: Pod, context: AdmissionContext) -> str:
    """Return why a startup boost of the pod could never end, or empty if it could."""
    if not context.serves_resize:
        return "this cluster resizes no pod in place"
    return never_resized(pod.spec, context.server_rules)


def _boosted(
    pod: Pod, vpa: VerticalPodAutoscaler, sizing: Sizing, context: AdmissionContext, *, is_boosting: bool
) -> _Wanted:
    wanted: list[tuple[int, ContainerResources, list[Operation]]] = []
    without_base: list[str] = []
    for index, container in enumerate(pod.spec.containers):
        resources = NOTHING if _is_mode_off(vpa) else sizing.containers[index]
        boosts: list[Operation] = []
        if context.gates.cpu_startup_boost:
            if is_off(container.name, vpa.spec.resource_policy):
                continue
            boosted = None
            if is_boosting:
                boosted = add_boost(container, vpa, resources, context.max_boost_cpu, context.rules)
            if boosted is not None and context.rules.ours and not boosted.has_base:
                without_base.append(container.name)
            elif boosted is not None:
                resources = boosted.resources
                boosts.append(add_annotation(boosted.annotation, boosted.value))
        wanted.append((index, resources, boosts))
    reason = f"{_NO_BOOST} of {', '.join(without_base)}: {_NO_BASE}" if without_base else ""
    return _Wanted(wanted, reason)


def existing_resources(
    raw: Mapping[str, Any], pod: Pod, rules: Rules = Rules.TRIMTAB
) -> tuple[ExistingObjects, ...]:
    """Return which resource objects each container has, by its status if that has resources, else its spec."""
    containers = _part(raw, "spec").get("containers") or ()
    existing = []
    for container, data in zip(pod.spec.containers, containers, strict=True):
        resources = _part(data, "resources")
        status = status_of(pod, container.name)
        if status is not None and status.resources is not None:
            requests, limits = bool(status.resources.requests), bool(status.resources.limits)
        else:
            requests, limits = _is_object(resources, "requests"), _is_object(resources, "limits")
        exists = _is_object(data, "resources") if rules.ours else requests or limits
        existing.append(ExistingObjects(requests, limits, exists))
    return tuple(existing)


def _part(data: object, key: str) -> Mapping[str, Any]:
    part = data.get(key) if isinstance(data, dict) else None
    return part if isinstance(part, dict) else {}


def _is_object(data: Mapping[str, Any], key: str) -> bool:
    return isinstance(data.get(key), dict)


def _is_mode_off(vpa: VerticalPodAutoscaler) -> bool:
    policy = vpa.spec.update_policy
    return policy is not None and policy.update_mode == UpdateMode.OFF


def _annotations(pod: Pod, index: int, vpa: VerticalPodAutoscaler, sizing: Sizing) -> tuple[str, ...]:
    return () if _is_mode_off(vpa) else sizing.annotations.get(pod.spec.containers[index].name, ())


def _annotation_name(operation: Operation) -> str:
    name: str = operation["path"].rpartition("/")[2]
    return name.replace("~1", "/").replace("~0", "~")


def _observed(pod: Pod) -> str:
    return format_observed(tuple(container.name for container in pod.spec.containers))
