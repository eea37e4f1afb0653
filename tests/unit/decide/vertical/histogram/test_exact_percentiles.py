"""Percentiles whose threshold is exactly a running sum, in narrow and in wide blocks."""

import numpy as np
import pytest

from trimtab.decide.vertical.histogram.buckets import CPU_BUCKETS
from trimtab.decide.vertical.histogram.matrix import HistogramMatrix, SampleBatch
from trimtab.decide.vertical.histogram.percentiles import EMPTY

INSIDE = (CPU_BUCKETS.ends[:-1] + CPU_BUCKETS.starts[:-1]) / 2
"""A value inside of each bucket."""
FILLED = (3, 7, 8, 40)


def filled(columns: int) -> HistogramMatrix:
    """Return histograms with a weight of 1 in four buckets.

    Every third is shifted by a bucket, and every fifth is empty.
    """
    matrix = HistogramMatrix(CPU_BUCKETS, None, block_columns=4096)
    rows = np.array([matrix.allocate() for _ in range(columns)])
    rows = rows[rows % 5 != 0]
    for bucket in FILLED:
        values = INSIDE[bucket + (rows % 3 == 0)]
        matrix.add(SampleBatch(rows, values, np.ones(len(rows)), np.zeros(len(rows), dtype=np.int64)))
    return matrix


@pytest.mark.parametrize("columns", [6, 1024, 1025, 2500], ids=lambda columns: f"{columns} columns")
def test_a_threshold_that_is_reached_exactly_ends_in_its_bucket(columns):
    fractions = (0.0, 0.25, 0.5, 0.75, 1.0, 0.26, 0.51, 0.76)
    found = filled(columns).percentiles(fractions)
    want = (3, 3, 7, 8, 40, 7, 8, 40)
    for row in range(columns):
        shift = int(row % 3 == 0)
        expected = [EMPTY] * len(want) if row % 5 == 0 else [bucket + shift for bucket in want]
        assert found[:, row].tolist() == expected


@pytest.mark.parametrize("columns", [6, 2500])
def test_chosen_columns_are_those_of_all(columns):
    matrix = filled(columns)
    everything = matrix.percentiles((0.5, 0.9))
    for chosen in ([1], [4, 2], list(range(columns))):
        rows = np.array(chosen)
        assert (matrix.percentiles((0.5, 0.9), rows) == everything[:, rows]).all()
