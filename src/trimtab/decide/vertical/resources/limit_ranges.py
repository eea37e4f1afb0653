"""LimitRanges: merged into one per namespace, and the bounds of a container and of a pod."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from trimtab.decide.vertical.resources.container_resources import (
    amount_of,
    recommendation_for,
    requests_and_limits,
)
from trimtab.decide.vertical.resources.proportional import (
    FractionRounding,
    boundary_request,
    proportional_limit,
    scale,
)
from trimtab.model.core.objects import LimitRange, LimitRangeItem
from trimtab.model.core.pod import CPU, MEMORY, Pod, ResourceList
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import RecommendedContainerResources, RecommendedPodResources

Bound = Literal["target", "lower_bound", "upper_bound"]
BOUNDS: tuple[Bound, ...] = ("upper_bound", "target", "lower_bound")


@dataclass(frozen=True)
class LimitRanges:
    """A namespace's LimitRanges, merged: one item for containers and one for pods."""

    container: LimitRangeItem | None = None
    pod: LimitRangeItem | None = None


NO_LIMIT_RANGES = LimitRanges()


@dataclass(frozen=True)
class NamespaceRanges:
    """The merged LimitRanges of every namespace, merged on first use."""

    ranges: tuple[LimitRange, ...]
    _merged: dict[str, LimitRanges] = field(default_factory=dict, repr=False, compare=False)

    def of(self, namespace: str) -> LimitRanges:
        """Return the merged LimitRanges of a namespace."""
        if not self.ranges:
            return NO_LIMIT_RANGES
        if namespace not in self._merged:
            self._merged[namespace] = LimitRanges(
                merge_limit_ranges(self.ranges, namespace, "Container"),
                merge_limit_ranges(self.ranges, namespace, "Pod"),
            )
        return self._merged[namespace]


def merge_limit_ranges(ranges: Iterable[LimitRange], namespace: str, kind: str) -> LimitRangeItem | None:
    """Return one item as strict as all items of `kind`: highest min, lowest max and ratio."""
    default: ResourceList = {}
    lowest: ResourceList = {}
    highest: ResourceList = {}
    ratio: ResourceList = {}
    # By name, so that the default does not depend on the order of a listing.
    in_order = sorted(ranges, key=lambda limit_range: limit_range.metadata.name)
    for item in (item for limit_range in in_order for item in _items(limit_range, namespace, kind)):
        default = item.default or default
        _tighten(highest, item.max, min)
        _tighten(lowest, item.min, max)
        _tighten(ratio, item.max_limit_request_ratio, min)
    if not (default or lowest or highest or ratio):
        return None
    return LimitRangeItem(type=kind, min=lowest, max=highest, default=default, max_limit_request_ratio=ratio)


def _items(limit_range: LimitRange, namespace: str, kind: str) -> Iterable[LimitRangeItem]:
    if limit_range.metadata.namespace != namespace:
        return ()
    return (item for item in limit_range.spec.limits if item.type == kind)


def _tighten(
    merged: ResourceList, added: ResourceList, strictest: Callable[[Quantity, Quantity], Quantity]
) -> None:
    if not merged:
        merged.update(added)
        return
    for resource in (CPU, MEMORY):
        if resource in added:
            merged[resource] = (
                strictest(merged[resource], added[resource]) if resource in merged else added[resource]
            )


def container_bounds(
    requests: ResourceList, limits: ResourceList, item: LimitRangeItem
) -> tuple[ResourceList, ResourceList]:
    """Return the least and greatest request whose proportional limit the LimitRange allows."""
    least = _boundaries(requests, limits, item.min, item.default)
    # The request itself must not fall below the minimum either.
    for resource in (CPU, MEMORY) if item.min else ():
        if amount_of(item.min, resource) > amount_of(least, resource):
            least[resource] = item.min[resource]
    return least, _boundaries(requests, limits, item.max, item.default)


def _boundaries(
    requests: ResourceList, limits: ResourceList, boundary: ResourceList, default: ResourceList
) -> ResourceList:
    if not boundary:
        return {}
    return {
        resource: boundary_request(
            resource,
            amount_of(requests, resource),
            amount_of(limits, resource),
            amount_of(boundary, resource),
            amount_of(default, resource),
        )
        for resource in (CPU, MEMORY)
    }


def fit_pod(
    recommendations: Sequence[RecommendedContainerResources],
    pod: Pod,
    item: LimitRangeItem,
    *,
    scales_all: bool,
) -> tuple[RecommendedContainerResources, ...]:
    """Scale all containers' amounts together until the pod as a whole fits its LimitRange.

    `scales_all` scales containers and resources without a recommendation, too, as upstream.
    """
    fitted = tuple(recommendations)
    if scales_all:
        fitted += tuple(_unrecommended(recommendations, pod))
    for bound in BOUNDS:
        for resource in (CPU, MEMORY):
            fitted = fit_pod_amount(fitted, pod, item, resource, bound, scales_all=scales_all)
    return fitted


def _unrecommended(
    recommendations: Sequence[RecommendedContainerResources], pod: Pod
) -> Iterable[RecommendedContainerResources]:
    named = {entry.container_name for entry in recommendations}
    for container in pod.spec.containers:
        requests, _ = requests_and_limits(pod, container.name)
        if container.name not in named and requests:
            yield RecommendedContainerResources(container_name=container.name, target=requests)


def fit_pod_amount(
    recommendations: Sequence[RecommendedContainerResources],
    pod: Pod,
    item: LimitRangeItem,
    resource: str,
    bound: Bound,
    *,
    scales_all: bool,
) -> tuple[RecommendedContainerResources, ...]:
    """Fit one resource of one bound.

    Containers without a recommendation count with their actual amounts and do not change.
    """
    least, most = amount_of(item.min, resource), amount_of(item.max, resource)
    moved, rest = _totals(recommendations, pod, item, resource, bound)
    total_limit, total = moved.limit + rest.limit, moved.request + rest.request
    if least <= total_limit and least <= total and (most.is_zero or most >= total_limit):
        return tuple(recommendations)
    if total_limit.is_zero:
        return tuple(recommendations)
    if not scales_all:
        # Containers without a recommendation stay, so the others have to make room for them.
        least_limit, least, most = least - rest.limit, least - rest.request, most - rest.limit
        total_limit, total = moved.limit, moved.request
    else:
        least_limit = least
    if least > total:
        factor = (total, least, FractionRounding.UP)
    elif not item_max_is_open(item, resource) and most < total_limit:
        factor = (total_limit, most, FractionRounding.DOWN)
    else:
        factor = (total_limit, least_limit, FractionRounding.DOWN)
    return (
        _scaled(recommendations, pod, resource, bound, factor, scales_all=scales_all)
        if factor[1].sign > 0
        else tuple(recommendations)
    )


def item_max_is_open(item: LimitRangeItem, resource: str) -> bool:
    """Return whether a LimitRange sets no maximum of a resource. Zero is no maximum, as in upstream."""
    return amount_of(item.max, resource).is_zero


@dataclass(frozen=True)
class _Total:
    """The requests and limits of some containers together."""

    request: Quantity = Quantity.zero
    limit: Quantity = Quantity.zero

    def plus(self, request: Quantity, limit: Quantity | None) -> "_Total":
        return _Total(self.request + request, self.limit + (limit or Quantity.zero))


def _totals(
    recommendations: Sequence[RecommendedContainerResources],
    pod: Pod,
    item: LimitRangeItem,
    resource: str,
    bound: Bound,
) -> tuple[_Total, _Total]:
    """Return the totals of containers with and without a recommendation."""
    moved, rest = _Total(), _Total()
    listed = RecommendedPodResources(container_recommendations=tuple(recommendations))
    for container in pod.spec.containers:
        requests, limits = requests_and_limits(pod, container.name)
        request = amount_of(requests, resource)
        entry = recommendation_for(container.name, listed)
        amount = request if entry is None else amount_of(getattr(entry, bound), resource)
        limit = proportional_limit(
            resource, amount_of(limits, resource), request, amount, amount_of(item.default, resource)
        ).limit
        if entry is None:
            rest = rest.plus(amount, limit)
        else:
            moved = moved.plus(amount, limit)
    return moved, rest


def _scaled(
    recommendations: Sequence[RecommendedContainerResources],
    pod: Pod,
    resource: str,
    bound: Bound,
    factor: tuple[Quantity, Quantity, FractionRounding],
    *,
    scales_all: bool,
) -> tuple[RecommendedContainerResources, ...]:
    base, result, rounding = factor
    named = {container.name for container in pod.spec.containers}
    scaled: list[RecommendedContainerResources] = []
    for entry in recommendations:
        amounts: ResourceList = getattr(entry, bound)
        is_changed = entry.container_name in named and (resource in amounts or (scales_all and bool(amounts)))
        if is_changed:
            # Only the first entry of a container counts.
            named.discard(entry.container_name)
            amount = scale(resource, amount_of(amounts, resource), base, result, rounding).quantity
            entry = msgspec.structs.replace(entry, **{bound: {**amounts, resource: amount}})
        scaled.append(entry)
    return tuple(scaled)
