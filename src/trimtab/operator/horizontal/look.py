"""Looks at the usage of pods between two syncs.

Usage may jump right after a sync. The list of usage is one cheap request, and for most HPAs the sum over their pods shows that
the last decision still holds. A look is a reconcile with newer samples, and has no rules of its own. What it writes is a scale: a
status waits for the sync. Without `behavior`, replicas may at most double per sync, so an HPA without it is not scaled again before
its next sync. Other metrics are not looked at, because their sources may be expensive to query.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

from trimtab.clock import Clock, CpuMeter
from trimtab.cluster.turns import take_turns
from trimtab.metrics.queries import PodUsage
from trimtab.operator.horizontal.batches import RECONCILES_AT_ONCE
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.metrics import HpaControllerMetrics
from trimtab.operator.horizontal.observe import SnapshotBuilder
from trimtab.operator.horizontal.queries import (
    MetricFetcher,
    MetricQueries,
    Samples,
)
from trimtab.operator.horizontal.reconciler import Reconciler
from trimtab.operator.horizontal.usage import ALL_NAMESPACES

MOST_CPU_SHARE = 0.10
"""The largest share of one core that usage checks may take, on average."""

MOST_REQUESTS_PER_SECOND = 4.0
"""How many lists of usage are requested per second, those of the syncs included."""

LEAST_REQUESTS_PER_SECOND = 1.0
"""How many of these are left for checks where the syncs need all of them."""


SLOT_SECONDS = 2.0
"""The longest slot where usage is not looked at between syncs. With looks, a slot is as long as their period."""

_LookedAt = tuple[HpaState, MetricQueries]


@dataclass(frozen=True, slots=True)
class SyncPeriods:
    """The sync period, and the time between two usage checks, in seconds."""

    sync: float
    usage_check: float
    has_timers: bool = False
    """Whether each HPA has a timer of its own, as upstream's do."""

    @property
    def has_usage_checks(self) -> bool:
        """Return whether usage is checked between two syncs."""
        return 0 < self.usage_check < self.sync

    @property
    def slots(self) -> int:
        """Return into how many slots the sync period is divided."""
        if self.has_timers:
            return 1
        return ceil(self.sync / (self.usage_check if self.has_usage_checks else SLOT_SECONDS))

    @property
    def slot(self) -> float:
        """Return the length of a slot in seconds."""
        return self.sync / self.slots


class CheckCost(NamedTuple):
    """What one usage check took: seconds, CPU seconds, and requests."""

    seconds: float
    cpu: float
    requests: int


def shortest_pause(cost: CheckCost, periods: SyncPeriods) -> tuple[float, str]:
    """Return the shortest time from the start of a check to the next in seconds, and what limits it.

    On a busy machine or with a slow source a check takes long. That does not make checks rare: the next one follows
    half a period after the end.
    """
    # Each sync lists the namespaces once more, in its slots.
    left = max(MOST_REQUESTS_PER_SECOND - cost.requests / periods.sync, LEAST_REQUESTS_PER_SECOND)
    pauses = {
        "cpu": cost.cpu / MOST_CPU_SHARE,
        "requests": cost.requests / left,
        "slow": cost.seconds + periods.usage_check / 2,
    }
    limit = max(pauses, key=lambda name: pauses[name])
    return pauses[limit], limit


class Looks:
    """Looks at the usage of pods between syncs, and reconciles each HPA whose usage shows that it may need another size."""

    def __init__(
        self,
        clock: Clock,
        fetcher: MetricFetcher,
        snapshots: SnapshotBuilder,
        reconciler: Reconciler,
        owns: Callable[[str], bool],
        periods: SyncPeriods,
        metrics: HpaControllerMetrics,
    ) -> None:
        self._clock = clock
        self._fetcher = fetcher
        self._snapshots = snapshots
        self._reconciler = reconciler
        self._owns = owns
        self._periods = periods
        self._metrics = metrics
        self.cpu = CpuMeter()
        """The CPU time of the steps of checks."""
        self._is_running = False
        self._earliest_at = -inf
        self.next_at = inf
        """When to check next, on the monotonic clock."""
        self.on_finished: Callable[[], None] = lambda: None
        """Called when a check ends and `next_at` changes."""

    def reschedule(self) -> None:
        """Check again after a pause, because this replica does not decide now."""
        if self._periods.has_usage_checks and not self._is_running:
            self.next_at = self._clock.monotonic() + self._periods.usage_check

    def is_nearly_due(self) -> bool:
        """Return whether to check now, together with a sync, instead of a moment later."""
        if not self._periods.has_usage_checks or self._is_running:
            return False
        now = self._clock.monotonic()
        return now >= self._earliest_at and (
            self.next_at == inf or self.next_at - now <= self._periods.usage_check / 2
        )

    def start(self, hpa_states: Iterable[HpaState]) -> None:
        """Start a usage check in the background."""
        self._is_running, self.next_at = True, inf
        self._reconciler.start(self._run(tuple(hpa_states)))

    async def _run(self, hpa_states: tuple[HpaState, ...]) -> None:
        started_at, cpu_before = self._clock.monotonic(), self._cpu_seconds()
        requests = 0
        try:
            requests = await self.cpu.run(self._check(hpa_states, started_at))
        finally:
            self._is_running = False
            seconds, cpu = self._clock.monotonic() - started_at, self._cpu_seconds() - cpu_before
            self._plan_next(started_at, CheckCost(seconds, cpu, requests))
            self.on_finished()

    def _plan_next(self, started_at: float, cost: CheckCost) -> None:
        pause, limit = shortest_pause(cost, self._periods)
        self._earliest_at = started_at + pause
        self.next_at = started_at + max(pause, self._periods.usage_check)
        skipped = ceil(round(pause / self._periods.usage_check, 6)) - 1
        self._metrics.usage_checks.count(cost.cpu, limit, skipped=skipped)

    def _cpu_seconds(self) -> float:
        """Return the CPU time of checks, and of decoding the lists of usage that they wait for."""
        return self.cpu.seconds + self._fetcher.decoding.seconds

    async def _check(self, hpa_states: tuple[HpaState, ...], started_at: float) -> int:
        """Scale HPAs whose usage left its bands, and return the number of requests."""
        attempt, queries_for = self._reconciler.attempt, self._snapshots.queries_for
        checked = [
            (hpa_state, queries)
            for hpa_state in hpa_states
            if self._may_scale(hpa_state, started_at)
            and (queries := attempt(hpa_state, queries_for, hpa_state)) is not None
            and queries.is_only_usage
        ]
        lists = self._fetcher.usage_lists(queries for _, queries in checked)
        by_list: dict[PodUsage, list[_LookedAt]] = {usage: [] for usage in lists}
        for hpa_state, queries in checked:
            assert queries.usage is not None, "its only query is usage"
            usage = ALL_NAMESPACES if ALL_NAMESPACES in by_list else queries.usage
            by_list[usage].append((hpa_state, queries))
        # Each list is dropped when its HPAs are checked. All lists of a large cluster at once would be most of the memory.
        await asyncio.gather(
            *(self.cpu.run(self._check_list(usage, own, started_at)) for usage, own in by_list.items())
        )
        return len(lists)

    async def _check_list(self, usage: PodUsage, checked: list[_LookedAt], started_at: float) -> None:
        """Fetch a list of usage, and check the HPAs whose pods it has."""
        samples = await self._fetcher.fetch([usage])
        if len(checked) > RECONCILES_AT_ONCE:
            checked = list(take_turns(checked, lambda pair: pair[0].hpa.metadata.namespace))
        for number, (hpa_state, queries) in enumerate(checked, start=1):
            # While the samples were fetched, a sync may have run, or the HPA may have changed.
            if self._may_scale(hpa_state, started_at) and queries.is_for(hpa_state.hpa, queries.target):
                self._reconciler.attempt(hpa_state, self._look_at, hpa_state, queries, samples)
            if number % RECONCILES_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _may_scale(self, hpa_state: HpaState, now: float) -> bool:
        return (
            not hpa_state.is_busy
            and not hpa_state.is_deleted
            # Policies limit the change per time. Without policies, the sync period limits it.
            and (hpa_state.hpa.spec.behavior is not None or now - hpa_state.scaled_at >= self._periods.sync)
            and self._owns(hpa_state.key)
        )

    def _look_at(self, hpa_state: HpaState, queries: MetricQueries, samples: Samples) -> None:
        if not self._snapshots.is_worth_a_look(hpa_state, queries, samples):
            return
        request = hpa_state.start_reconcile(self._clock.monotonic(), is_look=True)
        request.queries = queries
        self._reconciler.reconcile(request, samples)
