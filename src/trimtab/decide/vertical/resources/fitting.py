"""Fit wanted sizes to what the API server admits.

What the user wrote is admitted, what is recommended may not be. All rules on one resource are linear, so on the
way from the one to the other there is a last point that is admitted. Each container goes as far as its own rules
allow, then all of them together as far as the rules of the pod do. Limits follow requests by the user's ratio.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from trimtab.decide.vertical.resources.container_resources import NOTHING, ContainerResources
from trimtab.decide.vertical.resources.limit_ranges import LimitRanges
from trimtab.decide.vertical.resources.pod_rules import (
    SIZED,
    PodRule,
    QoSClass,
    Violation,
    container_violations,
    qos_class,
    violations,
    with_resources,
)
from trimtab.decide.vertical.resources.proportional import (
    FractionRounding,
    proportional_limit,
    units_of,
)
from trimtab.model.core.pod import Pod, ResourceRequirements
from trimtab.model.quantity import Quantity

_WHOLE_WAY = 2**20
_ROUNDINGS = (FractionRounding.CEILING, FractionRounding.NONE)


@dataclass(frozen=True)
class HeldBack:
    """One request that stays short of what is wanted, and the rule that it would break."""

    container: str
    resource: str
    wanted: Quantity
    given: Quantity | None
    violation: Violation


@dataclass(frozen=True)
class Fitted:
    """The sizes that are admitted; a refusal says why there are none."""

    containers: tuple[ContainerResources, ...]
    held_back: tuple[HeldBack, ...] = ()
    refusal: str = ""


def fit_sizes(
    base: Pod, wanted: Sequence[ContainerResources], ranges: LimitRanges, written: Pod | None = None
) -> Fitted:
    """Return the sizes nearest to `wanted` that the server admits for a pod that is `base`.

    Limits follow requests by the ratio in `written`, the pod of the user, where that is another one.
    """
    if first_violation(base, apply_sizes(base, wanted), ranges) is None:
        return Fitted(tuple(wanted))
    refused = next(violations(base, ranges), None)
    if refused is not None:
        return Fitted((), refusal=f"the API server refuses the pod as it is: {refused.message}")
    return _Fitting(base, tuple(wanted), ranges, written or base).run()


def apply_sizes(base: Pod, wanted: Sequence[ContainerResources]) -> Pod:
    """Return the pod with the wanted amounts in place of its own."""
    return with_resources(
        base,
        tuple(
            msgspec.structs.replace(
                container.resources,
                requests={**container.resources.requests, **sizes.requests},
                limits={**container.resources.limits, **sizes.limits},
            )
            for container, sizes in zip(base.spec.containers, wanted, strict=True)
        ),
    )


def first_violation(base: Pod, pod: Pod, ranges: LimitRanges) -> Violation | None:
    """Return the first rule that a pod breaks which was `base`; first requests may end the class BestEffort."""
    found = next(violations(pod, ranges), None)
    if found is not None:
        return found
    was, becomes = qos_class(base.spec), qos_class(pod.spec)
    if was in (QoSClass.BEST_EFFORT, becomes):
        return None
    return Violation(PodRule.QOS, "", "", f"its QoS class would change from {was} to {becomes}")


@dataclass(frozen=True)
class _Way:
    """The way of one request from what the user wrote to what is wanted, and how far along it is."""

    index: int
    resource: str
    wanted: ContainerResources
    own: ResourceRequirements
    written: ResourceRequirements
    share: int = _WHOLE_WAY
    rounding: FractionRounding = FractionRounding.CEILING
    violation: Violation | None = None

    @property
    def request(self) -> Quantity | None:
        """Return the request at this point of the way."""
        own, end = self.own.requests.get(self.resource), self.wanted.requests[self.resource]
        if self.share == _WHOLE_WAY:
            return end
        count, made = units_of(self.resource)
        start = count(own) if own is not None else 0
        distance = count(end) - start
        # Toward what the user wrote, so that a point between two admitted ones is admitted.
        moved = abs(distance) * self.share // _WHOLE_WAY
        return own if moved == 0 else made(start + (moved if distance > 0 else -moved), end.format)

    @property
    def limit(self) -> Quantity | None:
        """Return the limit that goes with the request."""
        own, wanted = self.own.limits.get(self.resource), self.wanted.limits.get(self.resource)
        request = self.request
        if wanted is None or request is None or request == self.own.requests.get(self.resource):
            return own
        if request == self.wanted.requests[self.resource] and self.rounding is FractionRounding.CEILING:
            return wanted
        limit, former = self.written.limits.get(self.resource), self.written.requests.get(self.resource)
        if limit is None:
            limit, former = wanted, self.wanted.requests[self.resource]
        return proportional_limit(self.resource, limit, former, request, None, rounding=self.rounding).limit

    def applied(self, sizes: ContainerResources) -> ContainerResources:
        """Return sizes with the amounts of this point."""
        request, limit = self.request, self.limit
        if request is not None:
            sizes = replace(sizes, requests={**sizes.requests, self.resource: request})
        return sizes if limit is None else replace(sizes, limits={**sizes.limits, self.resource: limit})


@dataclass
class _Fitting:
    """One search for admitted sizes; `ways` holds the point that each request has reached."""

    base: Pod
    wanted: tuple[ContainerResources, ...]
    ranges: LimitRanges
    written: Pod
    ways: dict[tuple[int, str], _Way] = field(default_factory=dict)

    def run(self) -> Fitted:
        """Let each container go its way alone, then all of them together, one resource at a time."""
        alone = {(way.index, way.resource): self._alone(way) for way in self._all_ways()}
        for resource in SIZED:
            ways = tuple(way for way in alone.values() if way.resource == resource)
            self.ways.update({(way.index, resource): way for way in self._together(ways)})
        sizes = tuple(self._sizes())
        return Fitted(sizes, tuple(self._held_back()))

    def _all_ways(self) -> Iterator[_Way]:
        both = zip(self.base.spec.containers, self.written.spec.containers, strict=True)
        for index, (own, written) in enumerate(both):
            for resource in SIZED:
                if resource in self.wanted[index].requests:
                    yield _Way(index, resource, self.wanted[index], own.resources, written.resources)

    def _alone(self, way: _Way) -> _Way:
        """Return the furthest point that the container's own rules admit."""

        def breaks(point: _Way) -> Violation | None:
            sizes = point.applied(NOTHING)
            everyone = [sizes if place == way.index else NOTHING for place in range(len(self.wanted))]
            pod = apply_sizes(self.base, everyone)
            found = container_violations(pod.spec.containers[way.index], pod.spec, self.ranges)
            return next((one for one in found if one.resource == way.resource), None)

        return _furthest((way,), lambda points: breaks(points[0]))[0]

    def _together(self, ways: tuple[_Way, ...]) -> tuple[_Way, ...]:
        """Return the furthest points that the rules of the pod admit."""

        def breaks(points: tuple[_Way, ...]) -> Violation | None:
            moved = {**self.ways, **{(point.index, point.resource): point for point in points}}
            return first_violation(self.base, apply_sizes(self.base, tuple(self._sizes(moved))), self.ranges)

        return _furthest(ways, breaks)

    def _sizes(self, ways: dict[tuple[int, str], _Way] | None = None) -> Iterator[ContainerResources]:
        ways = self.ways if ways is None else ways
        for index in range(len(self.wanted)):
            sizes = NOTHING
            for resource in SIZED:
                if (index, resource) in ways:
                    sizes = ways[index, resource].applied(sizes)
            yield sizes

    def _held_back(self) -> Iterator[HeldBack]:
        for way in self.ways.values():
            wanted = way.wanted.requests[way.resource]
            if way.request != wanted and way.violation is not None:
                name = self.base.spec.containers[way.index].name
                yield HeldBack(name, way.resource, wanted, way.request, way.violation)


def _furthest(
    ways: tuple[_Way, ...], breaks: Callable[[tuple[_Way, ...]], Violation | None]
) -> tuple[_Way, ...]:
    """Return the ways at the last common share that breaks no rule, with limits rounded up if possible."""
    violation = breaks(ways)
    if violation is None:
        return ways
    best, best_share = _at(ways, 0), 0
    for rounding in _ROUNDINGS:
        rounded = tuple(
            replace(way, rounding=max(way.rounding, rounding, key=_ROUNDINGS.index)) for way in ways
        )
        share = _largest(partial(_breaks_none, rounded, breaks))
        if share > best_share:
            best, best_share = _at(rounded, share), share
    return tuple(replace(way, violation=way.violation or violation) for way in best)


def _breaks_none(
    ways: tuple[_Way, ...], breaks: Callable[[tuple[_Way, ...]], Violation | None], share: int
) -> bool:
    return breaks(_at(ways, share)) is None


def _at(ways: tuple[_Way, ...], share: int) -> tuple[_Way, ...]:
    return tuple(replace(way, share=way.share * share // _WHOLE_WAY) for way in ways)


def _largest(holds: Callable[[int], bool]) -> int:
    """Return the largest share that holds, where none of the way always does."""
    if holds(_WHOLE_WAY):
        return _WHOLE_WAY
    low, high = 0, _WHOLE_WAY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
