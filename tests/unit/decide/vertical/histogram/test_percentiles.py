"""Percentiles of many columns at once are those of each column added up from the left."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.decide.vertical.histogram import percentiles
from trimtab.decide.vertical.histogram.percentiles import EMPTY, find_percentiles

ROWS = 12
columns = st.lists(
    st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0, 7.5]), min_size=ROWS, max_size=ROWS),
    min_size=1,
    max_size=40,
)


def one_by_one(weights, lowest, highest, thresholds):
    """Add up one column after the other, as the definition says."""
    found = np.full(thresholds.shape, EMPTY, dtype=np.int64)
    for column in range(weights.shape[1]):
        low, high = int(lowest[column]), int(highest[column])
        for place in range(thresholds.shape[0]):
            if low <= high:
                total, bucket = 0.0, low
                for bucket in range(low, high + 1):
                    total += weights[bucket, column]
                    if total >= thresholds[place, column]:
                        break
                found[place, column] = bucket
    return found


@settings(max_examples=150)
@given(
    columns, st.lists(st.sampled_from([0.0, 0.5, 0.9, 0.95, 1.0, 1.5]), min_size=1, max_size=3), st.booleans()
)
def test_every_column_is_searched_on_its_own(data, shares, is_wide):
    weights = np.array(data).T
    filled = weights > 0
    lowest = np.where(filled.any(axis=0), filled.argmax(axis=0), ROWS)
    highest = np.where(filled.any(axis=0), ROWS - 1 - filled[::-1].argmax(axis=0), 0)
    thresholds = np.array(shares)[:, np.newaxis] * weights.sum(axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(percentiles, "_NARROW", 0 if is_wide else 1024)
        found = find_percentiles(weights, lowest, highest, thresholds)
    assert found.tolist() == one_by_one(weights, lowest, highest, thresholds).tolist()
