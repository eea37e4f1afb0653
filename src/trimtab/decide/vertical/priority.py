"""How urgently a pod should be changed: how far its requests are from what is recommended for it."""

from dataclasses import dataclass

from trimtab.decide.vertical.containers import recommendation_for, requests_and_limits
from trimtab.decide.vertical.observed_containers import observed_containers
from trimtab.model.core.pod import Pod
from trimtab.model.quantity import Quantity
from trimtab.model.vpa.types import RecommendedContainerResources, RecommendedPodResources


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
