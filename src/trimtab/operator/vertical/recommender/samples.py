"""Feeds usage samples and OOM kills into the cluster states, and compares them with the recommendations."""

import logging
from collections.abc import Mapping
from datetime import datetime

import numpy as np

from trimtab.decide.vertical.cluster_state.cluster import (
    ClusterState,
    ContainerId,
    PodId,
    TrackedContainer,
)
from trimtab.decide.vertical.cluster_state.containers import UsageRows
from trimtab.decide.vertical.input.oom import OOM
from trimtab.decide.vertical.input.usage import IntakeReport, record_oom
from trimtab.decide.vertical.recommend.plugin_estimates import NO_ESTIMATORS, Estimators, collect_samples
from trimtab.decide.vertical.recommend.quality import Expectations
from trimtab.model.core.meta import NamespacedName
from trimtab.model.core.pod import MEMORY
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.bootstrap import HistoryBootstrap
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.feeder import ClusterStateFeeder
from trimtab.operator.vertical.recommender.oom_watcher import HAND_OVER_NS, Kill, OomObserver
from trimtab.operator.vertical.recommender.usage import PodCapacities, UsageFeed, add_usage

log = logging.getLogger(__name__)

ExpectationsByState = Mapping[ClusterState, Expectations]


class SampleFeeder:
    """Adds the samples of one step to the cluster states."""

    def __init__(
        self,
        states: ShardedClusterStates,
        feeder: ClusterStateFeeder,
        history: HistoryBootstrap,
        usage: UsageFeed,
        ooms: OomObserver,
        metrics: RecommenderMetrics,
        estimators: Estimators = NO_ESTIMATORS,
    ) -> None:
        self._states = states
        self._feeder = feeder
        self._history = history
        self._usage = usage
        self._ooms = ooms
        self._metrics = metrics
        self._estimators = estimators
        self._has_unreadable = False
        """Whether the last step found usage that could not be read."""

    async def add_usage(
        self,
        namespaces: frozenset[str],
        waiting: frozenset[str],
        expected: ExpectationsByState,
        capacities: PodCapacities,
        now: datetime,
    ) -> None:
        """Read and add the usage of some namespaces."""
        answers = await self._usage.read(namespaces - waiting)
        unreadable = list[str]()
        for state in self._states:
            added = add_usage(state, answers, capacities, now, waiting=waiting)
            unreadable += added.unreadable
            for resource, intake in added.reports.items():
                self._count_refused(resource, intake)
                if intake.usage is not None:
                    self._metrics.quality.judge(state, expected[state], resource, intake.usage)
                collect_samples(state, self._estimators, resource, intake.usage)
        self._report_unreadable(unreadable)

    def _report_unreadable(self, unreadable: list[str]) -> None:
        """Count usage that could not be read, and log the first after a step without any."""
        self._metrics.refused.labels("any", "unreadable").inc(len(unreadable))
        if unreadable and not self._has_unreadable:
            log.warning(
                "usage cannot be read, %d in all until it can be: the first: %s",
                len(unreadable),
                unreadable[0],
            )
        self._has_unreadable = bool(unreadable)

    def _count_refused(self, resource: str, intake: IntakeReport) -> None:
        self._metrics.refused.labels(resource, "above capacity").inc(intake.above_capacity)
        self._metrics.refused.labels(resource, "from the future").inc(intake.from_the_future)

    def add_ooms(
        self,
        waiting: frozenset[str],
        expected: ExpectationsByState,
        capacities: PodCapacities,
        now_ns: int,
        period_ns: int,
    ) -> None:
        """Add the kills since the last step, except those of waiting namespaces."""
        kills = self._ooms.take()
        later = {
            kill.oom
            for kill in kills
            if kill.oom.namespace in waiting or self._may_become_ours(kill.oom, now_ns)
        }
        self._ooms.put_back(tuple(kill for kill in kills if kill.oom in later))
        for kill in kills:
            if kill.oom in later:
                continue
            oom, pod = kill.oom, PodId(kill.oom.namespace, kill.oom.pod)
            capacity = capacities.of_node(pod)
            for state in self._feeder.states_of(pod):
                if self._is_in_checkpoint(kill, state, period_ns):
                    continue
                refusal = record_oom(state, oom, now_ns, capacity)
                if refusal:
                    log.info("out-of-memory kill is not counted: %s", refusal)
                else:
                    self._judge(state, expected[state], oom, now_ns)

    def _is_in_checkpoint(self, kill: Kill, state: ClusterState, period_ns: int) -> bool:
        """Return whether a previous owner counted a kill and saved it, or may have.

        Kills of the last step before the checkpoint may be counted twice. A memory window holds one peak, so the
        second time changes nothing.
        """
        fed = self._feeder.receivers_of(PodId(kill.oom.namespace, kill.oom.pod))
        # VPAs of other shards have their own state, and their checkpoints are not loaded here.
        saved = [self._history.saved_until(NamespacedName.parse(vpa)) for vpa in fed if vpa in state.vpas]
        if not saved:
            return kill.needs_checkpoint
        return all(
            kill.oom.time_ns < until - period_ns if until else kill.needs_checkpoint for until in saved
        )

    def _may_become_ours(self, oom: OOM, now_ns: int) -> bool:
        """Return whether a kill's pod belongs to another replica, or to none while its shard moves.

        If that replica counts it too, nothing is counted twice: the peak is in the window that its checkpoint has.
        """
        is_elsewhere = not self._feeder.states_of(PodId(oom.namespace, oom.pod))
        return not self._states.is_whole and is_elsewhere and now_ns - oom.time_ns < HAND_OVER_NS

    def _judge(self, state: ClusterState, expected: Expectations, oom: OOM, now_ns: int) -> None:
        container = ContainerId(PodId(oom.namespace, oom.pod), oom.container)
        tracked = state.find_container(container)
        if isinstance(tracked, TrackedContainer):
            needed = UsageRows(
                np.array([tracked.history.row]), np.array([tracked.history.oom_peak]), np.array([now_ns])
            )
            collect_samples(state, self._estimators, MEMORY, needed)
            self._metrics.quality.judge(state, expected, MEMORY, needed, is_oom=True)
