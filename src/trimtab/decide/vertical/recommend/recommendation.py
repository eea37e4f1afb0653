"""The recommendation for containers, with the derivation of each amount."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import SCALED_RESOURCES, AggregateTable
from trimtab.decide.vertical.cluster_state.amounts import amount_from_float, millicores_from_cores, scaled
from trimtab.decide.vertical.recommend.estimators import (
    BOUNDS,
    Bound,
    Estimates,
    EstimatorSettings,
    estimate_cpu,
    estimate_memory,
)
from trimtab.decide.vertical.recommend.quantities import RecommendationRounding, cpu_quantity, memory_quantity
from trimtab.model.core.pod import CPU, MEMORY, ResourceList
from trimtab.model.readable import readable_amount
from trimtab.model.vpa.types import (
    ContainerResourcePolicy,
    RecommendedContainerResources,
    RecommendedPodResources,
)

_MEASURED: Final = {CPU: "CPU samples", MEMORY: "memory peaks"}
LOW_CONFIDENCE_MULTIPLIER: Final = 10.0
"""From this multiplier on, an upper bound has no meaning."""
_QUANTITIES: Final = {CPU: cpu_quantity, MEMORY: memory_quantity}


@dataclass(frozen=True)
class RecommenderSettings:
    """Settings of recommendations, with upstream's defaults."""

    estimators: EstimatorSettings = field(default_factory=EstimatorSettings)
    pod_min_cpu_millicores: float = 25.0
    """The minimum CPU of a pod, which its containers share equally."""
    pod_min_memory_mib: float = 250.0
    """The minimum memory of a pod, which its containers share equally."""
    rounding: RecommendationRounding = field(default_factory=RecommendationRounding)

    def floors(self, containers: int) -> tuple[int, int]:
        """Return the minimum millicores and bytes of each container of a pod."""
        share = 1.0 / containers
        return (
            scaled(millicores_from_cores(self.pod_min_cpu_millicores * 0.001), share),
            scaled(amount_from_float(self.pod_min_memory_mib * 1024 * 1024), share),
        )


@dataclass(frozen=True)
class Derivation:
    """The derivation of an amount: percentile, margin, confidence, floor."""

    resource: str
    percentile: float
    bucket: int | None
    """The histogram bucket that holds the percentile, None without samples."""
    usage: int
    """The end of that bucket."""
    margin: int
    multiplier: float
    """How much low confidence widens the bound. 1 for a target."""
    floor: int
    amount: int
    samples: int = 0
    reason: str = ""
    """Why an estimator plug-in chose the amount, after its name and version. Empty for the built-in estimate."""

    @property
    def is_floor(self) -> bool:
        """Whether the pod's minimum decides instead of usage."""
        return self.amount == self.floor and self.amount > self.usage

    @property
    def is_confident(self) -> bool:
        """Whether confidence is high enough for the bound to have a meaning."""
        return bool(self.reason) or self.multiplier < LOW_CONFIDENCE_MULTIPLIER

    @property
    def sample_text(self) -> str:
        """The number of samples with its unit."""
        return f"{self.samples:,} sample{'' if self.samples == 1 else 's'}"

    def __str__(self) -> str:
        if self.reason:
            lifted = ", raised to the pod's minimum" if self.amount == self.floor else ""
            return f"{self._text(self.amount)}: {self.reason}{lifted}"
        if not self.is_confident:
            return f"no upper bound yet: {self.sample_text}"
        if self.bucket is None:
            start = f"no {self.resource} samples yet"
        else:
            start = (
                f"{self.percentile * 100:g} % of {_MEASURED[self.resource]} are at most {self._text(self.usage)}, "
                f"margin {self._text(self.margin)}"
            )
        widened = "" if self.multiplier == 1 else f", x {self.multiplier:.3g} for {self.sample_text}"
        lifted = ", raised to the pod's minimum" if self.is_floor else ""
        return f"{self._text(self.amount)}: {start}{widened}{lifted}"

    def _text(self, amount: int) -> str:
        return readable_amount(self.resource, amount if self.resource == CPU else amount * 1000)


class PluginAmounts(NamedTuple):
    """What an estimator plug-in answered for a container, with the pod's minimum applied."""

    plugin: str
    """Its name and version."""
    reason: str
    amounts: Mapping[str, Mapping[Bound, int]]
    """By resource. A resource that is left out keeps its built-in amounts."""


class ContainerRecommendation(NamedTuple):
    """The recommendation for a container before policies are applied: its column in batch estimates."""

    name: str
    estimates: Mapping[str, Estimates]
    """Estimates per controlled resource."""
    column: int
    plugin: PluginAmounts | None = None
    """The answer of the VPA's estimator, which replaces the estimates."""
    needs_samples: bool = False
    """Whether a resource without a sample has no amount. Upstream recommends the pod's minimum, which shrinks it."""

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that have an amount: of samples, or of the VPA's estimator."""
        answered = self.plugin.amounts if self.plugin is not None else {}
        return tuple(
            resource
            for resource, batch in self.estimates.items()
            if not self.needs_samples or resource in answered or batch.is_measured[self.column]
        )

    @property
    def amounts(self) -> dict[Bound, dict[str, int]]:
        """The amount per bound and resource, before rounding flags."""
        column, answered = self.column, self.plugin.amounts if self.plugin is not None else {}
        resources = self.resources
        return {
            bound: {
                resource: answered[resource][bound]
                if resource in answered
                else self.estimates[resource].listed[row][column]
                for resource in resources
            }
            for row, bound in enumerate(BOUNDS)
        }

    @property
    def derivations(self) -> dict[Bound, dict[str, Derivation]]:
        """The derivation per bound and resource."""
        return {
            bound: {resource: self._derivation(resource, row, bound) for resource in self.resources}
            for row, bound in enumerate(BOUNDS)
        }

    def _derivation(self, resource: str, row: int, bound: Bound) -> Derivation:
        batch, column = self.estimates[resource], self.column
        bucket = int(batch.buckets[row, column])
        derivation = Derivation(
            resource=resource,
            percentile=batch.shares[row],
            bucket=bucket if bucket >= 0 else None,
            usage=int(batch.usage[row, column]),
            margin=int(batch.margins[row, column]),
            multiplier=float(batch.multipliers[row, column]),
            floor=int(batch.floors[column]),
            amount=int(batch.amounts[row, column]),
            samples=int(batch.samples[column]),
        )
        if self.plugin is None or resource not in self.plugin.amounts:
            return derivation
        reason = f"{self.plugin.plugin}: {self.plugin.reason}"
        return replace(derivation, amount=self.plugin.amounts[resource][bound], reason=reason)

    def as_resources(self, rounding: RecommendationRounding) -> RecommendedContainerResources:
        """Return the recommendation as the API shows it."""
        amounts = self.amounts
        target = _resource_list(amounts["target"], rounding)
        return RecommendedContainerResources(
            container_name=self.name,
            target=target,
            lower_bound=_resource_list(amounts["lower_bound"], rounding),
            upper_bound=_resource_list(amounts["upper_bound"], rounding),
            uncapped_target=target,
        )


def _resource_list(amounts: Mapping[str, int], rounding: RecommendationRounding) -> ResourceList:
    return {resource: _QUANTITIES[resource](amount, rounding) for resource, amount in amounts.items()}


def pod_resources(
    containers: Iterable[ContainerRecommendation], rounding: RecommendationRounding
) -> RecommendedPodResources:
    """Return the recommendations of a pod's containers as the API shows them."""
    return RecommendedPodResources(
        container_recommendations=tuple(container.as_resources(rounding) for container in containers)
    )


class ContainerToRecommend(NamedTuple):
    """A container to recommend for: the row of its merged history, its floor and its policy."""

    row: int
    name: str
    floor: tuple[int, int]
    """The minimum millicores and bytes."""
    policy: ContainerResourcePolicy | None = None
    controlled: tuple[str, ...] = SCALED_RESOURCES
    needs_samples: bool = False


class RecommendationBatch:
    """Recommendations for many containers, in their order. Each is built on access."""

    def __init__(self, containers: Sequence[ContainerToRecommend]) -> None:
        self.containers = containers
        self.estimates: list[dict[str, Estimates]] = []
        """An entry per group of containers that share their settings."""
        self._group = np.zeros(len(containers), dtype=np.int64)
        self._column = np.arange(len(containers))

    def add(self, indices: Sequence[int], estimates: dict[str, Estimates]) -> None:
        """Add the estimates of the containers at these indices."""
        self._group[indices] = len(self.estimates)
        self._column[indices] = np.arange(len(indices))
        self.estimates.append(estimates)

    def __len__(self) -> int:
        return len(self.containers)

    def __getitem__(self, index: int) -> ContainerRecommendation:
        container, estimates = self.containers[index], self.estimates[self._group[index]]
        if container.controlled is not SCALED_RESOURCES:
            estimates = {resource: estimates[resource] for resource in container.controlled}
        return ContainerRecommendation(
            container.name, estimates, int(self._column[index]), needs_samples=container.needs_samples
        )

    def __iter__(self) -> Iterator[ContainerRecommendation]:
        return (self[index] for index in range(len(self)))


def recommend_rows(
    table: AggregateTable, containers: Sequence[ContainerToRecommend], settings: RecommenderSettings
) -> RecommendationBatch:
    """Recommend for many containers at once, in their order."""
    default, with_default = settings.estimators, list[int]()
    groups: dict[EstimatorSettings, list[int]] = {default: with_default}
    for index, container in enumerate(containers):
        # Hashing settings 100,000 times costs more than estimating, and most containers have no overrides.
        estimators = default if container.policy is None else default.for_container(container.policy)
        (with_default if estimators is default else groups.setdefault(estimators, [])).append(index)
    batch = RecommendationBatch(containers)
    for estimators, indices in groups.items():
        batch.add(indices, _estimate_batch(table, [containers[index] for index in indices], estimators))
    return batch


def _estimate_batch(
    table: AggregateTable, containers: Sequence[ContainerToRecommend], estimators: EstimatorSettings
) -> dict[str, Estimates]:
    count = len(containers)
    rows = np.fromiter((container.row for container in containers), np.int64, count)
    cpu_floors = np.fromiter((container.floor[0] for container in containers), np.int64, count)
    memory_floors = np.fromiter((container.floor[1] for container in containers), np.int64, count)
    return {
        CPU: estimate_cpu(table, rows, estimators, cpu_floors),
        MEMORY: estimate_memory(table, rows, estimators, memory_floors),
    }
