"""The recommendation for the containers of one VPA, with how each number came about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trimtab.decide.vertical.aggregate import Aggregate
from trimtab.decide.vertical.amounts import amount_from_float, millicores_from_cores, scaled
from trimtab.decide.vertical.estimate import (
    BOUNDS,
    Bound,
    Estimates,
    EstimatorSettings,
    estimate_cpu,
    estimate_memory,
)
from trimtab.decide.vertical.format import Rounding, cpu_quantity, memory_quantity
from trimtab.model.resources import CPU, MEMORY, ResourceList
from trimtab.model.vpa.types import RecommendedContainerResources, RecommendedPodResources

_UNITS: Final = {CPU: "m", MEMORY: " bytes"}


@dataclass(frozen=True)
class RecommenderSettings:
    """Everything a recommendation depends on besides history; each default is upstream's flag."""

    estimators: EstimatorSettings = field(default_factory=EstimatorSettings)
    pod_min_cpu_millicores: float = 25.0
    """The least CPU of a whole pod; its containers share it equally."""
    pod_min_memory_mib: float = 250.0
    """The least memory of a whole pod; its containers share it equally."""
    rounding: Rounding = field(default_factory=Rounding)

    def floors(self, containers: int) -> tuple[int, int]:
        """Return the least millicores and bytes of each of some containers."""
        share = 1.0 / containers
        return (
            scaled(millicores_from_cores(self.pod_min_cpu_millicores * 0.001), share),
            scaled(amount_from_float(self.pod_min_memory_mib * 1024 * 1024), share),
        )


@dataclass(frozen=True)
class Derivation:
    """How one amount came about: percentile, margin, confidence, floor."""

    resource: str
    percentile: float
    bucket: int | None
    """The histogram bucket that holds the percentile; None without samples."""
    usage: int
    """The end of that bucket."""
    margin: int
    multiplier: float
    """What the bound was widened by for want of confidence; 1 for a target."""
    floor: int
    amount: int

    @property
    def is_floor(self) -> bool:
        """Whether the pod's minimum decided, not usage."""
        return self.amount == self.floor and self.amount > self.usage

    def __str__(self) -> str:
        unit = _UNITS[self.resource]
        if self.bucket is None:
            start = f"no {self.resource} samples yet"
        else:
            start = (
                f"p{self.percentile * 100:g} of {self.resource} is in bucket {self.bucket}, up to {self.usage}{unit}; "
                f"margin {self.margin}{unit}"
            )
        widened = "" if self.multiplier == 1 else f"; confidence x{self.multiplier:.6g}"
        lifted = f"; raised to the minimum {self.floor}{unit}" if self.is_floor else ""
        return f"{start}{widened}{lifted}; = {self.amount}{unit}"


@dataclass(frozen=True)
class ContainerRecommendation:
    """What one container should have, before policies are applied."""

    name: str
    amounts: Mapping[Bound, Mapping[str, int]]
    """Per bound and resource the amount, before rounding flags."""
    reasons: Mapping[Bound, Mapping[str, Derivation]]

    def resources(self, rounding: Rounding) -> RecommendedContainerResources:
        """Return the recommendation as the API shows it."""
        lists = {bound: _resource_list(self.amounts[bound], rounding) for bound in BOUNDS}
        return RecommendedContainerResources(
            container_name=self.name,
            target=lists["target"],
            lower_bound=lists["lower_bound"],
            upper_bound=lists["upper_bound"],
            uncapped_target=lists["target"],
        )


def _resource_list(amounts: Mapping[str, int], rounding: Rounding) -> ResourceList:
    written = {CPU: cpu_quantity, MEMORY: memory_quantity}
    return {resource: written[resource](amount, rounding) for resource, amount in amounts.items()}


def recommend_containers(
    profiles: Mapping[str, Aggregate], settings: RecommenderSettings
) -> tuple[ContainerRecommendation, ...]:
    """Recommend for the containers of one VPA, sorted by name; they share the pod's minimum."""
    if not profiles:
        return ()
    floors = settings.floors(len(profiles))
    return tuple(_recommend(name, profiles[name], settings, floors) for name in sorted(profiles))


def _recommend(
    name: str, profile: Aggregate, settings: RecommenderSettings, floors: tuple[int, int]
) -> ContainerRecommendation:
    estimators = settings.estimators.for_container(profile.policy)
    here = np.array([profile.row])
    cpu = estimate_cpu(profile.table, here, estimators, np.array([floors[0]]))
    memory = estimate_memory(profile.table, here, estimators, np.array([floors[1]]))
    return derive(name, {CPU: (cpu, 0), MEMORY: (memory, 0)}, profile.controlled_resources)


def derive(
    name: str, estimates: Mapping[str, tuple[Estimates, int]], controlled: tuple[str, ...]
) -> ContainerRecommendation:
    """Pick one container out of batch estimates, each given with the container's place in it."""
    reasons = {
        bound: {
            resource: _derivation(resource, batch, row, place)
            for resource, (batch, place) in estimates.items()
            if resource in controlled
        }
        for row, bound in enumerate(BOUNDS)
    }
    amounts = {
        bound: {resource: reason.amount for resource, reason in by_resource.items()}
        for bound, by_resource in reasons.items()
    }
    return ContainerRecommendation(name, amounts, reasons)


def _derivation(resource: str, batch: Estimates, row: int, place: int) -> Derivation:
    bucket = int(batch.buckets[row, place])
    return Derivation(
        resource=resource,
        percentile=batch.shares[row],
        bucket=bucket if bucket >= 0 else None,
        usage=int(batch.usage[row, place]),
        margin=int(batch.margins[row, place]),
        multiplier=float(batch.multipliers[row, place]),
        floor=int(batch.floors[place]),
        amount=int(batch.amounts[row, place]),
    )


def pod_resources(
    containers: tuple[ContainerRecommendation, ...], rounding: Rounding
) -> RecommendedPodResources:
    """Return the recommendations of a pod's containers as the API shows them."""
    return RecommendedPodResources(
        container_recommendations=tuple(container.resources(rounding) for container in containers)
    )
