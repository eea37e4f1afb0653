"""Decides about HPAs without writing anything, for `trimtab explain` and read-only dashboards."""

import logging
from collections.abc import AsyncIterator, Iterable, Sequence

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.decide.horizontal.decide import decide
from trimtab.decide.horizontal.decision import Decision
from trimtab.decide.horizontal.observation.observation import Observation
from trimtab.decide.horizontal.plugin_calls import decide_with_plugins
from trimtab.decide.horizontal.records.record import Record
from trimtab.decide.horizontal.status.conditions import as_dry_run
from trimtab.decide.horizontal.status.ignored_fields import must_not_scale
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.observe import SnapshotBuilder
from trimtab.operator.horizontal.queries import (
    MetricFetcher,
    MetricQueries,
    QuerySet,
    Samples,
)
from trimtab.operator.horizontal.targets import ResolvedTarget
from trimtab.plugins.guard import Guards

log = logging.getLogger(__name__)


class DryRunDecider:
    """Makes the decisions that the acting replica would make, from the memory that the HPAs store."""

    def __init__(
        self, clock: Clock, snapshots: SnapshotBuilder, fetcher: MetricFetcher, guards: Guards
    ) -> None:
        self._clock = clock
        self._snapshots = snapshots
        self._fetcher = fetcher
        self._guards = guards

    async def decide(self, hpa_state: HpaState, all_hpas: Iterable[HpaState]) -> Record:
        """Decide about one HPA, or raise a ClusterError if its target cannot be read."""
        targets = await self._register_targets(all_hpas)
        queries = await self._snapshots.resolve_queries(hpa_state, targets.get(hpa_state.uid))
        samples = await self._fetcher.fetch(queries.queries)
        observation, decision = await self._decide(hpa_state, queries, samples)
        decision = as_dry_run(observation, decision)
        return Record(observation=observation, decision=decision, is_dry_run=True)

    async def decide_all(self, hpa_states: Sequence[HpaState]) -> AsyncIterator[tuple[HpaState, Record]]:
        """Decide about every HPA, and send each metric query once."""
        targets = await self._register_targets(hpa_states)
        resolved = [
            (hpa_state, await self._snapshots.resolve_queries(hpa_state, target))
            for hpa_state in hpa_states
            if (target := targets.get(hpa_state.uid)) is not None
        ]
        samples = await self._fetcher.fetch(QuerySet().union(*(queries.queries for _, queries in resolved)))
        for hpa_state, queries in resolved:
            if queries.spec is not hpa_state.hpa.spec:
                continue  # the samples are for the old spec
            try:
                observation, decision = await self._decide(hpa_state, queries, samples)
            except (errors.ClusterError, ValueError) as error:
                _log_failure(hpa_state, error)
                continue
            is_dry_run = must_not_scale(observation.hpa, observation.gates)
            decision = as_dry_run(observation, decision) if is_dry_run else decision
            yield hpa_state, Record(observation=observation, decision=decision, is_dry_run=is_dry_run)

    async def _register_targets(self, hpa_states: Iterable[HpaState]) -> dict[str, ResolvedTarget]:
        """Register the targets of all HPAs, because each decision depends on the conflicting HPAs."""
        targets: dict[str, ResolvedTarget] = {}
        for hpa_state in hpa_states:
            try:
                target = targets[hpa_state.uid] = await self._snapshots.find_target(hpa_state)
            except errors.ClusterError as error:
                _log_failure(hpa_state, error)
            else:
                self._snapshots.register_target(hpa_state, target)
        return targets

    async def _decide(
        self, hpa_state: HpaState, queries: MetricQueries, samples: Samples
    ) -> tuple[Observation, Decision]:
        await self._snapshots.rivals.look(hpa_state)
        matched = self._snapshots.matching_pods(hpa_state)
        owners = await self._snapshots.find_owners(hpa_state, matched)
        now = self._clock.now().timestamp()
        memory = hpa_state.memory.preview(now)
        shift = now - self._clock.monotonic()
        observation = self._snapshots.observe(hpa_state, queries, matched, samples, owners, memory, shift)
        if hpa_state.names_plugins:
            return decide_with_plugins(observation, self._guards, self._clock.now())
        return observation, decide(observation, self._clock.now())


def _log_failure(hpa_state: HpaState, error: Exception) -> None:
    log.warning("%s: dry run failed: %s", hpa_state.key, error)
