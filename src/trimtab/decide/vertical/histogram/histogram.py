"""One histogram: a column of the matrix, with the operations that tests, checkpoints and displays need."""

import itertools
import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

import numpy as np

from trimtab.decide.vertical.histogram.buckets import Buckets, Ints
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.decide.vertical.histogram.matrix import NEVER, HistogramMatrix, SampleBatch
from trimtab.decide.vertical.histogram.percentiles import EMPTY
from trimtab.model import times
from trimtab.model.times import SECOND_NS, ZERO_TIME_NS
from trimtab.model.vpa.types import HistogramCheckpoint

HEAVIEST_CHECKPOINT_WEIGHT: Final = 10_000
WEIGHT_TOLERANCE: Final = 1e-15


class Histogram:
    """A view of one column of a matrix; times are integer nanoseconds since 1970."""

    def __init__(self, matrix: HistogramMatrix, column: int | None = None) -> None:
        self.matrix = matrix
        self.column = matrix.allocate() if column is None else column
        self._here: Ints = np.array([self.column])

    @classmethod
    def alone(cls, buckets: Buckets, half_life_ns: int | None) -> "Histogram":
        """Return an empty histogram in a matrix of its own."""
        return cls(HistogramMatrix(buckets, half_life_ns, block_columns=1))

    def add(self, value: float, weight: float, time_ns: int) -> None:
        """Add a sample."""
        self.matrix.add(self._one(value, weight, time_ns))

    def subtract(self, value: float, weight: float, time_ns: int) -> None:
        """Take a sample out that was added before."""
        self.matrix.subtract(self._one(value, weight, time_ns))

    def _one(self, value: float, weight: float, time_ns: int) -> SampleBatch:
        return SampleBatch(self._here, np.array([value]), np.array([weight]), np.array([to_int64(time_ns)]))

    def merge(self, other: "Histogram") -> None:
        """Add the samples of `other`, a histogram of the same matrix; its reference time may move forward."""
        if other.matrix is not self.matrix:
            raise ValueError("histograms of two matrices cannot be merged; allocate both in one")
        self.matrix.merge(self._here, other._here)

    def percentile_bucket(self, fraction: float) -> int | None:
        """Return the bucket that holds a percentile; None while empty."""
        bucket = int(self.matrix.percentiles([fraction], self._here)[0, 0])
        return None if bucket == EMPTY else bucket

    def percentile(self, fraction: float) -> float:
        """Return the end of the bucket that holds a percentile; 0 while empty."""
        return self.percentiles([fraction])[0]

    def percentiles(self, fractions: Sequence[float]) -> list[float]:
        """Return the ends of the buckets that hold some percentiles; zeros while empty."""
        found = self.matrix.percentiles(fractions, self._here)[:, 0]
        return [0.0 if bucket == EMPTY else float(self.matrix.buckets.ends[bucket]) for bucket in found]

    @property
    def weights(self) -> Floats:
        """The weight of each bucket, those that do not count included."""
        return self.matrix.gather(self._here)[:, 0]

    @property
    def is_empty(self) -> bool:
        """Whether no bucket weighs enough to count."""
        return bool(self.weights[self.min_bucket] < self.matrix.buckets.epsilon)

    @property
    def min_bucket(self) -> int:
        """The first bucket that counts; the last of all while empty."""
        return int(self.matrix.lowest[self.column])

    @property
    def max_bucket(self) -> int:
        """The last bucket that counts; 0 while empty."""
        return int(self.matrix.highest[self.column])

    @property
    def total_weight(self) -> float:
        """The running total, which percentiles are taken of."""
        return float(self.matrix.total[self.column])

    @property
    def reference_ns(self) -> int:
        """The time at which a sample weighs just its weight."""
        return from_int64(int(self.matrix.reference[self.column]))

    def equals(self, other: "Histogram") -> bool:
        """Return whether the counted buckets agree to 1e-15, and layout, half-life and reference time exactly."""
        mine, theirs = self.matrix, other.matrix
        if (mine.buckets, mine.half_life_ns) != (theirs.buckets, theirs.half_life_ns):
            return False
        if (self.min_bucket, self.max_bucket) != (other.min_bucket, other.max_bucket):
            return False
        if mine.half_life_ns is not None and self.reference_ns != other.reference_ns:
            return False
        counted = slice(self.min_bucket, self.max_bucket + 1)
        return bool(np.all(np.abs(self.weights[counted] - other.weights[counted]) <= WEIGHT_TOLERANCE))

    def save(self) -> HistogramCheckpoint:
        """Return the histogram with its weights squeezed to whole numbers, the heaviest 10000."""
        return save_columns(self.matrix, self._here)[0]

    def load(self, checkpoint: HistogramCheckpoint) -> str | None:
        """Add a saved histogram and take over its reference time; return why it was refused, if it was."""
        refusal = refuse_checkpoint(checkpoint, self.matrix.buckets)
        if refusal:
            return refusal
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
    """Return some histograms with their weights squeezed to whole numbers, the heaviest of each 10000."""
    weights = matrix.counted(columns)
    heaviest = weights.max(axis=0)
    scale = HEAVIEST_CHECKPOINT_WEIGHT / np.where(heaviest > 0, heaviest, 1.0)
    squeezed = np.floor(weights * scale + 0.5).astype(np.int64).T
    owners, buckets = np.nonzero(squeezed)
    ends = np.searchsorted(owners, np.arange(len(columns) + 1)).tolist()
    kept, listed = squeezed[owners, buckets].tolist(), buckets.tolist()
    references, totals = matrix.reference[columns].tolist(), matrix.total[columns].tolist()
    return [
        HistogramCheckpoint(
            reference_timestamp=to_wire_time(from_int64(references[place])),
            bucket_weights=dict(zip(listed[start:stop], kept[start:stop], strict=True)),
            total_weight=totals[place],
        )
        for place, (start, stop) in enumerate(itertools.pairwise(ends))
    ]


def refuse_checkpoint(checkpoint: HistogramCheckpoint, buckets: Buckets) -> str | None:
    """Return why a saved histogram cannot be trusted, or None."""
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
    """Write a float as Go does: without exponent below 1e21, without a point if whole."""
    text = repr(number)
    if "e+" in text and abs(number) < 1e21:
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")


def to_int64(time_ns: int) -> int:
    """Return a time as the matrix holds it; times too old for 64 bits are never."""
    return max(NEVER, min(time_ns, 2**63 - 1))


def from_int64(time_ns: int) -> int:
    """Return a time of the matrix as nanoseconds since 1970; never is the year 1."""
    return ZERO_TIME_NS if time_ns == NEVER else time_ns


def to_wire_time(time_ns: int) -> datetime | None:
    """Return a time as Kubernetes stores it: whole seconds, never as null."""
    return None if time_ns == ZERO_TIME_NS else times.from_ns(time_ns // SECOND_NS * SECOND_NS)


def from_wire_time(moment: datetime | None) -> int:
    """Return a stored time as the matrix holds it."""
    return NEVER if moment is None else to_int64(times.to_ns(moment))
