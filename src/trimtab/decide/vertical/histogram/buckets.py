"""The bucket layouts of histograms: where each bucket starts and which bucket a value falls into."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from trimtab.decide.vertical.histogram import go_math
from trimtab.decide.vertical.histogram.go_math import Floats

Ints: TypeAlias = npt.NDArray[np.int64]


class BucketOptionsError(ValueError):
    """A layout that cannot be built."""


@dataclass(frozen=True)
class Buckets(ABC):
    """A layout of histogram buckets up to `max_value`. Weights below `epsilon` count as 0."""

    max_value: float
    epsilon: float

    def __post_init__(self) -> None:
        if not (self.max_value > 0 and self.epsilon > 0):
            raise BucketOptionsError("histogram options: maxValue and epsilon must both be positive")

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of buckets, including a bucket for values above the maximum."""

    @property
    @abstractmethod
    def starts(self) -> Floats:
        """The smallest value of each bucket."""

    @cached_property
    def ends(self) -> Floats:
        """The value of a percentile in each bucket: the bucket's end, or the start of the last bucket."""
        return np.append(self.starts[1:], self.starts[-1])

    @abstractmethod
    def find_buckets(self, values: Floats) -> Ints:
        """Return the bucket of each value, which must not be NaN."""

    def find_bucket(self, value: float) -> int:
        """Return the bucket of a value, which must not be NaN."""
        return int(self.find_buckets(np.array([value]))[0])


@dataclass(frozen=True)
class ExponentialBuckets(Buckets):
    """Buckets that grow by `ratio`: a constant relative error over many orders of magnitude."""

    first_bucket_size: float
    ratio: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.first_bucket_size > 0 and self.ratio > 1):
            raise BucketOptionsError(
                "exponential histogram options: firstBucketSize must be positive and ratio above 1"
            )

    @cached_property
    def count(self) -> int:
        """The number of buckets, including a bucket for values above the maximum."""
        widened = self.max_value * (self.ratio - 1) / self.first_bucket_size + 1
        return math.ceil(go_math.log(widened) / self._log_ratio) + 1

    @cached_property
    def starts(self) -> Floats:
        """Partial sums of the geometric series, in closed form."""
        grown = [go_math.pow_whole(self.ratio, bucket) for bucket in range(1, self.count)]
        return np.array([0.0] + [self.first_bucket_size * (power - 1) / (self.ratio - 1) for power in grown])

    def find_buckets(self, values: Floats) -> Ints:
        """Return the bucket of each value. Values outside the range go to the first or the last bucket.

        Rounding puts a computed start into the bucket below it, as upstream's rounding does.
        """
        in_range = np.clip(values, self.first_bucket_size, self.max_value * self.ratio**2)
        logs = go_math.log_array(in_range * (self.ratio - 1) / self.first_bucket_size + 1)
        buckets = np.minimum(np.trunc(logs / self._log_ratio), self.count - 1).astype(np.int64)
        buckets[values < self.first_bucket_size] = 0
        return buckets

    def find_bucket(self, value: float) -> int:
        """Return the bucket of a value, as `find_buckets` does."""
        if value < self.first_bucket_size:
            return 0
        in_range = min(value, self.max_value * self.ratio**2)
        grown = go_math.log(in_range * (self.ratio - 1) / self.first_bucket_size + 1)
        return min(int(grown / self._log_ratio), self.count - 1)

    @cached_property
    def _log_ratio(self) -> float:
        return go_math.log(self.ratio)


EPSILON: Final = 0.001 * 0.1
"""The smallest weight that counts: 0.1 % of one CPU sample."""

CPU_BUCKETS: Final = ExponentialBuckets(
    max_value=1000.0, epsilon=EPSILON, first_bucket_size=0.01, ratio=1.0 + 0.05
)
"""Cores, from 10 millicores to 1000 cores, 5 % apart."""

MEMORY_BUCKETS: Final = ExponentialBuckets(
    max_value=1e12, epsilon=EPSILON, first_bucket_size=1e7, ratio=1.0 + 0.05
)
"""Bytes, from 10 MB to 1 TB, 5 % apart."""
