"""A single histogram: a view of one matrix column, and its checkpoint."""

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import numpy as np

from trimtab.decide.vertical.histogram.buckets import Buckets, Ints
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.decide.vertical.histogram.int64_times import from_int64, from_wire_time, to_int64, to_wire_time
from trimtab.decide.vertical.histogram.matrix import HistogramMatrix
from trimtab.decide.vertical.histogram.percentiles import EMPTY
from trimtab.model.vpa.types import HistogramCheckpoint

HEAVIEST_CHECKPOINT_WEIGHT: Final = 10_000


class Histogram:
    """A view of one column of a matrix. Times are integer nanoseconds since 1970."""

    def __init__(self, matrix: HistogramMatrix, column: int | None = None) -> None:
        self.matrix = matrix
        self.column = matrix.allocate() if column is None else column
        self._here: Ints = np.array([self.column])

    @classmethod
    def standalone(cls, buckets: Buckets, half_life_ns: int | None) -> "Histogram":
        """Return an empty histogram in its own matrix."""
        return cls(HistogramMatrix(buckets, half_life_ns, block_columns=1))

    def add(self, value: float, weight: float, time_ns: int) -> None:
        """Add a sample."""
        self.matrix.add_one(self.column, value, weight, to_int64(time_ns))

    def subtract(self, value: float, weight: float, time_ns: int) -> None:
        """Subtract a sample that was added before."""
        self.matrix.subtract_one(self.column, value, weight, to_int64(time_ns))

    def merge(self, other: "Histogram") -> None:
        """Add the samples of `other`, a histogram of the same matrix. Its reference time may move forward."""
        if other.matrix is not self.matrix:
            raise ValueError("histograms of two matrices cannot be merged; allocate both in one")
        self.matrix.merge(self._here, other._here)

    def percentile_bucket(self, fraction: float) -> int | None:
        """Return the bucket that holds a percentile, or None if the histogram is empty."""
        bucket = int(self.matrix.percentiles([fraction], self._here)[0, 0])
        return None if bucket == EMPTY else bucket

    def percentile(self, fraction: float) -> float:
        """Return the end of the bucket that holds a percentile, or 0 if the histogram is empty."""
        return self.percentiles([fraction])[0]

    def percentiles(self, fractions: Sequence[float]) -> list[float]:
        """Return the ends of the buckets that hold the percentiles, or zeros if the histogram is empty."""
        buckets = self.matrix.percentiles(fractions, self._here)[:, 0]
        return [0.0 if bucket == EMPTY else float(self.matrix.buckets.ends[bucket]) for bucket in buckets]

    @property
    def weights(self) -> Floats:
        """The weight of each bucket, including weights below epsilon."""
        return self.matrix.gather(self._here)[:, 0]

    @property
    def is_empty(self) -> bool:
        """Whether every bucket is below epsilon."""
        return bool(self.weights[self.min_bucket] < self.matrix.buckets.epsilon)

    @property
    def min_bucket(self) -> int:
        """The first bucket that counts, or the last bucket if the histogram is empty."""
        return int(self.matrix.lowest[self.column])

    @property
    def max_bucket(self) -> int:
        """The last bucket that counts, or 0 if the histogram is empty."""
        return int(self.matrix.highest[self.column])

    @property
    def total_weight(self) -> float:
        """The running total of weights, the base of percentiles."""
        return float(self.matrix.total[self.column])

    @property
    def reference_ns(self) -> int:
        """The time at which the decay factor of a sample is 1."""
        return from_int64(int(self.matrix.reference[self.column]))

    def save(self) -> HistogramCheckpoint:
        """Return a checkpoint: weights scaled to whole numbers, the heaviest 10000."""
        return save_columns(self.matrix, self._here)[0]

    def load(self, checkpoint: HistogramCheckpoint) -> str | None:
        """Add a checkpoint and take over its reference time. Return an error if it is invalid."""
        error = validate_checkpoint(checkpoint, self.matrix.buckets)
        if error:
            return error
        saved = checkpoint.bucket_weights
        total = sum(saved.values())
        if total > 0:
            ratio = checkpoint.total_weight / total
            self.matrix.load(
                self.column,
                {bucket: weight * ratio for bucket, weight in saved.items()},
                checkpoint.total_weight,
            )
        self.matrix.reference[self.column] = from_wire_time(checkpoint.reference_timestamp)
        return None


def save_columns(matrix: HistogramMatrix, columns: Ints) -> list[HistogramCheckpoint]:
    """Return the checkpoints of columns: weights scaled to whole numbers, the heaviest of each 10000."""
    weights = matrix.counted(columns)
    heaviest = weights.max(axis=0)
    scale = HEAVIEST_CHECKPOINT_WEIGHT / np.where(heaviest > 0, heaviest, 1.0)
    scaled = np.floor(weights * scale + 0.5).astype(np.int64).T
    owners, buckets = np.nonzero(scaled)
    ends = np.searchsorted(owners, np.arange(len(columns) + 1)).tolist()
    kept, listed = scaled[owners, buckets].tolist(), buckets.tolist()
    references, totals = matrix.reference[columns].tolist(), matrix.total[columns].tolist()
    return [
        HistogramCheckpoint(
            reference_timestamp=to_wire_time(from_int64(references[place])),
            bucket_weights=dict(zip(listed[start:stop], kept[start:stop], strict=True)),
            total_weight=totals[place],
        )
        for place, (start, stop) in enumerate(itertools.pairwise(ends))
    ]


def validate_checkpoint(checkpoint: HistogramCheckpoint, buckets: Buckets) -> str | None:
    """Return why a saved histogram is invalid, or None."""
    if math.isnan(checkpoint.total_weight) or math.isinf(checkpoint.total_weight):
        return f"cannot load checkpoint with weight {checkpoint.total_weight}, which is not a number"
    if checkpoint.total_weight < 0:
        return f"cannot load checkpoint with negative weight {_plain(checkpoint.total_weight)}"
    for bucket, weight in sorted(checkpoint.bucket_weights.items()):
        if bucket >= buckets.count:
            return f"checkpoint has bucket {bucket} that is exceeding histogram buckets {buckets.count}"
        if bucket < 0:
            return f"checkpoint has a negative bucket {bucket}"
        if weight < 0:
            return f"checkpoint has the negative weight {weight} in bucket {bucket}"
    return None


def _plain(number: float) -> str:
    """Format a float as Go does: without exponent below 1e21, without a point if whole."""
    text = repr(number)
    if "e+" in text and abs(number) < 1e21:
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")
