"""Aggregates: the usage history of all containers that share a name, a label set and a node scope.

`AggregateTable` holds the numbers of all aggregates in arrays. Row i of the table is column i of both histogram
matrices. `Aggregate` is a view of one row, for policies, checkpoints and displays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from trimtab.decide.vertical.histogram.buckets import CPU_BUCKETS, MEMORY_BUCKETS, Ints
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.decide.vertical.histogram.histogram import Histogram, save_columns, validate_checkpoint
from trimtab.decide.vertical.histogram.int64_times import (
    NEVER,
    from_int64,
    from_wire_time,
    to_int64,
    to_wire_time,
)
from trimtab.decide.vertical.histogram.matrix import BLOCK_COLUMNS, HistogramMatrix, SampleBatch
from trimtab.decide.vertical.histogram.table import Table, distinct_batches
from trimtab.model.core.pod import CPU, MEMORY, ResourceList
from trimtab.model.times import SECOND_NS, ZERO_TIME_NS
from trimtab.model.vpa.types import (
    ContainerResourcePolicy,
    ContainerScalingMode,
    VerticalPodAutoscalerCheckpointStatus,
)

CHECKPOINT_VERSION: Final = "v3"
CPU_SAMPLE_WEIGHT: Final = 0.1
MEMORY_SAMPLE_WEIGHT: Final = 1.0
DAY_NS: Final = 24 * 3600 * SECOND_NS
SCALED_RESOURCES: Final = (CPU, MEMORY)


@dataclass(frozen=True)
class AggregationConfig:
    """Settings of the aggregation of samples, with upstream's defaults."""

    memory_interval_ns: int = DAY_NS
    """One memory peak per container counts per interval. A day, because load mostly repeats daily."""
    memory_interval_count: int = 8
    """Intervals until history expires. 8 days by default."""
    memory_half_life_ns: int = DAY_NS
    cpu_half_life_ns: int = DAY_NS
    oom_bump_ratio: float = 1.2
    """After an OOM kill, the memory need is at least this many times the usage."""
    oom_min_bump_bytes: float = 104857600.0
    """After an OOM kill, the memory need is at least the usage plus these bytes."""

    @property
    def window_ns(self) -> int:
        """The age at which history expires."""
        return self.memory_interval_ns * self.memory_interval_count


class AggregateTable(Table):
    """The histories of all aggregates."""

    first: Ints
    last: Ints
    created: Ints
    count: Ints
    interval: Ints
    interval_count: Ints
    oom_ratio: Floats
    oom_min_bump: Floats

    FIELDS: ClassVar[dict[str, int | float]] = {
        "first": NEVER,
        "last": NEVER,
        "created": NEVER,
        "count": 0,
        "interval": 0,
        "interval_count": 0,
        "oom_ratio": 0.0,
        "oom_min_bump": 0.0,
    }

    def __init__(self, config: AggregationConfig | None = None, block_columns: int = BLOCK_COLUMNS) -> None:
        super().__init__()
        self.config = config or AggregationConfig()
        self.cpu = HistogramMatrix(CPU_BUCKETS, self.config.cpu_half_life_ns, block_columns)
        self.memory = HistogramMatrix(MEMORY_BUCKETS, self.config.memory_half_life_ns, block_columns)

    def allocate(self) -> int:
        """Return the row of an empty aggregate, which is also its column in both matrices."""
        row = super().allocate()
        # Table and matrices allocate and release together, so their numbers agree.
        columns = self.cpu.allocate(), self.memory.allocate()
        assert columns == (row, row), "aggregates and histograms fell out of step"
        self.interval[row] = self.config.memory_interval_ns
        self.interval_count[row] = self.config.memory_interval_count
        self.oom_ratio[row] = self.config.oom_bump_ratio
        self.oom_min_bump[row] = self.config.oom_min_bump_bytes
        return row

    def release_all(self, rows: Sequence[int]) -> None:
        """Free the rows of aggregates."""
        super().release_all(rows)
        self.cpu.release_all(rows)
        self.memory.release_all(rows)

    def add_cpu(self, rows: Ints, millicores: Ints, moments: Ints) -> None:
        """Add CPU samples. Only these move the sample count and the first and last times."""
        weights = np.full(len(rows), CPU_SAMPLE_WEIGHT)
        self.cpu.add(SampleBatch(rows, millicores / 1000.0, weights, moments))
        for batch in distinct_batches(rows, self._used):
            distinct, times = rows[batch], moments[batch]
            first = self.first[distinct]
            self.first[distinct] = np.where(first == NEVER, times, np.minimum(first, times))
            self.last[distinct] = np.maximum(self.last[distinct], times)
            self.count[distinct] += 1

    def add_one_cpu(self, row: int, millicores: int, moment: int) -> None:
        """Add a CPU sample, as `add_cpu` does."""
        self.cpu.add_one(row, millicores / 1000.0, CPU_SAMPLE_WEIGHT, moment)
        first = self.first.item(row)
        self.first[row] = moment if first == NEVER else min(first, moment)
        self.last[row] = max(self.last.item(row), moment)
        self.count[row] += 1

    def add_memory(self, rows: Ints, peaks: Ints, window_ends: Ints) -> None:
        """Add memory peaks, each at the end of its window."""
        self.memory.add(self._peaks(rows, peaks, window_ends))

    def subtract_memory(self, rows: Ints, peaks: Ints, window_ends: Ints) -> None:
        """Subtract memory peaks that were added before."""
        self.memory.subtract(self._peaks(rows, peaks, window_ends))

    def merge(self, into: Ints, other: Ints) -> None:
        """Add each row of `other` to the row of `into` at the same index, without repeats in either."""
        self.cpu.merge(into, other)
        self.memory.merge(into, other)
        mine, theirs = self.first[into], self.first[other]
        earliest = np.minimum(mine, theirs)
        self.first[into] = np.where(earliest == NEVER, np.maximum(mine, theirs), earliest)
        self.last[into] = np.maximum(self.last[into], self.last[other])
        self.count[into] += self.count[other]

    def save(self, rows: Ints, now_ns: int) -> list[VerticalPodAutoscalerCheckpointStatus]:
        """Return the histories of rows as checkpoints."""
        first, last, count = (field[rows].tolist() for field in (self.first, self.last, self.count))
        histograms = zip(save_columns(self.cpu, rows), save_columns(self.memory, rows), strict=True)
        return [
            VerticalPodAutoscalerCheckpointStatus(
                last_update_time=to_wire_time(now_ns),
                version=CHECKPOINT_VERSION,
                cpu_histogram=cpu,
                memory_histogram=memory,
                first_sample_start=to_wire_time(from_int64(first[index])),
                last_sample_start=to_wire_time(from_int64(last[index])),
                total_samples_count=count[index],
            )
            for index, (cpu, memory) in enumerate(histograms)
        ]

    def _peaks(self, rows: Ints, peaks: Ints, window_ends: Ints) -> SampleBatch:
        weights = np.full(len(rows), MEMORY_SAMPLE_WEIGHT)
        return SampleBatch(rows, peaks.astype(np.float64), weights, window_ends)


class Aggregate:
    """An aggregate and the policy that applies to it. Times are nanoseconds since 1970."""

    def __init__(self, table: AggregateTable, created_ns: int = ZERO_TIME_NS) -> None:
        self.table = table
        self.row = table.allocate()
        self.cpu = Histogram(table.cpu, self.row)
        self.memory = Histogram(table.memory, self.row)
        self.table.created[self.row] = to_int64(created_ns)
        self.is_under_vpa = False
        self.update_mode: str | None = None
        self.scaling_mode: str | None = None
        self.controlled_resources: tuple[str, ...] = SCALED_RESOURCES
        self.last_recommendation: ResourceList | None = None
        self.policy: ContainerResourcePolicy | None = None

    @property
    def first_sample_ns(self) -> int:
        """The time of the first CPU sample."""
        return from_int64(int(self.table.first[self.row]))

    @property
    def last_sample_ns(self) -> int:
        """The time of the last CPU sample."""
        return from_int64(int(self.table.last[self.row]))

    @property
    def created_ns(self) -> int:
        """The creation time of the aggregate."""
        return from_int64(int(self.table.created[self.row]))

    @property
    def sample_count(self) -> int:
        """The number of CPU samples."""
        return int(self.table.count[self.row])

    @property
    def is_empty(self) -> bool:
        """Whether the aggregate has no CPU sample. Memory samples do not count, as upstream."""
        return self.sample_count == 0

    def is_expired(self, now_ns: int) -> bool:
        """Return whether the last CPU sample, or else the creation, is a whole window old."""
        window = int(self.table.interval[self.row]) * int(self.table.interval_count[self.row])
        since = self.created_ns if self.is_empty else self.last_sample_ns
        return now_ns - since >= window

    def merge(self, other: "Aggregate") -> None:
        """Add the history of `other`, an aggregate of the same table."""
        self.table.merge(np.array([self.row]), np.array([other.row]))

    def apply_policy(self, policy: ContainerResourcePolicy | None, *, per_vpa: bool) -> None:
        """Apply a container's policy. `per_vpa` also applies its OOM and memory interval settings.

        Settings that a later policy no longer sets keep their value, as upstream's do.
        """
        self.policy = policy
        self.scaling_mode = (policy.mode if policy else None) or ContainerScalingMode.AUTO
        self.controlled_resources = controlled_resources(policy)
        if policy is None or not per_vpa:
            return
        table, row = self.table, self.row
        if policy.oom_bump_up_ratio is not None:
            table.oom_ratio[row] = policy.oom_bump_up_ratio.as_float()
        if policy.oom_min_bump_up is not None:
            table.oom_min_bump[row] = policy.oom_min_bump_up.as_float()
        if policy.memory_aggregation_interval_seconds is not None:
            table.interval[row] = policy.memory_aggregation_interval_seconds * SECOND_NS
        if policy.memory_aggregation_interval_count is not None:
            table.interval_count[row] = policy.memory_aggregation_interval_count

    def release(self) -> None:
        """Free the row. The aggregate must not be used afterwards."""
        self.table.release(self.row)

    def mark_not_autoscaled(self) -> None:
        """Clear the VPA that used this aggregate."""
        self.is_under_vpa = False
        self.update_mode = self.scaling_mode = None
        self.controlled_resources = SCALED_RESOURCES
        self.last_recommendation = None
        self.policy = None

    def save(self, now_ns: int) -> VerticalPodAutoscalerCheckpointStatus:
        """Return the history as a checkpoint."""
        return self.table.save(np.array([self.row]), now_ns)[0]

    def load(self, checkpoint: VerticalPodAutoscalerCheckpointStatus) -> str | None:
        """Add a saved history. Return an error, with nothing changed, if it is invalid."""
        error = validate_history(checkpoint)
        if error:
            return error
        self.memory.load(checkpoint.memory_histogram)
        self.cpu.load(checkpoint.cpu_histogram)
        table, row = self.table, self.row
        table.count[row] = checkpoint.total_samples_count
        table.first[row] = from_wire_time(checkpoint.first_sample_start)
        table.last[row] = from_wire_time(checkpoint.last_sample_start)
        return None


def controlled_resources(policy: ContainerResourcePolicy | None) -> tuple[str, ...]:
    """Return the resources that a policy lets the VPA control, by default CPU and memory."""
    if policy is None or policy.controlled_resources is None:
        return SCALED_RESOURCES
    return tuple(name for name in policy.controlled_resources if name in SCALED_RESOURCES)


def validate_history(checkpoint: VerticalPodAutoscalerCheckpointStatus) -> str | None:
    """Return why a checkpoint cannot be loaded, or None."""
    if checkpoint.version != CHECKPOINT_VERSION:
        return f"unsupported checkpoint version {checkpoint.version}"
    if checkpoint.total_samples_count < 0:
        return f"cannot load checkpoint with a negative number of samples {checkpoint.total_samples_count}"
    return validate_checkpoint(checkpoint.memory_histogram, MEMORY_BUCKETS) or validate_checkpoint(
        checkpoint.cpu_histogram, CPU_BUCKETS
    )
