"""Histograms: one matrix for all, the same bits as one at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.histograms import LinearBuckets, equals
from tests.unit.decide.vertical.usage_builders import DAY_NS, HOUR_NS, START_NS
from trimtab.decide.vertical.histogram.buckets import (
    CPU_BUCKETS,
    MEMORY_BUCKETS,
    BucketOptionsError,
    ExponentialBuckets,
)
from trimtab.decide.vertical.histogram.histogram import Histogram
from trimtab.decide.vertical.histogram.matrix import HistogramMatrix, SampleBatch
from trimtab.model.vpa.types import HistogramCheckpoint

SAMPLES = st.lists(
    st.tuples(
        st.integers(0, 3),  # column
        st.floats(0.0, 2000.0),  # cores
        st.sampled_from([0.1, 1.0, 0.00005]),
        st.integers(-24 * 400, 24 * 400),  # hours around the start
    ),
    min_size=1,
    max_size=40,
)
FRACTIONS = (0.0, 0.1, 0.5, 0.9, 0.95, 1.0)


def four(block_columns=3) -> tuple[HistogramMatrix, list[Histogram]]:
    matrix = HistogramMatrix(CPU_BUCKETS, DAY_NS, block_columns)
    return matrix, [Histogram(matrix) for _ in range(4)]


def batch(samples) -> SampleBatch:
    columns, values, weights, hours = zip(*samples, strict=True)
    moments = START_NS + np.array(hours) * HOUR_NS
    return SampleBatch(np.array(columns), np.array(values), np.array(weights), moments)


@settings(max_examples=60)
@given(SAMPLES)
def test_a_batch_leaves_the_same_bits_as_its_samples_one_by_one(samples):
    (together, _), (_, alone) = four(), four()
    together.add(batch(samples))
    for column, value, weight, hour in samples:
        alone[column].add(value, weight, START_NS + hour * HOUR_NS)
    all_columns = np.arange(4)
    single = alone[0].matrix
    assert (together.gather(all_columns) == single.gather(all_columns)).all()
    assert (together.total == single.total).all()
    assert (together.percentiles(FRACTIONS) == single.percentiles(FRACTIONS)).all()


@settings(max_examples=60)
@given(SAMPLES)
def test_percentiles_of_all_columns_are_those_of_each(samples):
    matrix, each = four()
    matrix.add(batch(samples))
    found = matrix.percentiles(FRACTIONS)
    for column, histogram in enumerate(each):
        assert [histogram.percentile_bucket(share) for share in FRACTIONS] == [
            None if bucket < 0 else bucket for bucket in found[:, column].tolist()
        ]


def test_a_wide_block_is_scanned_to_the_same_percentiles_as_a_narrow_one():
    random = np.random.default_rng(7)
    matrix = HistogramMatrix(CPU_BUCKETS, DAY_NS, block_columns=256)
    columns = np.array([matrix.allocate() for _ in range(600)])
    for hour in range(12):
        cores = random.lognormal(-1, 2.5, len(columns))
        moments = np.full(len(columns), START_NS + hour * HOUR_NS)
        matrix.add(SampleBatch(columns, cores, np.full(len(columns), 0.1), moments))
    wide = matrix.percentiles(FRACTIONS)
    narrow = [
        matrix.percentiles(FRACTIONS, columns[place : place + 1])[:, 0] for place in range(len(columns))
    ]
    assert (wide == np.stack(narrow, axis=1)).all()


@settings(max_examples=60)
@given(SAMPLES)
def test_a_checkpoint_keeps_percentiles_within_one_bucket(samples):
    _, (histogram, *_) = four()
    for _, value, _, hour in samples:
        histogram.add(value, 0.1, START_NS + abs(hour) % 48 * HOUR_NS)
    restored = Histogram.standalone(CPU_BUCKETS, DAY_NS)
    assert restored.load(histogram.save()) is None
    for share in (0.5, 0.9, 0.95):
        before, after = histogram.percentile_bucket(share), restored.percentile_bucket(share)
        assert before is not None
        assert after is not None
        # Squeezing rounds weights, so a threshold that fell just short of a bucket may just reach it: the next
        # bucket that holds anything.
        filled = np.flatnonzero(histogram.weights).tolist()
        assert abs(filled.index(before) - filled.index(after)) <= 1


@settings(max_examples=40)
@given(SAMPLES)
def test_a_checkpoint_of_a_checkpoint_is_the_same_checkpoint(samples):
    _, (histogram, *_) = four()
    for _, value, _, hour in samples:
        histogram.add(value, 1.0, START_NS + abs(hour) % 24 * HOUR_NS)
    once = histogram.save()
    restored = Histogram.standalone(CPU_BUCKETS, DAY_NS)
    restored.load(once)
    assert restored.save().bucket_weights == once.bucket_weights


def test_merging_two_histograms_is_adding_all_their_samples():
    matrix, (one, other, both, _) = four()
    for place, histogram in enumerate((one, other)):
        for hour in range(30):
            sample = (0.1 * (place + 1) * (hour % 7 + 1), 0.1, START_NS + hour * HOUR_NS)
            histogram.add(*sample)
            both.add(*sample)
    one.merge(other)
    assert one.percentiles(FRACTIONS) == both.percentiles(FRACTIONS)
    assert one.total_weight == pytest.approx(both.total_weight)
    assert len(matrix) == 4


def test_what_is_subtracted_leaves_nothing_behind():
    histogram = Histogram.standalone(MEMORY_BUCKETS, DAY_NS)
    histogram.add(5e9, 1.0, START_NS)
    histogram.subtract(5e9, 1.0, START_NS)
    assert histogram.is_empty
    assert equals(histogram, _moved(Histogram.standalone(MEMORY_BUCKETS, DAY_NS)))


def _moved(histogram: Histogram) -> Histogram:
    histogram.add(1e7, 1.0, START_NS)
    histogram.subtract(1e7, 1.0, START_NS)
    return histogram


def test_a_released_column_comes_back_empty():
    matrix, each = four()
    each[2].add(1.0, 1.0, START_NS)
    matrix.release_all([2])
    assert len(matrix) == 3
    assert matrix.allocate() == 2
    assert Histogram(matrix, 2).is_empty
    assert Histogram(matrix, 2).total_weight == 0


def test_after_a_hundred_half_lives_old_weight_is_rescaled_and_new_samples_count():
    histogram = Histogram.standalone(CPU_BUCKETS, DAY_NS)
    histogram.add(1.0, 0.1, START_NS)
    histogram.add(2.0, 0.1, START_NS + 200 * DAY_NS)
    assert histogram.percentile(0.5) == CPU_BUCKETS.ends[CPU_BUCKETS.find_buckets(np.array([2.0]))[0]]
    assert histogram.total_weight < 0.2


@pytest.mark.parametrize(
    ("checkpoint", "why"),
    [
        pytest.param(HistogramCheckpoint(total_weight=float("nan")), "not a number", id="NaN total"),
        pytest.param(HistogramCheckpoint(total_weight=float("inf")), "not a number", id="infinite total"),
        pytest.param(HistogramCheckpoint(total_weight=-1.0), "negative weight -1", id="negative total"),
        pytest.param(
            HistogramCheckpoint(bucket_weights={3: -5}), "negative weight -5", id="negative bucket weight"
        ),
        pytest.param(HistogramCheckpoint(bucket_weights={-1: 5}), "negative bucket -1", id="negative bucket"),
        pytest.param(
            HistogramCheckpoint(bucket_weights={176: 5}), "exceeding", id="a bucket beyond the last"
        ),
    ],
)
def test_f60_a_broken_checkpoint_is_refused_and_changes_nothing(checkpoint, why):
    histogram = Histogram.standalone(CPU_BUCKETS, DAY_NS)
    histogram.add(1.0, 0.1, START_NS)
    before = histogram.save()
    assert why in (histogram.load(checkpoint) or "")
    assert histogram.save() == before


def test_histograms_of_two_matrices_do_not_merge():
    with pytest.raises(ValueError, match="two matrices"):
        Histogram.standalone(CPU_BUCKETS, DAY_NS).merge(Histogram.standalone(CPU_BUCKETS, DAY_NS))


def test_a_layout_without_size_is_refused():
    with pytest.raises(BucketOptionsError):
        LinearBuckets(max_value=10, epsilon=0.1, bucket_size=0)


@pytest.mark.parametrize(
    "options",
    [
        {"max_value": 0.0},
        {"max_value": -1.0},
        {"epsilon": 0.0},
        {"first_bucket_size": 0.0},
        {"ratio": 1.0},
    ],
    ids=str,
)
def test_buckets_that_cannot_be_built_are_refused(options):
    good = {"max_value": 10.0, "epsilon": 0.001, "first_bucket_size": 1.0, "ratio": 1.05}
    assert ExponentialBuckets(**good).count > 1
    with pytest.raises(BucketOptionsError):
        ExponentialBuckets(**(good | options))
