"""A VPA's usage history as bars: its aggregates and its loaded past, put together without touching the model."""

from typing import Final

import numpy as np

from trimtab.dashboard.pages.views import BucketView
from trimtab.decide.vertical.cluster_state.aggregates import AggregateTable
from trimtab.decide.vertical.cluster_state.profiles import profiles_of
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.histogram.histogram import Histogram
from trimtab.model.core.pod import CPU

MOST_BARS: Final = 60


def samples_of(vpa: VPAState, container: str) -> int:
    """Return how many samples a container's history has."""
    members = _members(vpa, container)
    tables = [one for one in (*vpa.aggregates.values(), *vpa.initial.values()) if one.row in members]
    return sum(int(one.table.count[one.row]) for one in tables)


def bars_of(table: AggregateTable, vpa: VPAState, container: str, resource: str) -> tuple[BucketView, ...]:
    """Return the share of each bucket in a container's history, neighbours joined until they are few."""
    matrix = table.cpu if resource == CPU else table.memory
    columns = [Histogram(matrix, row) for row in _members(vpa, container)]
    columns = [one for one in columns if not one.is_empty]
    if not columns:
        return ()
    newest = max(one.reference_ns for one in columns)
    # A sample weighs by its age against its histogram's own reference time: bring all to the newest one.
    half_life = matrix.half_life_ns or 1
    weights = np.sum(
        [one.weights * 2.0 ** ((one.reference_ns - newest) / half_life) for one in columns], axis=0
    )
    first, last = min(one.min_bucket for one in columns), max(one.max_bucket for one in columns)
    step = -(-(last - first + 1) // MOST_BARS)
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
    return next((one.members for one in profiles_of(vpa) if one.container == container), ())
