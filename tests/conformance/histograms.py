"""What upstream's histograms do and the product does not need: linear buckets and equality."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trimtab.decide.vertical.histogram.buckets import BucketOptionsError, Buckets, Ints
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.decide.vertical.histogram.histogram import Histogram

WEIGHT_TOLERANCE = 1e-15


@dataclass(frozen=True)
class LinearBuckets(Buckets):
    """Buckets of one size."""

    bucket_size: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.bucket_size > 0:
            raise BucketOptionsError("linear histogram options: bucketSize must be positive")

    @cached_property
    def count(self) -> int:
        return math.ceil(self.max_value / self.bucket_size) + 1

    @cached_property
    def starts(self) -> Floats:
        return np.arange(self.count, dtype=np.float64) * self.bucket_size

    def find_buckets(self, values: Floats) -> Ints:
        return np.clip(np.trunc(values / self.bucket_size), 0, self.count - 1).astype(np.int64)


def equals(mine: Histogram, theirs: Histogram) -> bool:
    """Return whether the counted buckets agree to 1e-15, and layout, half-life and reference time exactly."""
    if (mine.matrix.buckets, mine.matrix.half_life_ns) != (theirs.matrix.buckets, theirs.matrix.half_life_ns):
        return False
    if (mine.min_bucket, mine.max_bucket) != (theirs.min_bucket, theirs.max_bucket):
        return False
    if mine.matrix.half_life_ns is not None and mine.reference_ns != theirs.reference_ns:
        return False
    counted = slice(mine.min_bucket, mine.max_bucket + 1)
    return bool(np.all(np.abs(mine.weights[counted] - theirs.weights[counted]) <= WEIGHT_TOLERANCE))
