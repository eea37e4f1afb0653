"""Which pods should change, in which order, and why other pods should not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trimtab.decide.vertical.admission.pod_annotations import observed_containers
from trimtab.decide.vertical.resources.container_resources import (
    is_off,
    recommendation_for,
    requests_and_limits,
)
from trimtab.model.core.pod import CPU, MEMORY, ContainerStatus, Pod, ResourceList
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.quantity import Quantity
from trimtab.model.readable import readable_span
from trimtab.model.times import ZERO_TIME, int32_seconds
from trimtab.model.vpa.types import (
    EvictionChangeRequirement,
    EvictionRequirement,
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
)


@dataclass(frozen=True)
class Priority:
    """The urgency of one pod's update."""

    is_outside_range: bool
    is_scale_up: bool
    resource_diff: float
    """Sum over resources of |requested - recommended| / requested, over all containers together."""

    @property
    def rank(self) -> tuple[bool, float]:
        """Return a sort key: pods that need more come first, then the larger difference."""
        return not self.is_scale_up, -self.resource_diff


def update_priority(pod: Pod, recommendation: RecommendedPodResources | None) -> Priority:
    """Compare a pod's requests with the recommendation that was capped for it."""
    observed = observed_containers(pod)
    requested: dict[str, int] = {}
    recommended: dict[str, int] = {}
    is_outside = is_scale_up = False
    for container in pod.spec.containers:
        entry = recommendation_for(container.name, recommendation)
        if entry is None or (observed is not None and container.name not in observed):
            continue
        requests, _ = requests_and_limits(pod, container.name)
        for resource, target in entry.target.items():
            request = requests.get(resource)
            recommended[resource] = recommended.get(resource, 0) + target.milli_value()
            if request is None:
                # Without a request the container may get nothing at all: it is always out of range.
                is_outside = is_scale_up = True
                continue
            requested[resource] = requested.get(resource, 0) + request.milli_value()
            is_scale_up = is_scale_up or target.milli_value() > request.milli_value()
            is_outside = is_outside or _is_outside(entry, resource, request)
    return Priority(is_outside, is_scale_up, _difference(requested, recommended))


def _is_outside(entry: RecommendedContainerResources, resource: str, request: Quantity) -> bool:
    lower, upper = entry.lower_bound.get(resource), entry.upper_bound.get(resource)
    return (lower is not None and request < lower) or (upper is not None and request > upper)


def _difference(requested: dict[str, int], recommended: dict[str, int]) -> float:
    total = 0.0
    for resource in sorted(recommended):
        request = max(float(requested.get(resource, 0)), 1.0)
        total += abs(request - float(recommended[resource])) / request
    return total


@dataclass(frozen=True)
class UpdateThresholds:
    """How far off, and how old, a pod must be."""

    min_change: float = 0.1
    """Least relative difference that is worth changing a pod whose requests are within bounds."""
    lifetime: timedelta = timedelta(hours=12)
    """Least age of such a pod."""
    evict_after_oom: timedelta = timedelta(minutes=10)
    """An OOM kill counts as quick if the container ran shorter than this, and no longer than this ago."""


@dataclass(frozen=True)
class Eligibility:
    """Whether a pod should change, and the reason."""

    is_eligible: bool
    reason: str


@dataclass(frozen=True)
class UpdateCandidate:
    """A pod that should change, and its recommendation."""

    pod: Pod
    priority: Priority
    recommendation: RecommendedPodResources | None
    reason: str = ""
    is_urgent: bool = False
    """Whether it was just OOM-killed, so that it is not left to start."""


def is_lower_anywhere(before: RecommendedPodResources | None, after: RecommendedPodResources | None) -> bool:
    """Return whether any target fell. Only then is an infeasible resize worth a retry."""
    for entry in after.container_recommendations if after else ():
        earlier = recommendation_for(entry.container_name, before)
        if earlier is not None and any(
            resource in earlier.target and amount < earlier.target[resource]
            for resource, amount in entry.target.items()
        ):
            return True
    return False


def oom_threshold(vpa: VerticalPodAutoscaler, default: timedelta, gates: FeatureGates) -> timedelta:
    """Return the VPA's own threshold of quick OOM kills if its gate is on, else the default."""
    policy = vpa.spec.update_policy
    if policy is None or policy.evict_after_oom_seconds is None or not gates.per_vpa_config:
        return default
    return int32_seconds(policy.evict_after_oom_seconds)


def has_quick_oom(pod: Pod, vpa: VerticalPodAutoscaler, now: datetime, threshold: timedelta) -> bool:
    """Return whether a scaled container was OOM-killed just now, soon after it started."""
    observed = observed_containers(pod)
    return any(
        _is_quick_oom(status, now, threshold)
        for status in pod.status.container_statuses
        if (observed is None or status.name in observed) and not is_off(status.name, vpa.spec.resource_policy)
    )


def _is_quick_oom(status: ContainerStatus, now: datetime, threshold: timedelta) -> bool:
    terminated = status.last_state.terminated
    if terminated is None or terminated.reason != "OOMKilled":
        return False
    finished, started = terminated.finished_at or ZERO_TIME, terminated.started_at or ZERO_TIME
    return finished - started < threshold and now - finished < threshold


def check_eligibility(
    pod: Pod, priority: Priority, *, is_quick_oom: bool, now: datetime, thresholds: UpdateThresholds
) -> Eligibility:
    """Decide whether a pod's requests are far enough off to change them."""
    if is_quick_oom and priority.resource_diff == 0:
        return Eligibility(False, "it was OOM-killed, but its requests would not change")
    if is_quick_oom:
        return Eligibility(True, "it was OOM-killed soon after it started")
    if priority.is_outside_range:
        return Eligibility(True, "its requests are outside the recommended range")
    if pod.status.start_time is None:
        return Eligibility(False, "its requests are within the range and it has no start time")
    if now - pod.status.start_time < thresholds.lifetime:
        return Eligibility(
            False,
            f"its requests are within the range and it is younger than {readable_span(thresholds.lifetime)}",
        )
    if priority.resource_diff < thresholds.min_change:
        return Eligibility(
            False, f"its requests differ by {priority.resource_diff:.3g}, less than {thresholds.min_change:g}"
        )
    return Eligibility(True, f"its requests differ by {priority.resource_diff:.3g} and it is old enough")


def admits_eviction(
    pod: Pod,
    recommendation: RecommendedPodResources | None,
    requirements: Sequence[EvictionRequirement] | None,
) -> bool:
    """Return whether some container meets all eviction requirements.

    `requirements` is None if the VPA has no update policy.
    """
    if requirements is None:
        return True
    for container in pod.spec.containers:
        entry = recommendation_for(container.name, recommendation)
        if entry is None:
            continue
        requests, _ = requests_and_limits(pod, container.name)
        if CPU not in requests or MEMORY not in requests:
            return True
        if all(_is_met(requirement, requests, entry.target) for requirement in requirements):
            return True
    return False


def _is_met(requirement: EvictionRequirement, requests: ResourceList, target: ResourceList) -> bool:
    return any(
        _changes_as_required(
            requirement.change_requirement, _milli(requests, resource), _milli(target, resource)
        )
        for resource in requirement.resources
    )


def _changes_as_required(requirement: str, request: int, target: int) -> bool:
    if requirement == EvictionChangeRequirement.TARGET_HIGHER_THAN_REQUESTS:
        return target > request
    return requirement == EvictionChangeRequirement.TARGET_LOWER_THAN_REQUESTS and target < request


def _milli(amounts: ResourceList, resource: str) -> int:
    amount = amounts.get(resource)
    return amount.milli_value() if amount is not None else 0


def in_update_order(candidates: Iterable[UpdateCandidate]) -> tuple[UpdateCandidate, ...]:
    """Return the candidates, most urgent first. Equal ones keep their order."""
    return tuple(sorted(candidates, key=lambda candidate: candidate.priority.rank))
