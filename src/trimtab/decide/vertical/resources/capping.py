"""Caps recommendations by the VPA's policy, the namespace's LimitRanges and the container's limit.

The recommender caps what it writes into a VPA's status (`cap_by_policy`). Updater and admission cap what they give to
one pod (`cap_for_pod`). The order is upstream's: pod LimitRange, container LimitRange, minAllowed, maxAllowed (so the
maximum wins), and the container's limit where only requests are controlled. `uncappedTarget` never changes. The result
lists every cut.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

import msgspec

from trimtab.decide.vertical.resources.container_resources import (
    container_of,
    controls_requests_only,
    is_off,
    policy_for,
    requests_and_limits,
)
from trimtab.decide.vertical.resources.limit_ranges import (
    NO_LIMIT_RANGES,
    Bound,
    LimitRanges,
    container_bounds,
    fit_pod,
)
from trimtab.decide.vertical.resources.pod_rules import PodRule as ServerRule
from trimtab.decide.vertical.resources.proportional import scale
from trimtab.decide.vertical.rules import Rules
from trimtab.model.core.objects import LimitRangeItem
from trimtab.model.core.pod import Pod, ResourceList
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import (
    ContainerResourcePolicy,
    PodResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
)


class Cause(StrEnum):
    """Why an amount was cut or raised, in the words of the `vpaUpdates` annotation."""

    MIN_ALLOWED = "capped to minAllowed"
    MAX_ALLOWED = "capped to maxAllowed"
    CONTAINER_LIMIT = "capped to container limit"
    LIMIT_RANGE_MAX = "capped to fit Max in container LimitRange"
    LIMIT_RANGE_MIN = "capped to fit Min in container LimitRange"
    POD_LIMIT_RANGE = "capped to fit the pod LimitRange"
    LARGEST_NODE = "capped to the largest node"


@dataclass(frozen=True)
class Cut:
    """One amount that a rule changed."""

    container: str
    bound: Bound
    resource: str
    before: Quantity
    after: Quantity
    cause: Cause | ServerRule

    def __str__(self) -> str:
        return f"{self.container}: {self.resource} {self.cause}: {self.before} became {self.after}"


@dataclass(frozen=True)
class CappedRecommendation:
    """A capped recommendation and every cut."""

    recommendation: RecommendedPodResources | None
    cuts: tuple[Cut, ...] = ()

    @property
    def annotations(self) -> dict[str, tuple[str, ...]]:
        """Return the texts of the `vpaUpdates` annotation by container, for cuts of targets only."""
        texts: dict[str, tuple[str, ...]] = {}
        for cut in self.cuts:
            if cut.bound == "target" and cut.cause is not Cause.POD_LIMIT_RANGE:
                texts[cut.container] = (*texts.get(cut.container, ()), f"{cut.resource} {cut.cause}")
        return texts


def cap_for_pod(
    vpa: VerticalPodAutoscaler,
    pod: Pod,
    ranges: LimitRanges = NO_LIMIT_RANGES,
    rules: Rules = Rules.TRIMTAB,
    *,
    scales_all: bool = False,
) -> CappedRecommendation:
    """Return the VPA's recommendation within every bound that applies to this pod."""
    policy, recommendation = vpa.spec.resource_policy, vpa.status.recommendation
    if recommendation is None and policy is None:
        return CappedRecommendation(None)
    entries = recommendation.container_recommendations if recommendation else ()
    if rules.ours:
        entries = tuple(_controlled(entries, policy))
    cuts: list[Cut] = []
    # Pod-level resources are what the server compares with a pod's LimitRange; `fitting` does that.
    if ranges.pod is not None and not (rules.ours and pod.spec.resources is not None):
        fitted = fit_pod(entries, pod, ranges.pod, scales_all=scales_all or not rules.ours)
        cuts.extend(_pod_cuts(entries, fitted))
        entries = fitted
    capped = tuple(
        _capped(entry, _limits_for(entry.container_name, pod, policy, ranges.container, rules), cuts)
        for entry in entries
        if container_of(pod, entry.container_name)
    )
    return CappedRecommendation(RecommendedPodResources(container_recommendations=capped), tuple(cuts))


def cap_by_policy(
    recommendation: RecommendedPodResources | None,
    policy: PodResourcePolicy | None,
    global_max: ResourceList | None = None,
) -> CappedRecommendation:
    """Return a recommendation within minAllowed and maxAllowed.

    The global maximum applies to resources without maxAllowed.
    """
    if recommendation is None:
        return CappedRecommendation(None)
    cuts: list[Cut] = []
    capped: list[RecommendedContainerResources] = []
    for entry in recommendation.container_recommendations:
        own = policy_for(entry.container_name, policy) or ContainerResourcePolicy()
        limits = _allowed(own.min_allowed, {**(global_max or {}), **own.max_allowed})
        capped.append(_capped(entry, (limits,), cuts))
    return CappedRecommendation(RecommendedPodResources(container_recommendations=tuple(capped)), tuple(cuts))


def total_target(recommendation: RecommendedPodResources) -> ResourceList:
    """Return the requests of a pod whose containers all get their target."""
    total: ResourceList = {}
    for entry in recommendation.container_recommendations:
        for resource, amount in entry.target.items():
            total[resource] = total.get(resource, Quantity.zero) + amount
    return total


def cap_to_nodes(recommendation: RecommendedPodResources, largest: ResourceList) -> CappedRecommendation:
    """Return a recommendation whose containers together fit the largest size that a node could hold."""
    total = total_target(recommendation)
    cuts: list[Cut] = []
    entries: list[RecommendedContainerResources] = []
    for entry in recommendation.container_recommendations:
        most = {
            resource: scale(resource, amount, total[resource], largest[resource]).quantity
            for resource, amount in entry.target.items()
            if resource in largest and largest[resource] < total[resource]
        }
        entries.append(_capped(entry, (_Limits({}, Cause.MIN_ALLOWED, most, Cause.LARGEST_NODE),), cuts))
    return CappedRecommendation(
        RecommendedPodResources(container_recommendations=tuple(entries)), tuple(cuts)
    )


_BOUNDS: tuple[Bound, ...] = ("target", "lower_bound", "upper_bound")


@dataclass(frozen=True)
class _Limits:
    """A least and a greatest amount per resource. Zero is no limit, unless it is a container's own."""

    least: ResourceList
    least_cause: Cause
    most: ResourceList
    most_cause: Cause

    def apply(self, resource: str, amount: Quantity) -> Iterator[tuple[Quantity, Cause]]:
        """Yield the amount after each change, the maximum last."""
        least, most = self.least.get(resource), self.most.get(resource)
        if least is not None and not least.is_zero and amount < least:
            amount = least
            yield least, self.least_cause
        is_limit = most is not None and (not most.is_zero or self.most_cause is Cause.CONTAINER_LIMIT)
        if most is not None and is_limit and amount > most:
            yield most, self.most_cause


def _allowed(least: ResourceList, most: ResourceList) -> _Limits:
    return _Limits(least, Cause.MIN_ALLOWED, most, Cause.MAX_ALLOWED)


def _limits_for(
    name: str, pod: Pod, policy: PodResourcePolicy | None, item: LimitRangeItem | None, rules: Rules
) -> tuple[_Limits, ...]:
    """Return the container's limits in the order in which they apply."""
    requests, limits = requests_and_limits(pod, name)
    stages: list[_Limits] = []
    if item is not None:
        least, most = container_bounds(requests, limits, item)
        if controls_requests_only(name, policy) and rules.ours:
            least, most = item.min, item.max  # the limit stays, so no ratio carries the bounds over
        stages.append(_Limits(least, Cause.LIMIT_RANGE_MIN, most, Cause.LIMIT_RANGE_MAX))
    own = policy_for(name, policy)
    if own is not None:
        stages.append(_allowed(own.min_allowed, own.max_allowed))
    if controls_requests_only(name, policy):
        stages.append(_Limits({}, Cause.MIN_ALLOWED, limits, Cause.CONTAINER_LIMIT))
    return tuple(stages)


def _capped(
    entry: RecommendedContainerResources, stages: tuple[_Limits, ...], cuts: list[Cut]
) -> RecommendedContainerResources:
    changed: dict[str, ResourceList] = {}
    for bound in _BOUNDS:
        amounts: ResourceList = dict(getattr(entry, bound))
        for limits, resource in product(stages, sorted(amounts)):
            for after, cause in limits.apply(resource, amounts[resource]):
                cuts.append(Cut(entry.container_name, bound, resource, amounts[resource], after, cause))
                amounts[resource] = after
        changed[bound] = amounts
    return msgspec.structs.replace(entry, **changed)


def _controlled(
    entries: Iterable[RecommendedContainerResources], policy: PodResourcePolicy | None
) -> Iterable[RecommendedContainerResources]:
    for entry in entries:
        if is_off(entry.container_name, policy):
            continue
        own = policy_for(entry.container_name, policy)
        if own is None or own.controlled_resources is None:
            yield entry
        else:
            yield _only(entry, frozenset(own.controlled_resources))


def _only(entry: RecommendedContainerResources, kept: frozenset[str]) -> RecommendedContainerResources:
    def pick(amounts: ResourceList) -> ResourceList:
        return {resource: amount for resource, amount in amounts.items() if resource in kept}

    return msgspec.structs.replace(
        entry,
        target=pick(entry.target),
        lower_bound=pick(entry.lower_bound),
        upper_bound=pick(entry.upper_bound),
    )


def _pod_cuts(
    before: tuple[RecommendedContainerResources, ...], after: tuple[RecommendedContainerResources, ...]
) -> Iterable[Cut]:
    for old, new in zip(before, after, strict=False):
        for bound in _BOUNDS:
            was, now = getattr(old, bound), getattr(new, bound)
            for resource in sorted(was):
                if was[resource] != now[resource]:
                    amounts = was[resource], now[resource]
                    yield Cut(old.container_name, bound, resource, *amounts, Cause.POD_LIMIT_RANGE)
