"""How good recommendations are: what was expected of each aggregate, beside what its containers really used.

Expectations are arrays over the rows of the aggregate table, so that a scrape of ten thousand samples is judged at
once.
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
"""The group of an aggregate that no VPA sizes."""


def size_log2(pods: int) -> str:
    """Return the label by which upstream groups VPAs: the logarithm of their number of pods."""
    return str(pods.bit_length() - 1) if pods > 0 else "0"


class QualityLabels(NamedTuple):
    """What aggregates are told apart by: their VPA's update mode and the order of its size."""

    update_mode: str
    size_log2: str


class Judged(NamedTuple):
    """Samples of one group, and what was recommended to their containers; NaN where nothing was."""

    group: QualityLabels
    used: Floats
    recommended: Floats


@dataclass(frozen=True)
class Expectations:
    """What every aggregate's containers are recommended, in cores and bytes."""

    groups: tuple[QualityLabels, ...]
    group: Ints
    """Per row of the table the place in `groups`, or NOT_SCALED."""
    recommended: dict[str, Floats]

    def judge(self, state: ClusterState, resource: str, usage: UsageRows) -> Iterator[Judged]:
        """Yield accepted samples beside what was expected, group by group."""
        rows = state.containers.aggregate[usage.containers]
        rows, amounts = rows[rows != DETACHED], usage.amounts[rows != DETACHED]
        # Rows made since then have no recommendation to be judged by.
        is_known = rows < len(self.group)
        rows, amounts = rows[is_known], amounts[is_known]
        used = amounts / np.float64(1000.0 if resource == CPU else 1.0)
        groups = self.group[rows]
        for place, group in enumerate(self.groups):
            chosen = groups == place
            if chosen.any():
                yield Judged(group, used[chosen], self.recommended[resource][rows[chosen]])

    def changes(self, after: "Expectations") -> Iterator[tuple[QualityLabels, str, Floats]]:
        """Yield per group and resource by how much recommendations changed, as a share of what they were."""
        width = min(len(self.group), len(after.group))
        for resource, now in after.recommended.items():
            before = self.recommended[resource][:width]
            with np.errstate(invalid="ignore", divide="ignore"):
                change = now[:width] / before - 1.0
            is_comparable = (before > 0) & ~np.isnan(change)
            for place, group in enumerate(after.groups):
                chosen = is_comparable & (after.group[:width] == place)
                if chosen.any():
                    yield group, resource, change[chosen]


def expectations_of(state: ClusterState) -> Expectations:
    """Return what is recommended now, aggregate by aggregate."""
    width = state.table.width
    group = np.full(width, NOT_SCALED, dtype=np.int64)
    cpu, memory = np.full(width, np.nan), np.full(width, np.nan)
    places: dict[QualityLabels, int] = {}
    for vpa in state.vpas.values():
        own = QualityLabels(vpa.update_mode or "", size_log2(vpa.pod_count))
        for aggregate in vpa.aggregates.values():
            if aggregate.scaling_mode == ContainerScalingMode.OFF:
                continue
            group[aggregate.row] = places.setdefault(own, len(places))
            recommended = aggregate.last_recommendation
            if recommended is not None:
                cpu[aggregate.row] = _amount(recommended, CPU) / 1000.0
                memory[aggregate.row] = _amount(recommended, MEMORY)
    return Expectations(tuple(places), group, {CPU: cpu, MEMORY: memory})


def _amount(recommended: ResourceList, resource: str) -> float:
    found = recommended.get(resource)
    if found is None:
        return float("nan")
    return float(found.milli_value() if resource == CPU else found.value())
