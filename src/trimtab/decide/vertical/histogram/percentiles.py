"""Searches percentiles in a block of histogram columns."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.go_math import Floats

EMPTY: Final = -1
"""The bucket of a column without samples."""

_ROWS_BETWEEN_CHECKS: Final = 4
_NARROW: Final = 1024


def find_percentiles(weights: Floats, lowest: Ints, highest: Ints, thresholds: Floats) -> Ints:
    """Return the first bucket at which each column's running weight reaches each threshold.

    `weights` is [buckets x columns] and `thresholds` [percentiles x columns]. Sums run from left to right, because
    another order of additions would round differently. A column stops at its highest bucket.
    """
    filled = lowest <= highest
    found = np.full(thresholds.shape, EMPTY, dtype=np.int64)
    if not filled.any():
        return found
    start, stop = int(lowest[filled].min()), int(highest[filled].max())
    heights = np.where(filled, highest - start, 0)
    short_of = _count_rows_short_of(weights[start:stop], heights, thresholds) + start
    # Below its own lowest bucket a column's sum is 0, so those rows were counted too. The clip settles p = 0.
    return np.where(filled, np.clip(short_of, lowest, np.maximum(highest, lowest)), found)


def _count_rows_short_of(weights: Floats, heights: Ints, thresholds: Floats) -> Ints:
    if weights.shape[1] <= _NARROW:
        sums = np.add.accumulate(weights, axis=0)
        short: Ints = np.sum(sums[np.newaxis] < thresholds[:, np.newaxis], axis=1, dtype=np.int64)
        return short
    counts = np.zeros(thresholds.shape, dtype=np.min_scalar_type(len(weights) + 1))
    _scan_rows(weights, None, np.zeros(len(heights)), _Search(heights, thresholds, counts))
    return counts.astype(np.int64)


@dataclass(frozen=True)
class _Search:
    """The heights, thresholds and counts of short rows of the columns in a scan."""

    heights: Ints
    thresholds: Floats
    counts: npt.NDArray[Any]

    def take(self, columns: Ints) -> "_Search":
        return _Search(self.heights[columns], self.thresholds[:, columns], self.counts[:, columns])


def _scan_rows(weights: Floats, columns: Ints | None, sums: Floats, search: _Search, above: int = 0) -> None:
    farthest = search.thresholds.max(axis=0)
    for row, line in enumerate(weights[above:], start=above):
        sums += line if columns is None else line[columns]
        for count, threshold in zip(search.counts, search.thresholds, strict=True):
            count += (sums < threshold).view(np.uint8)
        if row % _ROWS_BETWEEN_CHECKS:
            continue
        active = np.flatnonzero((sums < farthest) & (search.heights > row + 1))
        # A few wide columns would keep the whole block busy: continue with them alone.
        if len(active) * 2 < len(sums):
            rest = search.take(active)
            if len(active):
                _scan_rows(
                    weights, active if columns is None else columns[active], sums[active], rest, row + 1
                )
            search.counts[:, active] = rest.counts
            return
