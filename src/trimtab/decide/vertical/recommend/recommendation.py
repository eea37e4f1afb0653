"""The recommendation for the containers of one VPA, with how each number came about."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import (
    SCALED_RESOURCES,
    Aggregate,
    AggregateTable,
)
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
UNSURE: Final = 10.0
"""An upper bound that is this many times what was measured, for want of samples, bounds nothing."""
_QUANTITIES: Final = {CPU: cpu_quantity, MEMORY: memory_quantity}


@dataclass(frozen=True)
class RecommenderSettings:
    """Everything a recommendation depends on besides history; each default is upstream's flag."""

    estimators: EstimatorSettings = field(default_factory=EstimatorSettings)
    pod_min_cpu_millicores: float = 25.0
    """The least CPU of a whole pod; its containers share it equally."""
    pod_min_memory_mib: float = 250.0
    """The least memory of a whole pod; its containers share it equally."""
    rounding: RecommendationRounding = field(default_factory=RecommendationRounding)

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
    samples: int = 0

    @property
    def is_floor(self) -> bool:
        """Whether the pod's minimum decided, not usage."""
        return self.amount == self.floor and self.amount > self.usage

    @property
    def is_known(self) -> bool:
        """Whether enough is known for the bound to mean something; a target always does."""
        return self.multiplier < UNSURE

    @property
    def sample_text(self) -> str:
        """The number of samples with its word."""
        return f"{self.samples:,} sample{'' if self.samples == 1 else 's'}"

    def __str__(self) -> str:
        if not self.is_known:
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


class ContainerRecommendation(NamedTuple):
    """What one container should have, before policies are applied: its place in batch estimates."""

    name: str
    estimates: Mapping[str, Estimates]
    """Per resource that is controlled."""
    place: int

    @property
    def amounts(self) -> dict[Bound, dict[str, int]]:
        """Per bound and resource the amount, before rounding flags."""
        place, estimates = self.place, self.estimates.items()
        return {
            bound: {resource: batch.listed[row][place] for resource, batch in estimates}
            for row, bound in enumerate(BOUNDS)
        }

    @property
    def reasons(self) -> dict[Bound, dict[str, Derivation]]:
        """Per bound and resource how the amount came about."""
        return {
            bound: {resource: self._derivation(resource, row) for resource in self.estimates}
            for row, bound in enumerate(BOUNDS)
        }

    def _derivation(self, resource: str, row: int) -> Derivation:
        batch, place = self.estimates[resource], self.place
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
            samples=int(batch.samples[place]),
        )

    def resources(self, rounding: RecommendationRounding) -> RecommendedContainerResources:
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
        container_recommendations=tuple(container.resources(rounding) for container in containers)
    )


def recommend_containers(
    profiles: Mapping[str, Aggregate], settings: RecommenderSettings
) -> tuple[ContainerRecommendation, ...]:
    """Recommend for the containers of one VPA, sorted by name; they share the pod's minimum."""
    names = sorted(profiles)
    if not names:
        return ()
    floor = settings.floors(len(names))
    wanted = [
        ContainerToRecommend(
            profiles[name].row, name, floor, profiles[name].policy, profiles[name].controlled_resources
        )
        for name in names
    ]
    return tuple(recommend_rows(profiles[names[0]].table, wanted, settings))


class ContainerToRecommend(NamedTuple):
    """A container to recommend for: the row of its merged history, and what else counts."""

    row: int
    name: str
    floor: tuple[int, int]
    """The least millicores and bytes."""
    policy: ContainerResourcePolicy | None = None
    controlled: tuple[str, ...] = SCALED_RESOURCES


class RecommendationBatch:
    """Recommendations for many containers, in the order they were wanted; each is made when it is asked for."""

    def __init__(self, wanted: Sequence[ContainerToRecommend]) -> None:
        self.wanted = wanted
        self.estimates: list[dict[str, Estimates]] = []
        """One entry per group of containers that share their settings."""
        self._group = np.zeros(len(wanted), dtype=np.int64)
        self._place = np.arange(len(wanted))

    def add(self, places: Sequence[int], estimates: dict[str, Estimates]) -> None:
        """Add the estimates of the containers at some places."""
        self._group[places] = len(self.estimates)
        self._place[places] = np.arange(len(places))
        self.estimates.append(estimates)

    def __len__(self) -> int:
        return len(self.wanted)

    def __getitem__(self, place: int) -> ContainerRecommendation:
        one, batch = self.wanted[place], self.estimates[self._group[place]]
        kept = batch if one.controlled is SCALED_RESOURCES else {name: batch[name] for name in one.controlled}
        return ContainerRecommendation(one.name, kept, int(self._place[place]))

    def __iter__(self) -> Iterator[ContainerRecommendation]:
        return (self[place] for place in range(len(self)))


def recommend_rows(
    table: AggregateTable, wanted: Sequence[ContainerToRecommend], settings: RecommenderSettings
) -> RecommendationBatch:
    """Recommend for many containers at once, in their order."""
    usual, most = settings.estimators, list[int]()
    groups: dict[EstimatorSettings, list[int]] = {usual: most}
    for place, one in enumerate(wanted):
        # Hashing settings a hundred thousand times costs more than estimating: most containers have none of their own.
        own = usual if one.policy is None else usual.for_container(one.policy)
        (most if own is usual else groups.setdefault(own, [])).append(place)
    found = RecommendationBatch(wanted)
    for estimators, places in groups.items():
        found.add(places, _estimate_batch(table, [wanted[place] for place in places], estimators))
    return found


def _estimate_batch(
    table: AggregateTable, members: Sequence[ContainerToRecommend], estimators: EstimatorSettings
) -> dict[str, Estimates]:
    count = len(members)
    rows = np.fromiter((one.row for one in members), np.int64, count)
    least_cpu = np.fromiter((one.floor[0] for one in members), np.int64, count)
    least_memory = np.fromiter((one.floor[1] for one in members), np.int64, count)
    return {
        CPU: estimate_cpu(table, rows, estimators, least_cpu),
        MEMORY: estimate_memory(table, rows, estimators, least_memory),
    }
