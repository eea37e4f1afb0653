"""Fits wanted sizes to what the API server admits.

The server admits what the user wrote; it may refuse the recommended size. All rules on one resource are linear, so on
the path from the user's size to the wanted one there is a last admitted point. Each container goes as far as its own
rules allow, then all containers together go as far as the rules of the pod allow. Limits keep the user's ratio.
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
    present_class,
    qos_class,
    violations,
    with_resources,
)
from trimtab.decide.vertical.resources.proportional import FractionRounding, proportional_limit, units_of
from trimtab.model.core.pod import Pod, ResourceRequirements
from trimtab.model.core.server_rules import KUBERNETES_1_36, ServerRules
from trimtab.model.quantity import Quantity

_WHOLE_PATH = 2**20
_ROUNDINGS = (FractionRounding.CEILING, FractionRounding.NONE)


@dataclass(frozen=True)
class HeldBack:
    """A request that stays short of the wanted amount, and the rule that it would break."""

    container: str
    resource: str
    wanted: Quantity
    given: Quantity | None
    violation: Violation


@dataclass(frozen=True)
class Fitted:
    """The admitted sizes, or a refusal that gives the reason."""

    containers: tuple[ContainerResources, ...]
    held_back: tuple[HeldBack, ...] = ()
    refusal: str = ""


def fit_sizes(
    base: Pod,
    wanted: Sequence[ContainerResources],
    ranges: LimitRanges,
    written: Pod | None = None,
    rules: ServerRules = KUBERNETES_1_36,
) -> Fitted:
    """Return the sizes nearest to `wanted` that the server admits for pod `base`.

    Limits keep the ratio of `written`, the user's pod, if that differs from `base`.
    """
    if first_violation(base, apply_sizes(base, wanted), ranges, rules) is None:
        return Fitted(tuple(wanted))
    refused = next(violations(base, ranges, rules), None)
    if refused is not None:
        return Fitted((), refusal=f"the API server refuses the pod as it is: {refused.message}")
    return _Fitting(base, tuple(wanted), ranges, written or base, rules).run()


def apply_sizes(base: Pod, wanted: Sequence[ContainerResources]) -> Pod:
    """Return the pod with the wanted amounts."""
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


def first_violation(
    base: Pod, pod: Pod, ranges: LimitRanges, rules: ServerRules = KUBERNETES_1_36
) -> Violation | None:
    """Return the first rule that changing `base` into `pod` breaks.

    The first requests of a pod may end the QoS class BestEffort.
    """
    violation = next(violations(pod, ranges, rules), None)
    if violation is not None:
        return violation
    was, becomes = present_class(base, rules), qos_class(pod.spec, rules)
    if was in (QoSClass.BEST_EFFORT, becomes):
        return None
    return Violation(PodRule.QOS, "", "", f"its QoS class would change from {was} to {becomes}")


@dataclass(frozen=True)
class _Path:
    """The path of one request from the user's amount to the wanted one, and a point on it."""

    index: int
    resource: str
    wanted: ContainerResources
    own: ResourceRequirements
    written: ResourceRequirements
    share: int = _WHOLE_PATH
    rounding: FractionRounding = FractionRounding.CEILING
    violation: Violation | None = None

    @property
    def request(self) -> Quantity | None:
        """Return the request at this point."""
        own, end = self.own.requests.get(self.resource), self.wanted.requests[self.resource]
        if self.share == _WHOLE_PATH:
            return end
        count, made = units_of(self.resource)
        start = count(own) if own is not None else 0
        distance = count(end) - start
        # Rounded toward what the user wrote, so that a point between two admitted ones is admitted.
        moved = abs(distance) * self.share // _WHOLE_PATH
        return own if moved == 0 else made(start + (moved if distance > 0 else -moved), end.format)

    @property
    def limit(self) -> Quantity | None:
        """Return the limit for the request."""
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
        """Return the sizes with the amounts of this point."""
        request, limit = self.request, self.limit
        if request is not None:
            sizes = replace(sizes, requests={**sizes.requests, self.resource: request})
        return sizes if limit is None else replace(sizes, limits={**sizes.limits, self.resource: limit})


@dataclass
class _Fitting:
    """A search for admitted sizes. `paths` holds the point that each request has reached."""

    base: Pod
    wanted: tuple[ContainerResources, ...]
    ranges: LimitRanges
    written: Pod
    rules: ServerRules
    paths: dict[tuple[int, str], _Path] = field(default_factory=dict)

    def run(self) -> Fitted:
        """Move each container alone, then all containers together, one resource at a time."""
        alone = {(path.index, path.resource): self._alone(path) for path in self._all_paths()}
        for resource in SIZED:
            paths = tuple(path for path in alone.values() if path.resource == resource)
            self.paths.update({(path.index, resource): path for path in self._together(paths)})
        sizes = tuple(self._sizes())
        return Fitted(sizes, tuple(self._held_back()))

    def _all_paths(self) -> Iterator[_Path]:
        both = zip(self.base.spec.containers, self.written.spec.containers, strict=True)
        for index, (own, written) in enumerate(both):
            for resource in SIZED:
                if resource in self.wanted[index].requests:
                    yield _Path(index, resource, self.wanted[index], own.resources, written.resources)

    def _alone(self, path: _Path) -> _Path:
        """Return the furthest point that the container's own rules admit."""

        def breaks(point: _Path) -> Violation | None:
            sizes = point.applied(NOTHING)
            wanted = [sizes if index == path.index else NOTHING for index in range(len(self.wanted))]
            pod = apply_sizes(self.base, wanted)
            broken = container_violations(pod.spec.containers[path.index], pod.spec, self.ranges)
            return next((violation for violation in broken if violation.resource == path.resource), None)

        return _furthest((path,), lambda points: breaks(points[0]))[0]

    def _together(self, paths: tuple[_Path, ...]) -> tuple[_Path, ...]:
        """Return the furthest points that the rules of the pod admit."""

        def breaks(points: tuple[_Path, ...]) -> Violation | None:
            moved = {**self.paths, **{(point.index, point.resource): point for point in points}}
            pod = apply_sizes(self.base, tuple(self._sizes(moved)))
            return first_violation(self.base, pod, self.ranges, self.rules)

        return _furthest(paths, breaks)

    def _sizes(self, paths: dict[tuple[int, str], _Path] | None = None) -> Iterator[ContainerResources]:
        paths = self.paths if paths is None else paths
        for index in range(len(self.wanted)):
            sizes = NOTHING
            for resource in SIZED:
                if (index, resource) in paths:
                    sizes = paths[index, resource].applied(sizes)
            yield sizes

    def _held_back(self) -> Iterator[HeldBack]:
        for path in self.paths.values():
            wanted = path.wanted.requests[path.resource]
            if path.request != wanted and path.violation is not None:
                name = self.base.spec.containers[path.index].name
                yield HeldBack(name, path.resource, wanted, path.request, path.violation)


def _furthest(
    paths: tuple[_Path, ...], breaks: Callable[[tuple[_Path, ...]], Violation | None]
) -> tuple[_Path, ...]:
    """Return the paths at the last common share that breaks no rule, with limits rounded up if possible."""
    violation = breaks(paths)
    if violation is None:
        return paths
    best, best_share = _at(paths, 0), 0
    for rounding in _ROUNDINGS:
        rounded = tuple(
            replace(path, rounding=max(path.rounding, rounding, key=_ROUNDINGS.index)) for path in paths
        )
        share = _largest(partial(_breaks_none, rounded, breaks))
        if share > best_share:
            best, best_share = _at(rounded, share), share
    return tuple(replace(path, violation=path.violation or violation) for path in best)


def _breaks_none(
    paths: tuple[_Path, ...], breaks: Callable[[tuple[_Path, ...]], Violation | None], share: int
) -> bool:
    return breaks(_at(paths, share)) is None


def _at(paths: tuple[_Path, ...], share: int) -> tuple[_Path, ...]:
    return tuple(replace(path, share=path.share * share // _WHOLE_PATH) for path in paths)


def _largest(holds: Callable[[int], bool]) -> int:
    """Return the largest share for which `holds` is true, at least 0."""
    if holds(_WHOLE_PATH):
        return _WHOLE_PATH
    low, high = 0, _WHOLE_PATH
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
