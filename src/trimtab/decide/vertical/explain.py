"""Explains why a VPA recommends what it does, and why a pod is changed or left alone.

Nothing is decided here. The values that decisions return are collected, as data for `--output json` and as lines of
text.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from trimtab.decide.vertical.control.claims import VpaClaim, VPAIndex
from trimtab.decide.vertical.control.control import control_of
from trimtab.decide.vertical.control.controllers import ControllerIndex, ControllerKey, topmost_controller
from trimtab.decide.vertical.control.scope import NodeLabels, Scope, ScopeError
from trimtab.decide.vertical.recommend.recommendation import ContainerRecommendation
from trimtab.decide.vertical.resources.capping import Cut
from trimtab.decide.vertical.resources.container_resources import requests_and_limits
from trimtab.decide.vertical.resources.limit_ranges import NO_LIMIT_RANGES, LimitRanges
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import PodUpdateResult
from trimtab.decide.vertical.update.resize.plan import size_running_pod
from trimtab.model.core.pod import Pod, ResourceList
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.json.wire import Wire
from trimtab.model.readable import readable_amount
from trimtab.model.vpa.types import VerticalPodAutoscaler


class CompetingVpa(Wire):
    """A VPA of the same workload that does not control the pod, and why."""

    vpa: str
    reason: str


class ContainerExplanation(Wire):
    """The requests of one container, and what it would get now."""

    name: str
    requests: ResourceList
    wanted_requests: ResourceList
    wanted_limits: ResourceList
    cuts: tuple[str, ...] = ()


class PodExplanation(Wire):
    """The VPA that controls a pod, the VPAs its usage counts for, its sizes, and the last update."""

    pod: str
    controlled_by: str | None
    reason: str
    lost: tuple[CompetingVpa, ...] = ()
    conflicts: tuple[str, ...] = ()
    teaches: tuple[str, ...] = ()
    """The VPAs that its usage counts for."""
    containers: tuple[ContainerExplanation, ...] = ()
    update: str = ""


class AmountExplanation(Wire):
    """The derivation of one recommended amount."""

    container: str
    bound: str
    resource: str
    amount: int
    text: str


class VPAExplanation(Wire):
    """The scope of a VPA, the pods that feed its profile, and the derivation of each number."""

    vpa: str
    mode: str
    level: int
    scope: str
    fed_by: tuple[str, ...] = ()
    not_fed_by: dict[str, str] = msgspec.field(default_factory=dict)
    """Pods of the same workload that do not feed it, with the reason."""
    recommends: dict[str, ResourceList] = msgspec.field(default_factory=dict)
    """The target of each container, as the status has it."""
    saved_at: str = ""
    """When the checkpoint behind the amounts was saved; empty if they come from the recommender itself."""
    amounts: tuple[AmountExplanation, ...] = ()
    cuts: tuple[str, ...] = ()


@dataclass(frozen=True)
class SizingRules:
    """What bounds the sizes of a pod besides its VPA."""

    ranges: LimitRanges = NO_LIMIT_RANGES
    rules: Rules = Rules.TRIMTAB
    server: ServerRules = KUBERNETES_1_36


_DEFAULT_SIZING = SizingRules()


def explain_pod(
    pod: Pod,
    index: VPAIndex,
    owners: ControllerIndex,
    nodes: NodeLabels,
    sizing: SizingRules = _DEFAULT_SIZING,
    last_update: PodUpdateResult | None = None,
) -> PodExplanation:
    """Explain one pod: control, sizes, and the result of the last update loop if given."""
    control = control_of(pod, index, owners, nodes)
    return PodExplanation(
        pod=pod.metadata.key,
        controlled_by=control.key,
        reason=control.reason,
        lost=tuple(CompetingVpa(vpa=claim.key, reason=reason) for claim, reason in control.lost),
        conflicts=tuple(conflict.message for conflict in control.conflicts),
        teaches=tuple(claim.key for claim in control.receivers),
        containers=tuple(_containers(pod, control.claim, sizing)) if control.claim else (),
        update=f"{last_update.action}: {last_update.reason}" if last_update else "",
    )


def _containers(pod: Pod, claim: VpaClaim, by: SizingRules) -> Iterator[ContainerExplanation]:
    sizing = size_running_pod(pod, claim.vpa, by.ranges, by.rules, by.server)
    for container, wanted in zip(pod.spec.containers, sizing.containers, strict=True):
        requests, _ = requests_and_limits(pod, container.name)
        yield ContainerExplanation(
            name=container.name,
            requests=requests,
            wanted_requests=wanted.requests,
            wanted_limits=wanted.limits,
            cuts=(
                *(str(cut) for cut in sizing.cuts if cut.container == container.name),
                *((f"nothing is given: {sizing.refusal}",) if sizing.refusal else ()),
            ),
        )


def explain_vpa(
    claim: VpaClaim,
    pods: Iterable[Pod],
    index: VPAIndex,
    owners: ControllerIndex,
    nodes: NodeLabels,
    recommended: Iterable[ContainerRecommendation] = (),
    cuts: Iterable[Cut] = (),
) -> VPAExplanation:
    """Explain one VPA: its scope, the pods that feed its profile, and each number."""
    fed_by: list[str] = []
    not_fed_by: dict[str, str] = {}
    for pod in _of_target(claim, pods, owners):
        control = control_of(pod, index, owners, nodes)
        if any(claim.key == other.key for other in control.receivers):
            fed_by.append(pod.metadata.key)
        else:
            reasons = {other.key: reason for other, reason in control.lost}
            not_fed_by[pod.metadata.key] = reasons.get(claim.key, control.reason)
    return VPAExplanation(
        vpa=claim.key,
        mode=claim.mode,
        level=claim.level,
        scope=describe_scope(claim.scope),
        fed_by=tuple(sorted(fed_by)),
        not_fed_by=dict(sorted(not_fed_by.items())),
        recommends=_recommends(claim.vpa),
        amounts=tuple(_amounts(recommended)),
        cuts=tuple(str(cut) for cut in cuts),
    )


def _recommends(vpa: VerticalPodAutoscaler) -> dict[str, ResourceList]:
    recommended = vpa.status.recommendation
    entries = recommended.container_recommendations if recommended else ()
    return {entry.container_name: entry.target for entry in entries}


def describe_scope(scope: Scope | ScopeError) -> str:
    """Describe the pods of a scope in one sentence."""
    if isinstance(scope, ScopeError):
        return f"nothing: {scope.message}"
    parts = []
    if scope.pods is not None:
        parts.append(f"pods with {str(scope.pods) or 'any labels'}")
    if scope.nodes is not None:
        parts.append(f"pods on nodes with {str(scope.nodes) or 'any labels'}")
    return " and ".join(parts) if parts else "all pods of the target"


def _of_target(claim: VpaClaim, pods: Iterable[Pod], owners: ControllerIndex) -> Iterator[Pod]:
    target = claim.vpa.spec.target_ref
    if target is None:
        return
    wanted = ControllerKey(claim.vpa.metadata.namespace, target.kind, target.name)
    yield from (pod for pod in pods if topmost_controller(pod, owners) == wanted)


def _amounts(recommended: Iterable[ContainerRecommendation]) -> Iterator[AmountExplanation]:
    for container in recommended:
        for bound, per_resource in container.derivations.items():
            for resource, derivation in per_resource.items():
                yield AmountExplanation(
                    container=container.name,
                    bound=bound,
                    resource=resource,
                    amount=derivation.amount,
                    text=str(derivation),
                )


def pod_lines(explanation: PodExplanation) -> list[str]:
    """Return the explanation of a pod as lines of text."""
    lines = [
        f"pod {explanation.pod}: controlled by {explanation.controlled_by or 'no VPA'}: {explanation.reason}"
    ]
    lines += [f"  {loser.vpa} does not control it: {loser.reason}" for loser in explanation.lost]
    lines += [f"  conflict: {message}" for message in explanation.conflicts]
    lines.append(f"  its usage counts for {', '.join(explanation.teaches) or 'no VPA'}")
    for container in explanation.containers:
        lines.append(
            f"  {container.name}: requests {_amounts_text(container.requests)}, "
            f"would get {_amounts_text(container.wanted_requests)}"
        )
        lines += [f"    {cut}" for cut in container.cuts]
    if explanation.update:
        lines.append(f"  last update loop: {explanation.update}")
    return lines


def vpa_lines(explanation: VPAExplanation) -> list[str]:
    """Return the explanation of a VPA as lines of text."""
    lines = [
        f"VPA {explanation.vpa}: mode {explanation.mode}, for {explanation.scope}",
        f"  learns from {', '.join(explanation.fed_by) or 'no pod'}",
    ]
    lines += [f"  does not learn from {pod}: {reason}" for pod, reason in explanation.not_fed_by.items()]
    lines += [
        f"  recommends for {name}: {_amounts_text(target)}" for name, target in explanation.recommends.items()
    ]
    if explanation.saved_at and explanation.amounts:
        lines.append(f"  by its history as saved at {explanation.saved_at}:")
    lines += [
        f"  {entry.container} {entry.resource} {entry.bound.replace('_', ' ')}: {entry.text}"
        for entry in explanation.amounts
    ]
    lines += [f"  {cut}" for cut in explanation.cuts]
    return lines


def _amounts_text(amounts: ResourceList) -> str:
    return (
        ", ".join(
            f"{resource} {readable_amount(resource, amounts[resource].milli_value())}"
            for resource in sorted(amounts)
        )
        or "nothing"
    )
