"""All decaying histograms of one resource as one matrix: a column per aggregate, a row per bucket.

A sample weighs 2^(age / half-life) against its column's reference time, so stored weights stay valid as time passes.
Beyond 100 half-lives the column's reference time moves forward. Rows are contiguous in memory (bucket-major), so a
running sum over the buckets of thousands of columns is one addition per row. Columns live in blocks, so growth copies
nothing. See docs/decisions/store-all-vpa-histograms-in-a-matrix.md.

Every operation takes arrays of columns. `Histogram` is the view of a single column.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from trimtab.decide.vertical.histogram import go_math
from trimtab.decide.vertical.histogram.buckets import Buckets, Ints
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.decide.vertical.histogram.int64_times import LATEST, NEVER
from trimtab.decide.vertical.histogram.percentiles import find_percentiles
from trimtab.decide.vertical.histogram.table import distinct_batches, is_increasing
from trimtab.model.times import ZERO_TIME_NS

MAX_DECAY_HALF_LIVES: Final = 100
BLOCK_COLUMNS: Final = 8192
FIRST_BLOCK_COLUMNS: Final = 1024


@dataclass(frozen=True)
class SampleBatch:
    """Samples for many histograms: column, value, weight and time (int64 ns) of each."""

    columns: Ints
    values: Floats
    weights: Floats
    times: Ints

    def take(self, indices: Ints | slice) -> "SampleBatch":
        """Return the samples at these indices."""
        return SampleBatch(
            self.columns[indices], self.values[indices], self.weights[indices], self.times[indices]
        )


class HistogramMatrix:
    """Histograms of one bucket layout and half-life, by column. Without a half-life weights do not decay."""

    def __init__(
        self, buckets: Buckets, half_life_ns: int | None, block_columns: int = BLOCK_COLUMNS
    ) -> None:
        self.buckets = buckets
        self.half_life_ns = half_life_ns
        self.reference = np.full(0, NEVER, dtype=np.int64)
        self.lowest = np.empty(0, dtype=np.int64)
        self.highest = np.empty(0, dtype=np.int64)
        self.total = np.empty(0)
        self._block_columns = block_columns
        self._blocks: list[Floats] = []
        self._starts = [0]
        """The first column of each block, then the number of columns allocated so far."""
        self._free: list[int] = []
        self._used = 0
        # True where a weight below epsilon lies outside lowest..highest. A scan must skip it.
        self._has_strays = np.empty(0, dtype=np.bool_)

    def __len__(self) -> int:
        return self._used - len(self._free)

    @property
    def width(self) -> int:
        """The highest number of columns that were in use at once. Every column number is below it."""
        return self._used

    def allocate(self) -> int:
        """Return an empty column."""
        if self._free:
            return self._free.pop()
        column = self._used
        if column == self._starts[-1]:
            self._grow()
        self._used += 1
        return column

    def release_all(self, released: Sequence[int]) -> None:
        """Empty columns and free them for reuse."""
        self._free.extend(released)
        columns = np.array(released, dtype=np.int64)
        for _, block, places in self._by_block(columns):
            block[:, places] = 0.0
        self.reference[columns], self.total[columns] = NEVER, 0.0
        self.lowest[columns], self.highest[columns] = self.buckets.count - 1, 0
        self._has_strays[columns] = False

    def _grow(self) -> None:
        # Each block doubles the width, so that a small cluster needs no big block. Unused columns are not free in
        # practice: the kernel backs large arrays by the megabyte.
        count = self.buckets.count
        width = min(max(self._starts[-1], FIRST_BLOCK_COLUMNS), self._block_columns)
        self._blocks.append(np.zeros((count, width)))
        self._starts.append(self._starts[-1] + width)
        self.reference = np.append(self.reference, np.full(width, NEVER, dtype=np.int64))
        self.lowest = np.append(self.lowest, np.full(width, count - 1, dtype=np.int64))
        self.highest = np.append(self.highest, np.zeros(width, dtype=np.int64))
        self.total = np.append(self.total, np.zeros(width))
        self._has_strays = np.append(self._has_strays, np.zeros(width, dtype=np.bool_))

    def add(self, samples: SampleBatch) -> None:
        """Add samples. Samples of one column are added in order."""
        for chosen, block, places in self._distinct(samples):
            self._add(chosen, block, places)

    def add_one(self, column: int, value: float, weight: float, time: int) -> None:
        """Add a sample, as `add` does. A handful of samples is faster so."""
        decayed = self._decayed_one(column, weight, time)
        bucket, (block, place) = self.buckets.find_bucket(value), self._place(column)
        self.total[column] += decayed
        block[bucket, place] = total = block.item(bucket, place) + decayed
        counts = total >= self.buckets.epsilon
        if bucket < self.lowest[column]:
            self._widen(self.lowest, column, bucket, counts)
        if bucket > self.highest[column]:
            self._widen(self.highest, column, bucket, counts)

    def _widen(self, edges: Ints, column: int, bucket: int, counts: bool) -> None:
        if counts:
            edges[column] = bucket
        else:
            self._has_strays[column] = True

    def subtract_one(self, column: int, value: float, weight: float, time: int) -> None:
        """Subtract a sample, as `subtract` does."""
        decayed, epsilon = self._decayed_one(column, weight, time), self.buckets.epsilon
        bucket, (block, place) = self.buckets.find_bucket(value), self._place(column)
        total, left = self.total.item(column) - decayed, block.item(bucket, place) - decayed
        self.total[column] = 0.0 if total < epsilon else total
        block[bucket, place] = 0.0 if left < epsilon else left
        edges = self.lowest.item(column), self.highest.item(column)
        if left < epsilon and bucket in edges:
            if edges[0] == edges[1]:
                self.lowest[column], self.highest[column] = self.buckets.count - 1, 0
            else:
                self._trim(np.array([column]))

    def _decayed_one(self, column: int, weight: float, time: int) -> float:
        if self.half_life_ns is None:
            return weight
        reference = self.reference.item(column)
        if reference == NEVER or time - reference > self.half_life_ns * MAX_DECAY_HALF_LIVES or time == NEVER:
            here, times = np.array([column]), np.array([time])
            return self._decayed(SampleBatch(here, times, np.array([weight]), times)).item()
        return weight * go_math.exp2((time - reference) / float(self.half_life_ns))

    def _place(self, column: int) -> tuple[Floats, int]:
        """Return the block of a column, and the column's place in it."""
        index = bisect_right(self._starts, column) - 1
        return self._blocks[index], column - self._starts[index]

    def subtract(self, samples: SampleBatch) -> None:
        """Subtract samples. Weights that fall below epsilon become 0."""
        for chosen, block, places in self._distinct(samples):
            self._subtract(chosen, block, places)

    def _distinct(self, samples: SampleBatch) -> Iterator[tuple[SampleBatch, Floats, Ints]]:
        for batch in distinct_batches(samples.columns, self._used):
            distinct = samples if len(batch) == len(samples.columns) else samples.take(batch)
            for chosen, block, places in self._by_block(distinct.columns):
                yield distinct.take(chosen), block, places

    def _add(self, samples: SampleBatch, block: Floats, places: Ints) -> None:
        columns = samples.columns
        decayed = self._decayed(samples)
        buckets = self.buckets.find_buckets(samples.values)
        self.total[columns] += decayed
        sums = block[buckets, places] + decayed
        block[buckets, places] = sums
        counts = sums >= self.buckets.epsilon
        lowest, highest = self.lowest[columns], self.highest[columns]
        below, above = buckets < lowest, buckets > highest
        self.lowest[columns] = np.where(below & counts, buckets, lowest)
        self.highest[columns] = np.where(above & counts, buckets, highest)
        self._has_strays[columns] |= (below | above) & ~counts

    def _subtract(self, samples: SampleBatch, block: Floats, places: Ints) -> None:
        columns = samples.columns
        decayed = self._decayed(samples)
        buckets = self.buckets.find_buckets(samples.values)
        self.total[columns] = self._above_epsilon(self.total[columns] - decayed)
        left = self._above_epsilon(block[buckets, places] - decayed)
        block[buckets, places] = left
        lowest, highest = self.lowest[columns], self.highest[columns]
        is_edge = (left == 0) & ((buckets == lowest) | (buckets == highest))
        # Most columns that lose an edge lose their only bucket, so no search is needed.
        is_only = is_edge & (lowest == highest)
        self.lowest[columns[is_only]] = self.buckets.count - 1
        self.highest[columns[is_only]] = 0
        searched = columns[is_edge & ~is_only]
        if len(searched):
            self._trim(searched)

    def _above_epsilon(self, weights: Floats) -> Floats:
        return np.where(weights < self.buckets.epsilon, 0.0, weights)

    def _decayed(self, samples: SampleBatch) -> Floats:
        if self.half_life_ns is None:
            return samples.weights
        age = self._since_reference(samples.columns, samples.times)
        stale = age > self.half_life_ns * MAX_DECAY_HALF_LIVES
        if stale.any():
            self.move_reference(samples.columns[stale], samples.times[stale])
            age = self._since_reference(samples.columns, samples.times)
        if (age == age[0]).all():
            age = age[:1]  # samples of one scrape share their time, so one power is enough
        return samples.weights * go_math.exp2_array(age / float(self.half_life_ns))

    def _since_reference(self, columns: Ints, times: Ints) -> Ints:
        reference = self.reference[columns]
        never = reference == NEVER
        # Differences saturate at 64 bits, as Go's durations do.
        return np.where(never, np.where(times == NEVER, 0, LATEST), times - np.where(never, 0, reference))

    def move_reference(self, columns: Ints, times: Ints) -> None:
        """Set each column's reference time to `times`, rounded to a half-life, and rescale its weights."""
        assert self.half_life_ns is not None, "a histogram without half-life has no reference time"
        half_life = self.half_life_ns
        # Go rounds from the year 1, halves upwards. For multiples of a day 1970 gives the same result.
        into = (times % half_life - ZERO_TIME_NS % half_life) % half_life
        reference = times - into + np.where(into * 2 >= half_life, half_life, 0)
        ahead = self._since_reference(columns, reference).astype(np.float64) / float(half_life)
        exponents = np.maximum(np.floor(-ahead + 0.5), -5000).astype(np.int32)
        self.reference[columns] = reference
        factors = np.ldexp(1.0, exponents)
        self.total[columns] *= factors
        filled = self.lowest[columns] <= self.highest[columns]
        if filled.any():
            self._scale(columns[filled], factors[filled])

    def _scale(self, columns: Ints, factors: Floats) -> None:
        # Only lowest..highest is rescaled. Lighter weights outside keep their old value, as upstream's do.
        weights = self.gather(columns)
        inside = self._inside(columns)
        self.scatter(columns, np.where(inside, weights * factors, weights))
        self._trim(columns)

    def _inside(self, columns: Ints) -> npt.NDArray[np.bool_]:
        rows = np.arange(self.buckets.count)[:, np.newaxis]
        return (rows >= self.lowest[columns]) & (rows <= self.highest[columns])

    def _trim(self, columns: Ints) -> None:
        # Lowest walks up and highest walks down to the next bucket that counts.
        weights = self.gather(columns)
        counts = weights >= self.buckets.epsilon
        rows = np.arange(self.buckets.count)[:, np.newaxis]
        last = self.buckets.count - 1
        upward = counts & (rows >= self.lowest[columns])
        downward = counts & (rows <= self.highest[columns])
        self.lowest[columns] = np.where(upward.any(axis=0), upward.argmax(axis=0), last)
        self.highest[columns] = np.where(downward.any(axis=0), last - downward[::-1].argmax(axis=0), 0)
        self._has_strays[columns] = ((weights > 0) & ~self._inside(columns)).any(axis=0)

    def merge(self, into: Ints, other: Ints) -> None:
        """Add each column of `other` to the column of `into` at the same index, without repeats in `into`.

        The older of the two reference times moves to the younger, in `other` as well.
        """
        if self.half_life_ns is not None:
            mine, theirs = self.reference[into], self.reference[other]
            self._align(into[mine < theirs], theirs[mine < theirs])
            self._align(other[theirs < mine], mine[theirs < mine])
        self.scatter(into, self.gather(into) + self.counted(other))
        self.total[into] += self.total[other]
        self.lowest[into] = np.minimum(self.lowest[into], self.lowest[other])
        self.highest[into] = np.maximum(self.highest[into], self.highest[other])

    def _align(self, columns: Ints, times: Ints) -> None:
        if len(columns):
            self.move_reference(columns, times)

    def load(self, column: int, weights: Mapping[int, float], total: float) -> None:
        """Add saved bucket weights to a column, regardless of its reference time."""
        here = np.array([column])
        for _, block, places in self._by_block(here):
            for bucket, weight in weights.items():
                block[bucket, places] += weight
        self.total[column] += total
        self.lowest[column] = min(*weights, int(self.lowest[column]))
        self.highest[column] = max(*weights, int(self.highest[column]))
        self._trim(here)

    def percentiles(self, fractions: Sequence[float], columns: Ints | None = None) -> Ints:
        """Return the bucket of each percentile as [fractions x columns], -1 for empty columns."""
        if columns is not None and len(columns) * 4 < self._used:
            return self._scan_gathered(fractions, columns)
        found = np.empty((len(fractions), self._used), dtype=np.int64)
        shares = np.array(fractions)[:, np.newaxis]
        for start, block in zip(self._starts, self._blocks, strict=False):
            here = slice(start, min(start + block.shape[1], self._used))
            weights = block[:, : here.stop - start]
            found[:, here] = find_percentiles(
                weights, self.lowest[here], self.highest[here], shares * self.total[here]
            )
        strays = np.flatnonzero(self._has_strays[: self._used])
        if len(strays):
            found[:, strays] = self._scan_gathered(fractions, strays)
        return found if columns is None else found[:, columns]

    def _scan_gathered(self, fractions: Sequence[float], columns: Ints) -> Ints:
        weights = self.counted(columns)
        thresholds = np.array(fractions)[:, np.newaxis] * self.total[columns]
        return find_percentiles(weights, self.lowest[columns], self.highest[columns], thresholds)

    def gather(self, columns: Ints) -> Floats:
        """Return a copy of the weights of some columns as [buckets x columns]."""
        weights = np.empty((self.buckets.count, len(columns)))
        for chosen, block, places in self._by_block(columns):
            weights[:, chosen] = block[:, places]
        return weights

    def counted(self, columns: Ints) -> Floats:
        """Return a copy of the weights that count, as [buckets x columns]."""
        return np.where(self._inside(columns), self.gather(columns), 0.0)

    def scatter(self, columns: Ints, weights: Floats) -> None:
        """Replace the weights of distinct columns."""
        for chosen, block, places in self._by_block(columns):
            block[:, places] = weights[:, chosen]

    def _by_block(self, columns: Ints) -> Iterator[tuple[Ints | slice, Floats, Ints]]:
        if not len(columns):
            return
        least, most = int(columns.min()), int(columns.max())
        is_sorted = is_increasing(columns)
        for start, stop, block in zip(self._starts, self._starts[1:], self._blocks, strict=False):
            if stop <= least or start > most:
                continue
            chosen: Ints | slice
            if is_sorted:
                chosen = slice(*np.searchsorted(columns, (start, stop)).tolist())
            else:
                chosen = np.flatnonzero((columns >= start) & (columns < stop))
            places = columns[chosen] - start
            if len(places):
                yield chosen, block, places
