"""Groups the HPAs of a sync into batches that share metric queries.

A sync sends each distinct query once. A batch is reconciled as soon as its samples are there, so a slow source delays
only the HPAs that use it. An HPA whose last reconcile is still in progress is left out of the sync.
"""

import asyncio
from collections.abc import Iterable, Sequence
from math import inf

from trimtab.clock import Clock
from trimtab.cluster.turns import take_turns
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.observation.samples import FetchFailure
from trimtab.operator.horizontal.hpa_state import HpaState, ReconcileRequest
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.horizontal.observe import SnapshotBuilder
from trimtab.operator.horizontal.queries import (
    MetricFetcher,
    QuerySet,
    Samples,
    usage_namespaces,
)
from trimtab.operator.horizontal.reconciler import Reconciler
from trimtab.operator.horizontal.usage import ALL_NAMESPACES

RECONCILES_AT_ONCE = 200
"""Reconciles in a row before other tasks run on the event loop: about 10 ms."""


class Batches:
    """Starts the reconciles of many HPAs, in batches that share metric queries."""

    def __init__(
        self,
        clock: Clock,
        fetcher: MetricFetcher,
        snapshots: SnapshotBuilder,
        reconciler: Reconciler,
        metrics: HpaControllerMetrics,
    ) -> None:
        self._clock = clock
        self._fetcher = fetcher
        self._snapshots = snapshots
        self._reconciler = reconciler
        self._metrics = metrics

    def reconcile_all(
        self, hpa_states: Iterable[HpaState], also_queried: Iterable[HpaState] = (), *, is_sync: bool = False
    ) -> None:
        """Start to reconcile these HPAs, except those still in progress.

        `also_queried` are HPAs whose usage is checked at the same time, so that one list may serve both.
        """
        idle = [hpa_state for hpa_state in hpa_states if not hpa_state.is_busy]
        if not idle:
            return
        started_at = self._clock.monotonic()
        ready: list[ReconcileRequest] = []
        for hpa_state in idle:
            hpa_state.schedule_next(-inf)
            request = hpa_state.start_reconcile(started_at, is_sync=is_sync)
            request.queries = self._reconciler.attempt(hpa_state, self._snapshots.queries_for, hpa_state)
            if request.queries is not None:
                ready.append(request)
            elif hpa_state.is_busy:
                self._reconciler.attempt(hpa_state, self._reconciler.reconcile, request)
        for queries, batch in self._group(ready, also_queried).items():
            self._start(queries, batch)
        self._metrics.cycles.inc()

    def register_foreign_targets(self, hpa_states: Iterable[HpaState]) -> None:
        """Register targets of HPAs owned by other replicas, to detect selector conflicts."""
        for hpa_state in hpa_states:
            self._snapshots.register_cached_target(hpa_state)

    def _group(
        self, requests: Sequence[ReconcileRequest], also_queried: Iterable[HpaState]
    ) -> dict[QuerySet, list[ReconcileRequest]]:
        """Group requests by the queries that they wait for."""
        namespaces = usage_namespaces(
            [
                *(request.queries for request in requests if request.queries),
                *(hpa_state.queries for hpa_state in also_queried if hpa_state.queries),
            ]
        )
        return _by_queries(requests, list_all=self._fetcher.list_all.is_cheaper(namespaces))

    def _start(self, queries: QuerySet, batch: Sequence[ReconcileRequest]) -> None:
        self._reconciler.start(self._reconcile_batch(queries, batch), *batch)

    async def _reconcile_batch(self, queries: QuerySet, batch: Sequence[ReconcileRequest]) -> None:
        samples = await self._fetcher.fetch(queries)
        if isinstance(samples.get(ALL_NAMESPACES), FetchFailure):
            # Fall back to one PodMetrics list per namespace, in this same sync.
            for own_queries, part in _by_queries(batch, list_all=False).items():
                self._start(own_queries, part)
            return
        unchanged: list[Decision] = []
        if len(batch) > RECONCILES_AT_ONCE:
            # A tenant with thousands of HPAs does not keep those of another waiting.
            batch = list(take_turns(batch, lambda request: request.hpa_state.hpa.metadata.namespace))
        for first in range(0, len(batch), RECONCILES_AT_ONCE):
            self._reconcile_some(batch[first : first + RECONCILES_AT_ONCE], samples, unchanged)
            if first + RECONCILES_AT_ONCE < len(batch):
                await asyncio.sleep(0)
        seconds = self._clock.monotonic() - batch[0].started_at
        self._metrics.count_unchanged(unchanged, seconds)
        self._metrics.cycle_duration.observe(seconds)

    def _reconcile_some(
        self, batch: Sequence[ReconcileRequest], samples: Samples, unchanged: list[Decision]
    ) -> None:
        attempt, reconcile = self._reconciler.attempt, self._reconciler.reconcile
        for request in batch:
            last = attempt(request.hpa_state, reconcile, request, samples)
            if last is not None:
                unchanged.append(last)


def _by_queries(
    requests: Iterable[ReconcileRequest], *, list_all: bool
) -> dict[QuerySet, list[ReconcileRequest]]:
    groups: dict[QuerySet, list[ReconcileRequest]] = {}
    for request in requests:
        assert request.queries is not None
        queries = request.queries.queries_list_all if list_all else request.queries.queries
        groups.setdefault(queries, []).append(request)
    return groups
