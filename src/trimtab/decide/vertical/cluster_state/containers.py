"""The sample state of running containers, and the way of a sample into its aggregate.

CPU samples go straight to the histogram. Of memory, one peak per container and window counts, at the end of the window.
A higher peak replaces the lower one. An OOM kill is a memory sample of the amount that the container would have needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from trimtab.decide.vertical.cluster_state.aggregates import MEMORY_SAMPLE_WEIGHT, AggregateTable
from trimtab.decide.vertical.cluster_state.amounts import amount_from_float, scaled
from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.int64_times import NEVER, from_int64, to_int64
from trimtab.decide.vertical.histogram.table import Table, distinct_batches
from trimtab.model.times import SECOND_NS, format_ns

Accepted = npt.NDArray[np.bool_]
_LATEST_NS: Final = 120 * SECOND_NS
_FEW: Final = 32
_FAR: Final = 2**62
DETACHED: Final = -1
"""The aggregate row of a container whose aggregate was collected."""


@dataclass(frozen=True)
class UsageRows:
    """Usage samples of one resource: container row, amount (millicores or bytes) and time of each."""

    containers: Ints
    amounts: Ints
    times: Ints

    def take(self, indices: Ints) -> "UsageRows":
        """Return the samples at these indices."""
        return UsageRows(self.containers[indices], self.amounts[indices], self.times[indices])

    @property
    def few(self) -> list[tuple[int, int, int]]:
        """Row, amount and time of each sample, if they are so few that they are added faster one by one.

        Left to arrays are two samples of a container, whose order counts, and times that arrays let overflow as Go does.
        """
        rows, times = self.containers.tolist() if len(self.containers) <= _FEW else [], self.times
        if not rows or len(set(rows)) < len(rows) or max(abs(time) for time in times.tolist()) >= _FAR:
            return []
        return list(zip(rows, self.amounts.tolist(), times.tolist(), strict=True))

    def where(self, mask: Accepted) -> "UsageRows":
        """Return the samples that a mask selects."""
        return self if mask.all() else self.take(np.flatnonzero(mask))


class ContainerTable(Table):
    """The sample state of all running containers."""

    aggregate: Ints
    last_cpu: Ints
    last_memory: Ints
    window_end: Ints
    memory_peak: Ints
    oom_peak: Ints

    FIELDS: ClassVar[dict[str, int | float]] = {
        "aggregate": DETACHED,
        "last_cpu": NEVER,
        "last_memory": NEVER,
        "window_end": NEVER,
        "memory_peak": 0,
        "oom_peak": 0,
    }

    def __init__(self, aggregates: AggregateTable) -> None:
        super().__init__()
        self.aggregates = aggregates

    def add_cpu(self, usage: UsageRows) -> Accepted:
        """Add CPU samples. Samples that are negative or not newer than the last are rejected."""
        if few := usage.few:
            return np.array([self._add_one_cpu(*sample) for sample in few])
        accepted = np.zeros(len(usage.containers), dtype=np.bool_)
        for batch in distinct_batches(usage.containers, self._used):
            samples = usage.take(batch)
            is_valid = (samples.amounts >= 0) & (samples.times > self.last_cpu[samples.containers])
            accepted[batch] = is_valid
            samples = samples.where(is_valid)
            self.last_cpu[samples.containers] = samples.times
            samples = samples.where(self.aggregate[samples.containers] != DETACHED)
            self.aggregates.add_cpu(self.aggregate[samples.containers], samples.amounts, samples.times)
        return accepted

    def _add_one_cpu(self, row: int, amount: int, moment: int) -> bool:
        if amount < 0 or moment <= self.last_cpu.item(row):
            return False
        self.last_cpu[row] = moment
        aggregate = self.aggregate.item(row)
        if aggregate != DETACHED:
            self.aggregates.add_one_cpu(aggregate, amount, moment)
        return True

    def add_memory(self, usage: UsageRows, *, is_oom: bool = False) -> Accepted:
        """Add memory samples. Samples that are negative or older than the last are rejected.

        The sample of an OOM kill may be older.
        """
        if few := usage.few:
            return self._add_few_peaks(few, is_oom=is_oom)
        accepted = np.zeros(len(usage.containers), dtype=np.bool_)
        for batch in distinct_batches(usage.containers, self._used):
            samples = usage.take(batch)
            in_order = samples.times >= self.last_memory[samples.containers]
            is_valid = (samples.amounts >= 0) & (in_order | is_oom)
            accepted[batch] = is_valid
            self._add_peaks(samples.where(is_valid), is_oom=is_oom)
        return accepted

    def _add_peaks(self, usage: UsageRows, *, is_oom: bool) -> None:
        rows = usage.containers
        self.last_memory[rows] = usage.times
        is_first = self.window_end[rows] == NEVER
        self.window_end[rows] = np.where(is_first, usage.times, self.window_end[rows])
        is_over = usage.times >= self.window_end[rows]
        peaks = self.peaks(rows)
        # A window whose first peak is 0 gets no higher peak: upstream takes 0 for "no peak yet".
        is_higher = ~is_over & (peaks != 0) & (usage.amounts > peaks)
        self._forget_peaks(rows[is_higher], peaks[is_higher])
        self._next_window(usage.where(is_over))
        self._record_peaks(usage.where(is_over | is_higher), is_oom=is_oom)

    def _add_few_peaks(self, samples: Sequence[tuple[int, int, int]], *, is_oom: bool) -> Accepted:
        """Add memory samples as above. All lower peaks are forgotten before the first higher one is added."""
        accepted, added, memory = [], [], self.aggregates.memory
        for row, amount, moment in samples:
            is_valid = amount >= 0 and (is_oom or moment >= self.last_memory.item(row))
            accepted.append(is_valid)
            if not is_valid:
                continue
            self.last_memory[row] = moment
            end = self.window_end.item(row)
            peak = max(self.memory_peak.item(row), self.oom_peak.item(row))
            aggregate = self.aggregate.item(row)
            if moment >= end:  # or there is no window yet
                self.window_end[row] = moment if end == NEVER else end
                self._next_window(UsageRows(*np.array([[row], [amount], [moment]])))
                end = self.window_end.item(row)
            elif peak == 0 or amount <= peak:
                continue
            elif aggregate != DETACHED:
                memory.subtract_one(aggregate, float(peak), MEMORY_SAMPLE_WEIGHT, end)
            added.append((row, aggregate, amount, end))
        for row, aggregate, amount, end in added:
            (self.oom_peak if is_oom else self.memory_peak)[row] = amount
            if aggregate != DETACHED:
                memory.add_one(aggregate, float(amount), MEMORY_SAMPLE_WEIGHT, end)
        return np.array(accepted)

    def _forget_peaks(self, rows: Ints, peaks: Ints) -> None:
        attached = self.aggregate[rows] != DETACHED
        rows = rows[attached]
        self.aggregates.subtract_memory(self.aggregate[rows], peaks[attached], self.window_end[rows])

    def _next_window(self, usage: UsageRows) -> None:
        rows = usage.containers
        intervals = self._intervals(rows)
        late = usage.times - self.window_end[rows]
        self.window_end[rows] += late // intervals * intervals + intervals
        self.memory_peak[rows] = 0
        self.oom_peak[rows] = 0

    def _intervals(self, rows: Ints) -> Ints:
        aggregates = self.aggregate[rows]
        own = self.aggregates.interval[aggregates]
        return np.where(aggregates == DETACHED, self.aggregates.config.memory_interval_ns, own)

    def _record_peaks(self, usage: UsageRows, *, is_oom: bool) -> None:
        (self.oom_peak if is_oom else self.memory_peak)[usage.containers] = usage.amounts
        usage = usage.where(self.aggregate[usage.containers] != DETACHED)
        rows = usage.containers
        self.aggregates.add_memory(self.aggregate[rows], usage.amounts, self.window_end[rows])

    def peaks(self, rows: Ints) -> Ints:
        """Return the higher of both peaks of each container."""
        return np.maximum(self.memory_peak[rows], self.oom_peak[rows])


class ContainerHistory:
    """The sample state of one running container: a view of one row."""

    __slots__ = ("row", "table")

    def __init__(self, table: ContainerTable) -> None:
        self.table = table
        self.row = table.allocate()

    @property
    def _here(self) -> Ints:
        return np.array([self.row])

    def add_cpu(self, millicores: int, time_ns: int) -> bool:
        """Add a CPU sample and return whether it was accepted."""
        return bool(self.table.add_cpu(self._usage(millicores, time_ns))[0])

    def add_memory(self, amount: int, time_ns: int) -> bool:
        """Add a memory sample and return whether it was accepted."""
        return bool(self.table.add_memory(self._usage(amount, time_ns))[0])

    def record_oom(self, time_ns: int, request_bytes: int, capacity_bytes: int | None = None) -> str | None:
        """Add the memory that a killed container would have needed. Return an error if the kill is rejected."""
        table, row = self.table, self.row
        aggregates, aggregate = table.aggregates, int(table.aggregate[row])
        interval = int(table._intervals(self._here)[0])
        if to_int64(time_ns) < int(table.last_memory[row]) - interval:
            return f"OOM event will be discarded - it is too old ({_go_time(time_ns)})"
        # Earlier OOM peaks do not count, so that a series of kills does not multiply.
        used = max(request_bytes, int(table.memory_peak[row]))
        config = aggregates.config
        detached = aggregate == DETACHED
        ratio = config.oom_bump_ratio if detached else float(aggregates.oom_ratio[aggregate])
        bump = config.oom_min_bump_bytes if detached else float(aggregates.oom_min_bump[aggregate])
        needed = max(used + amount_from_float(bump), scaled(used, ratio))
        needed = needed if capacity_bytes is None else min(needed, max(capacity_bytes, used))
        accepted = table.add_memory(self._usage(needed, time_ns), is_oom=True)[0]
        return None if accepted else "adding OOM sample failed"

    def _usage(self, amount: int, time_ns: int) -> UsageRows:
        return UsageRows(self._here, np.array([amount]), np.array([to_int64(time_ns)]))

    @property
    def aggregate(self) -> int:
        """The row of the aggregate that receives the samples."""
        return int(self.table.aggregate[self.row])

    @aggregate.setter
    def aggregate(self, row: int) -> None:
        self.table.aggregate[self.row] = row

    @property
    def memory_peak(self) -> int:
        """The highest memory usage of the running window."""
        return int(self.table.memory_peak[self.row])

    @property
    def oom_peak(self) -> int:
        """The highest need after an OOM kill in the running window."""
        return int(self.table.oom_peak[self.row])

    @property
    def max_peak(self) -> int:
        """The higher of both peaks."""
        return max(self.memory_peak, self.oom_peak)

    @property
    def window_end_ns(self) -> int:
        """The end of the running memory window."""
        return from_int64(int(self.table.window_end[self.row]))

    def resume_window(self, end_ns: int, memory_peak: int, oom_peak: int) -> None:
        """Continue a saved window, unless a window is running already."""
        table, row = self.table, self.row
        if table.window_end[row] != NEVER:
            return
        table.window_end[row] = to_int64(end_ns)
        table.memory_peak[row], table.oom_peak[row] = memory_peak, oom_peak
        if table.aggregate[row] != DETACHED and self.max_peak > 0:
            here = self._here
            table.aggregates.add_memory(table.aggregate[here], table.peaks(here), table.window_end[here])

    def close_window(self, now_ns: int) -> None:
        """End the memory window early, and reject samples from before: they belong to another aggregate.

        The limit is at most 2 minutes after the last sample, because clocks of nodes may be late.
        """
        table, row = self.table, self.row
        table.window_end[row] = NEVER
        table.memory_peak[row] = 0
        table.oom_peak[row] = 0
        for last in (table.last_cpu, table.last_memory):
            if last[row] != NEVER:
                last[row] = max(int(last[row]), min(to_int64(now_ns), int(last[row]) + _LATEST_NS))


def _go_time(time_ns: int) -> str:
    return format_ns(time_ns).replace("T", " ").replace("Z", " +0000 UTC")
