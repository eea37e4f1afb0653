"""The requests and limits that a VPA gives to the containers of one pod."""

from dataclasses import dataclass, replace

import msgspec

from trimtab.decide.vertical.resources.capping import CappedRecommendation, Cut, cap_for_pod
from trimtab.decide.vertical.resources.container_resources import (
    NOTHING,
    ContainerResources,
    controls_limits,
    recommendation_for,
    requests_and_limits,
)
from trimtab.decide.vertical.resources.fitting import (
    Fitted,
    HeldBack,
    apply_sizes,
    first_violation,
    fit_sizes,
)
from trimtab.decide.vertical.resources.limit_ranges import NO_LIMIT_RANGES, LimitRanges
from trimtab.decide.vertical.resources.pod_rules import with_resources
from trimtab.decide.vertical.resources.proportional import FractionRounding, proportional_limits
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.pod import Pod, ResourceList, ResourceRequirements
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import (
    PodResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
    UpdateMode,
    VerticalPodAutoscaler,
)


@dataclass(frozen=True)
class Sizing:
    """The resources of all containers, in the pod's order, and how they came about."""

    containers: tuple[ContainerResources, ...]
    annotations: dict[str, tuple[str, ...]]
    """The texts of the `vpaUpdates` annotation, by container."""
    cuts: tuple[Cut, ...] = ()
    recommendation: RecommendedPodResources | None = None
    """The recommendation within all bounds and rules that apply to the pod."""
    held_back: tuple[HeldBack, ...] = ()
    """Requests that stay short of the recommendation, since the API server would refuse the pod."""
    refusal: str = ""
    """Why nothing is given at all."""

    @property
    def note(self) -> str:
        """Return which rules hold the pod back from its recommendation, or empty if none does."""
        return self.refusal or "; ".join(map(_describe, self.held_back))


def _describe(held: HeldBack) -> str:
    stays = f"is given {held.given}" if held.given is not None else "is not set"
    return (
        f"container {held.container}: {held.resource} request {stays} instead of {held.wanted}: "
        f"{held.violation.message}"
    )


def size_pod(
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    ranges: LimitRanges = NO_LIMIT_RANGES,
    rules: Rules = Rules.TRIMTAB,
    running: Pod | None = None,
    server_rules: ServerRules = KUBERNETES_1_36,
) -> Sizing:
    """Return what the VPA gives to each container of a pod as its user wrote it.

    `running` is the same pod with its current resources.
    """
    sizing = _sized(pod, vpa, ranges, rules)
    if not rules.ours or vpa.status.recommendation is None:
        return sizing
    if running is not None:
        return _size_running(sizing, pod, running, ranges, server_rules)
    fitted = fit_sizes(pod, sizing.containers, ranges, rules=server_rules)
    if not fitted.refusal:
        return _held_back(sizing, fitted)
    # The API server refuses the template. Upstream then scales every container, and the pod starts.
    scaled = _sized(pod, vpa, ranges, rules, scales_all=True)
    if first_violation(pod, apply_sizes(pod, scaled.containers), ranges, server_rules) is None:
        return scaled
    return Sizing((NOTHING,) * len(pod.spec.containers), {}, refusal=fitted.refusal)


def _size_running(
    sizing: Sizing, written: Pod, running: Pod, ranges: LimitRanges, server_rules: ServerRules
) -> Sizing:
    """Return the sizing of a running pod, which starts from the user's amounts of the given resources."""
    start = _mixed(written, running, sizing.containers)
    fitted = fit_sizes(start, sizing.containers, ranges, written, server_rules)
    if fitted.refusal:
        # Leftovers of other sizes conflict with what the user wrote, but the running pod was admitted.
        start, fitted = running, fit_sizes(running, sizing.containers, ranges, written, server_rules)
    if fitted.refusal:
        return Sizing((NOTHING,) * len(running.spec.containers), {}, refusal=fitted.refusal)
    admitted = _held_back(sizing, fitted)
    containers = tuple(
        replace(sizes, limits={**_kept_limits(own.resources, sizes), **sizes.limits})
        for sizes, own in zip(admitted.containers, start.spec.containers, strict=True)
    )
    return replace(admitted, containers=containers)


def _mixed(written: Pod, running: Pod, wanted: tuple[ContainerResources, ...]) -> Pod:
    """Return the running pod with the user's amounts of the resources to be given."""

    def amounts(own: ResourceList, users: ResourceList, given: ContainerResources) -> ResourceList:
        return {**own, **{name: users[name] for name in given.requests if name in users}}

    return with_resources(
        running,
        tuple(
            msgspec.structs.replace(
                own.resources,
                requests=amounts(own.resources.requests, users.resources.requests, sizes),
                limits=amounts(own.resources.limits, users.resources.limits, sizes),
            )
            for own, users, sizes in zip(
                running.spec.containers, written.spec.containers, wanted, strict=True
            )
        ),
    )


def _kept_limits(own: ResourceRequirements, sizes: ContainerResources) -> ResourceList:
    """Return the user's limits of given requests, since another VPA may have moved them."""
    return {name: own.limits[name] for name in sizes.requests if name in own.limits}


def _sized(
    pod: Pod, vpa: VerticalPodAutoscaler, ranges: LimitRanges, rules: Rules, *, scales_all: bool = False
) -> Sizing:
    capped = CappedRecommendation(None)
    if vpa.status.recommendation is not None:
        capped = cap_for_pod(vpa, pod, ranges, rules, scales_all=scales_all)
    rounding = FractionRounding.CEILING if rules.ours else FractionRounding.NONE
    return size_capped(capped, pod, vpa, ranges, rounding)


def size_capped(
    capped: CappedRecommendation,
    pod: Pod,
    vpa: VerticalPodAutoscaler,
    ranges: LimitRanges,
    rounding: FractionRounding = FractionRounding.NONE,
) -> Sizing:
    """Return the requests of a capped recommendation, with limits that keep their ratio."""
    policy = _policy(vpa)
    default_limits = ranges.container.default if ranges.container else {}
    annotations = dict(capped.annotations)
    containers: list[ContainerResources] = []
    for container in pod.spec.containers:
        resources, notes = _size(container.name, pod, policy, capped.recommendation, default_limits, rounding)
        containers.append(resources)
        if notes:
            annotations[container.name] = (*annotations.get(container.name, ()), *notes)
    return Sizing(tuple(containers), annotations, capped.cuts, capped.recommendation)


def _policy(vpa: VerticalPodAutoscaler) -> PodResourcePolicy | None:
    mode = vpa.spec.update_policy.update_mode if vpa.spec.update_policy else None
    return None if mode == UpdateMode.OFF else vpa.spec.resource_policy


def _size(
    name: str,
    pod: Pod,
    policy: PodResourcePolicy | None,
    recommendation: RecommendedPodResources | None,
    default_limits: ResourceList,
    rounding: FractionRounding,
) -> tuple[ContainerResources, tuple[str, ...]]:
    entry = recommendation_for(name, recommendation)
    if entry is None:
        return NOTHING, ()
    sized = ContainerResources(_named(entry.target), {})
    if not controls_limits(name, policy):
        return sized, ()
    requests, limits = requests_and_limits(pod, name)
    scaled, notes = proportional_limits(limits, requests, entry.target, default_limits, rounding=rounding)
    return (sized, ()) if scaled is None else (replace(sized, limits=scaled), notes)


def _named(amounts: ResourceList) -> ResourceList:
    """Drop resources without a name, for which the API would refuse the whole pod."""
    return {resource: amount for resource, amount in amounts.items() if resource}


def _held_back(sizing: Sizing, fitted: Fitted) -> Sizing:
    """Return the part of the sizing that the API server admits, with the recommendation to match."""
    if not fitted.held_back:
        return replace(sizing, containers=fitted.containers)
    annotations = dict(sizing.annotations)
    cuts = list(sizing.cuts)
    for held in fitted.held_back:
        words = f"{held.resource} {held.violation.rule}"
        annotations[held.container] = (*annotations.get(held.container, ()), words)
        given_amount = held.given if held.given is not None else Quantity.zero
        cuts.append(
            Cut(held.container, "target", held.resource, held.wanted, given_amount, held.violation.rule)
        )
    return replace(
        sizing,
        containers=fitted.containers,
        annotations=annotations,
        cuts=tuple(cuts),
        recommendation=_fitted_recommendation(sizing.recommendation, fitted.held_back),
        held_back=fitted.held_back,
    )


def _fitted_recommendation(
    recommendation: RecommendedPodResources | None, held_back: tuple[HeldBack, ...]
) -> RecommendedPodResources | None:
    if recommendation is None:
        return None
    entries = []
    for entry in recommendation.container_recommendations:
        for held in held_back:
            if held.container == entry.container_name:
                entry = _with_given(entry, held)
        entries.append(entry)
    return RecommendedPodResources(container_recommendations=tuple(entries))


def _with_given(entry: RecommendedContainerResources, held: HeldBack) -> RecommendedContainerResources:
    """Return the entry with the given amount as its target, within its bounds."""
    if held.given is None:
        kept = {
            bound: {name: amount for name, amount in getattr(entry, bound).items() if name != held.resource}
            for bound in ("target", "lower_bound", "upper_bound")
        }
        return msgspec.structs.replace(entry, **kept)
    lower = {**entry.lower_bound}
    upper = {**entry.upper_bound}
    if held.resource in lower:
        lower[held.resource] = min(lower[held.resource], held.given)
    if held.resource in upper:
        upper[held.resource] = max(upper[held.resource], held.given)
    target = {**entry.target, held.resource: held.given}
    return msgspec.structs.replace(entry, target=target, lower_bound=lower, upper_bound=upper)
