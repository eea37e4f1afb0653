"""Looks at the usage of pods between two rounds, and decides at once where the replicas would change.

A round is due every sync period; usage may jump right after one. The list of usage is one cheap request, and most
autoscalers are seen to be content by adding up their pods. Only a decision that scales is carried out early; a status
waits for the round. Without `behavior` replicas may at most double per sync; so whoever has none and is scaled early is
decided again a sync period later, round or not. Other metrics are not looked at: their sources may be expensive to ask.
"""

import asyncio
from collections.abc import Callable, Iterable
from math import inf

from trimtab.clock import Clock
from trimtab.decide.horizontal import FetchFailure
from trimtab.decide.horizontal.records.usage_bands import bands_of, counted_pods
from trimtab.metrics.queries import PodUsage, Query
from trimtab.operator.horizontal.batches import AT_ONCE, Batches
from trimtab.operator.horizontal.inputs.hpa_cache import HpaState
from trimtab.operator.horizontal.inputs.metric_queries import (
    MetricQueries,
    namespaces_of,
    usage_in,
)
from trimtab.operator.horizontal.inputs.pod_usage import ALL_NAMESPACES, NamespaceUsage
from trimtab.operator.horizontal.reconciler import Answers
from trimtab.operator.horizontal.schedule import SyncPeriods

MOST_SHARE = 0.05
"""The largest part of the time that looking may take."""

SECONDS_PER_REQUEST = 0.25
"""How long to rest for each request of a look, so that a hundred namespaces are not asked all the time."""


class UsageMonitor:
    """Looks as often as `pace` says at most, and never again within a sync at one that was just scaled."""

    def __init__(
        self,
        clock: Clock,
        batches: Batches,
        owns: Callable[[str], bool],
        wake: Callable[[], None],
        pace: SyncPeriods,
    ) -> None:
        self._clock = clock
        self._batches = batches
        self._questions = batches.questions
        self._owns = owns
        self._wake = wake
        self._pace = pace
        self._rest = pace.look
        self._is_looking = False
        self.next_at = inf
        """When to look next, on the monotonic clock; whoever waits for it is woken when it moves."""

    def rest(self) -> None:
        """Look again after a pause: a round has just looked at everything."""
        if self._pace.has_looks and not self._is_looking:
            self.next_at = self._clock.monotonic() + self._rest

    def waited(self, autoscalers: Iterable[HpaState]) -> list[HpaState]:
        """Return those that were scaled early a sync period ago, whose turn it is now."""
        now = self._clock.monotonic()
        return [one for one in autoscalers if -inf < one.not_before <= now and self._owns(one.key)]

    def is_nearly_due(self) -> bool:
        """Return whether to look now, with a round, rather than a moment later."""
        if self.next_at == inf:
            return not self._is_looking
        return self.next_at - self._clock.monotonic() <= self._pace.look / 2

    def not_too_soon(self, autoscalers: Iterable[HpaState]) -> list[HpaState]:
        """Leave out those that were just scaled, by a round of all or by a look: their turn is a sync period after that."""
        recent = self._clock.monotonic() - self._pace.sync + self._pace.look
        kept: list[HpaState] = []
        for one in autoscalers:
            if one.scaled_at > recent and one.hpa.spec.behavior is None:
                one.not_before = one.scaled_at + self._pace.sync
            else:
                kept.append(one)
        return kept

    def begin(self, autoscalers: Iterable[HpaState]) -> None:
        """Look once, beside everything else, and have those scaled that need it."""
        self._is_looking, self.next_at = True, inf
        self._batches.start(self._look(tuple(autoscalers)))

    async def _look(self, autoscalers: tuple[HpaState, ...]) -> None:
        started = self._clock.monotonic()
        try:
            requests = await self._look_at(autoscalers, started)
            taken = self._clock.monotonic() - started
            self._rest = max(self._pace.look, taken / MOST_SHARE, requests * SECONDS_PER_REQUEST)
        finally:
            self._is_looking = False
            self.rest()
            self._wake()

    async def _look_at(self, autoscalers: tuple[HpaState, ...], started: float) -> int:
        """Return how many requests it took."""
        watched = [
            (one, plan)
            for one in autoscalers
            if self._is_due(one, started) and (plan := self._batches.plan(one)) and plan.is_only_usage
        ]
        answers = await self._ask([plan for _, plan in watched])
        for number, (one, plan) in enumerate(watched, start=1):
            # Much may have happened while the answer came: a round, a change of the spec, the end of the object.
            if (
                self._is_due(one, started)
                and plan.is_for(one.hpa, plan.aim)
                and not self._is_content(one, plan, answers)
            ):
                self._batches.scale_early(one, plan, answers)
                if one.is_busy and one.hpa.spec.behavior is None:
                    one.not_before = self._clock.monotonic() + self._pace.sync
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        return len(answers)

    def _is_due(self, one: HpaState, now: float) -> bool:
        return (
            not one.is_busy
            and not one.is_gone
            # Policies limit how much changes in how many seconds; without any, what limits is the sync.
            and (one.hpa.spec.behavior is not None or now - one.scaled_at >= self._pace.sync)
            and self._owns(one.key)
        )

    async def _ask(self, plans: list[MetricQueries]) -> Answers:
        namespaces = namespaces_of(plans)
        if not namespaces:
            return {}
        wanted: list[Query] = [ALL_NAMESPACES]
        if not self._questions.whole.pays(namespaces):
            wanted = [PodUsage(namespace) for namespace in sorted(namespaces)]
        answers = await asyncio.gather(*(self._questions.ask(one) for one in wanted))
        if wanted[0] == ALL_NAMESPACES and isinstance(answers[0], FetchFailure):
            self._questions.whole.failed(answers[0].message)
        return dict(zip(wanted, answers, strict=True))

    def _is_content(self, one: HpaState, plan: MetricQueries, answers: Answers) -> bool:
        """Return whether nothing has to be done for sure, or nothing is known: failures are told by the round."""
        usage = usage_in(plan.usage, answers) if plan.usage else None
        if not isinstance(usage, NamespaceUsage):
            return True
        if not len(one.records):
            return False
        record = one.records[-1]
        if one.bands_for is not record:
            one.bands, one.bands_for = bands_of(record.observation, record.decision), record
        pods = counted_pods(record.observation, record.decision)
        return bool(one.bands) and all(
            (used := usage.values(pods, band.resource, band.container)) is not None
            and band.low <= sum(used) <= band.high
            for band in one.bands
        )
