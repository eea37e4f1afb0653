"""Recommendation quality: the recommendation of each aggregate against the usage of its containers.

Recommendations are arrays over the rows of the aggregate table, so that a scrape of 10,000 samples is compared at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.containers import DETACHED, UsageRows
from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.model.core.pod import CPU, MEMORY, ResourceList
from trimtab.model.vpa.types import ContainerScalingMode

NOT_SCALED: Final = -1
"""The group of an aggregate that no VPA scales."""


def size_log2(pods: int) -> str:
    """Return upstream's label for the size of a VPA: the logarithm of its number of pods."""
    return str(pods.bit_length() - 1) if pods > 0 else "0"


class QualityLabels(NamedTuple):
    """The labels of quality metrics: the VPA's update mode and size."""

    update_mode: str
    size_log2: str


class ComparedUsage(NamedTuple):
    """Samples of a group and the recommendations for their containers, NaN without one."""

    group: QualityLabels
    used: Floats
    recommended: Floats


@dataclass(frozen=True)
class Expectations:
    """The recommendation of every aggregate, in cores and bytes."""

    groups: tuple[QualityLabels, ...]
    group: Ints
    """Per row of the aggregate table the index in `groups`, or NOT_SCALED."""
    recommended: dict[str, Floats]

    def compare(self, state: ClusterState, resource: str, usage: UsageRows) -> Iterator[ComparedUsage]:
        """Yield accepted samples with their recommendations, by group."""
        rows = state.containers.aggregate[usage.containers]
        rows, amounts = rows[rows != DETACHED], usage.amounts[rows != DETACHED]
        # Rows that were allocated since then have no recommendation.
        is_known = rows < len(self.group)
        rows, amounts = rows[is_known], amounts[is_known]
        used = amounts / np.float64(1000.0 if resource == CPU else 1.0)
        groups = self.group[rows]
        for index, group in enumerate(self.groups):
            chosen = groups == index
            if chosen.any():
                yield ComparedUsage(group, used[chosen], self.recommended[resource][rows[chosen]])

    def changes(self, after: "Expectations") -> Iterator[tuple[QualityLabels, str, Floats]]:
        """Yield per group and resource the relative changes of recommendations."""
        width = min(len(self.group), len(after.group))
        for resource, now in after.recommended.items():
            before = self.recommended[resource][:width]
            with np.errstate(invalid="ignore", divide="ignore"):
                change = now[:width] / before - 1.0
            is_comparable = (before > 0) & ~np.isnan(change)
            for index, group in enumerate(after.groups):
                chosen = is_comparable & (after.group[:width] == index)
                if chosen.any():
                    yield group, resource, change[chosen]


def expectations_of(state: ClusterState) -> Expectations:
    """Return the present recommendation of every aggregate."""
    width = state.table.width
    group = np.full(width, NOT_SCALED, dtype=np.int64)
    cpu, memory = np.full(width, np.nan), np.full(width, np.nan)
    groups: dict[QualityLabels, int] = {}
    for vpa in state.vpas.values():
        labels = QualityLabels(vpa.update_mode or "", size_log2(vpa.pod_count))
        for aggregate in vpa.aggregates.values():
            if aggregate.scaling_mode == ContainerScalingMode.OFF:
                continue
            group[aggregate.row] = groups.setdefault(labels, len(groups))
            recommended = aggregate.last_recommendation
            if recommended is not None:
                cpu[aggregate.row] = _amount(recommended, CPU) / 1000.0
                memory[aggregate.row] = _amount(recommended, MEMORY)
    return Expectations(tuple(groups), group, {CPU: cpu, MEMORY: memory})


def _amount(recommended: ResourceList, resource: str) -> float:
    amount = recommended.get(resource)
    if amount is None:
        return float("nan")
    return float(amount.milli_value() if resource == CPU else amount.value())
