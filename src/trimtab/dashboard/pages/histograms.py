"""Histograms of a VPA's usage: the aggregates and loaded history of one container, merged."""

from typing import Final

import numpy as np

from trimtab.dashboard.pages.views import BucketView
from trimtab.decide.vertical.cluster_state.aggregates import AggregateTable
from trimtab.decide.vertical.cluster_state.profiles import profiles_of
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.histogram.histogram import Histogram
from trimtab.model.core.pod import CPU

MAX_BARS: Final = 60


def count_samples(vpa: VPAState, container: str) -> int:
    """Return how many samples a container's history has."""
    members = _members(vpa, container)
    aggregates = (*vpa.aggregates.values(), *vpa.initial.values())
    return sum(
        int(aggregate.table.count[aggregate.row]) for aggregate in aggregates if aggregate.row in members
    )


def usage_bars(table: AggregateTable, vpa: VPAState, container: str, resource: str) -> tuple[BucketView, ...]:
    """Return the share of each bucket in a container's history, in at most 60 bars."""
    matrix = table.cpu if resource == CPU else table.memory
    histograms = [Histogram(matrix, row) for row in _members(vpa, container)]
    histograms = [histogram for histogram in histograms if not histogram.is_empty]
    if not histograms:
        return ()
    newest = max(histogram.reference_ns for histogram in histograms)
    # Weights decay relative to each histogram's reference time, so scale all to the newest one.
    half_life = matrix.half_life_ns or 1
    weights = np.sum(
        [
            histogram.weights * 2.0 ** ((histogram.reference_ns - newest) / half_life)
            for histogram in histograms
        ],
        axis=0,
    )
    first = min(histogram.min_bucket for histogram in histograms)
    last = max(histogram.max_bucket for histogram in histograms)
    step = -(-(last - first + 1) // MAX_BARS)
    total = float(weights[first : last + 1].sum()) or 1.0
    return tuple(
        BucketView(
            start=float(matrix.buckets.starts[start]),
            end=float(matrix.buckets.ends[min(start + step - 1, last)]),
            weight=float(weights[start : min(start + step, last + 1)].sum()) / total,
        )
        for start in range(first, last + 1, step)
    )


def _members(vpa: VPAState, container: str) -> tuple[int, ...]:
    return next((profile.members for profile in profiles_of(vpa) if profile.container == container), ())
