"""Weights at and below epsilon: a bucket counts from exactly epsilon on."""

import math

import pytest

from trimtab.decide.vertical.histogram.buckets import CPU_BUCKETS, MEMORY_BUCKETS
from trimtab.decide.vertical.histogram.histogram import Histogram

NO_TIME = 0


def without_decay(buckets):
    return Histogram.standalone(buckets, None)


@pytest.mark.parametrize("buckets", [CPU_BUCKETS, MEMORY_BUCKETS], ids=["cpu", "memory"])
@pytest.mark.parametrize("is_exact", [True, False], ids=["exactly epsilon", "just below"])
class TestAWeight:
    def weight(self, buckets, is_exact):
        return buckets.epsilon if is_exact else math.nextafter(buckets.epsilon, 0)

    def test_counts_as_the_only_sample(self, buckets, is_exact):
        histogram = without_decay(buckets)
        histogram.add(float(buckets.ends[3]), self.weight(buckets, is_exact), NO_TIME)
        assert histogram.is_empty is not is_exact
        assert (histogram.percentile_bucket(1.0) is None) is not is_exact

    @pytest.mark.parametrize("bucket", [2, 12], ids=["below the others", "above the others"])
    def test_moves_the_ends_of_the_histogram(self, buckets, is_exact, bucket):
        histogram = without_decay(buckets)
        histogram.add(_inside(buckets, 7), 1.0, NO_TIME)
        histogram.add(_inside(buckets, bucket), self.weight(buckets, is_exact), NO_TIME)
        ends = sorted((7, bucket)) if is_exact else [7, 7]
        assert [histogram.min_bucket, histogram.max_bucket] == ends

    @pytest.mark.parametrize("bucket", [2, 12], ids=["below the others", "above the others"])
    def test_is_left_by_a_subtraction(self, buckets, is_exact, bucket):
        histogram = without_decay(buckets)
        histogram.add(_inside(buckets, 7), 1.0, NO_TIME)
        histogram.add(_inside(buckets, bucket), 2 * self.weight(buckets, is_exact), NO_TIME)
        histogram.subtract(_inside(buckets, bucket), self.weight(buckets, is_exact), NO_TIME)
        ends = sorted((7, bucket)) if is_exact else [7, 7]
        assert [histogram.min_bucket, histogram.max_bucket] == ends
        assert (histogram.weights[bucket] > 0) == is_exact


def _inside(buckets, bucket):
    """Return a value inside of a bucket."""
    return float((buckets.ends[bucket - 1] + buckets.ends[bucket]) / 2)


@pytest.mark.parametrize("taken", [2, 12])
def test_what_is_subtracted_moves_only_its_own_end(taken):
    histogram = without_decay(CPU_BUCKETS)
    for bucket in (2, 7, 12):
        histogram.add(_inside(CPU_BUCKETS, bucket), 1.0, NO_TIME)
    histogram.subtract(_inside(CPU_BUCKETS, taken), 1.0, NO_TIME)
    assert [histogram.min_bucket, histogram.max_bucket] == ([7, 12] if taken == 2 else [2, 7])
    assert histogram.total_weight == pytest.approx(2.0)


def test_a_histogram_that_loses_its_last_bucket_is_empty_and_fills_again():
    histogram = without_decay(CPU_BUCKETS)
    histogram.add(_inside(CPU_BUCKETS, 7), 1.0, NO_TIME)
    histogram.subtract(_inside(CPU_BUCKETS, 7), 1.0, NO_TIME)
    assert histogram.is_empty
    assert histogram.total_weight == 0
    histogram.add(_inside(CPU_BUCKETS, 4), 1.0, NO_TIME)
    assert [histogram.min_bucket, histogram.max_bucket] == [4, 4]
    assert histogram.percentile(0.5) == float(CPU_BUCKETS.ends[4])
