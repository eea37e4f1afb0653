"""Loads the initial history of new VPAs from Prometheus or checkpoints.

A VPA gets recommendations and checkpoints only after its history is loaded. Otherwise part of a history would
overwrite the whole one (docs/decisions/checkpoints-are-checked-complete-and-saved-periodically.md).
"""

import asyncio
import dataclasses
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trimtab.decide.vertical.cluster_state.cluster import ClusterState, PodId
from trimtab.decide.vertical.cluster_state.garbage import expire_loaded_history
from trimtab.decide.vertical.control.claims import VpaClaim
from trimtab.decide.vertical.control.scope import Scope
from trimtab.decide.vertical.histogram.int64_times import from_wire_time
from trimtab.decide.vertical.input.checkpoints import has_history, load_checkpoint
from trimtab.decide.vertical.input.history import (
    HistoryContext,
    ReplayReport,
    add_history,
    covers,
    first_samples,
)
from trimtab.decide.vertical.input.history_pods import HistoricalPods
from trimtab.model import times
from trimtab.model.core.meta import NamespacedName
from trimtab.model.core.pod import Pod
from trimtab.model.readable import counted
from trimtab.model.usage_history import UsageHistory
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.history_loader import HistoryFailure, HistoryLoader
from trimtab.operator.vertical.recommender.usage import PodCapacities

log = logging.getLogger(__name__)
UNAVAILABLE_REASON = "HistoryUnavailable"
_BEGINNING = -(2**62)


@dataclass(frozen=True)
class HistoryProgress:
    """Which namespaces wait for their history."""

    waiting: frozenset[str] = frozenset()
    """Namespaces whose history is being read. Their VPAs get no samples, recommendations or checkpoints yet."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why the history of a namespace could not be read, reported once. Its checkpoints are used."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why the checkpoints of a namespace may not be read. It waits, because its histories would be overwritten."""


@dataclass(frozen=True)
class _Replay:
    """The history of a namespace with its control at the time and its first samples."""

    history: UsageHistory
    context: HistoryContext
    first: Mapping[tuple[str, str], int]
    """The time of the first sample, by VPA and container."""


class HistoryBootstrap:
    """Loads history into the cluster states."""

    def __init__(
        self,
        view: ClusterView,
        states: ShardedClusterStates,
        checkpoints: CheckpointStore,
        metrics: RecommenderMetrics,
        loader: HistoryLoader | None = None,
    ) -> None:
        self._view = view
        self._states = states
        self._checkpoints = checkpoints
        self._metrics = metrics
        self._loader = loader
        self._missing: set[NamespacedName] = set()
        """VPAs without their history."""
        self._waiting: frozenset[str] = frozenset()
        self._unreplayed: dict[str, UsageHistory] = {}
        """Histories that were read and not replayed yet, by namespace."""
        self._saved_until: dict[NamespacedName, int] = {}
        self._replayed: dict[ClusterState, set[str]] = {}
        """The namespaces whose history in Prometheus each state has."""

    async def wait_loaded(self) -> None:
        """Wait until the history that VPAs wait for is read, or forever if none waits."""
        if self._loader is not None and self._waiting:
            await self._loader.finished(self._waiting)
        else:
            await asyncio.Event().wait()

    async def close(self) -> None:
        """Stop reading."""
        if self._loader is not None:
            await self._loader.close()

    def saved_until(self, vpa: NamespacedName) -> int:
        """Return when the loaded checkpoints of a VPA were saved. They contain all earlier OOM kills."""
        return self._saved_until.get(vpa, 0)

    async def load(
        self,
        control: ControlSnapshot,
        new: Iterable[NamespacedName],
        capacities: PodCapacities,
        now: datetime,
    ) -> HistoryProgress:
        """Load the history of new VPAs, or raise ClusterError if checkpoints cannot be read."""
        self._missing.update(new)
        self._missing = {vpa for vpa in self._missing if self._states.vpa(vpa) is not None}
        for vpa in [vpa for vpa in self._saved_until if self._states.vpa(vpa) is None]:
            del self._saved_until[vpa]
        self._waiting = frozenset()
        if not self._missing:
            return HistoryProgress()
        waiting, failed = self._read_histories(control)
        ready = sorted(vpa for vpa in self._missing if vpa.namespace not in waiting)
        refused: dict[str, str] = {}
        if ready:
            stored = await self._checkpoints.read(ready)
            refused = self._checkpoints.refused
            ready = [vpa for vpa in ready if vpa.namespace not in refused]
            replays = [
                self._prepare_replay(history, control, capacities)
                for namespace, history in self._unreplayed.items()
                if namespace not in refused
            ]
            saved = self._load_checkpoints(ready, stored, replays, times.to_ns(now))
            for replay in replays:
                self._replay(replay, saved, times.to_ns(now))
            self._missing.difference_update(ready)
        self._waiting = frozenset(waiting)
        return HistoryProgress(self._waiting | set(refused), failed, refused)

    def _load_checkpoints(
        self,
        vpas: list[NamespacedName],
        stored: Mapping[NamespacedName, list[Checkpoint]],
        replays: list[_Replay],
        now_ns: int,
    ) -> dict[tuple[str, str], int]:
        """Load checkpoints and return the time of the last saved sample, by VPA and container.

        Prometheus and checkpoints hold the same usage, and both together would count it twice. Prometheus replaces a
        checkpoint if it reaches back as far. Otherwise it only adds what is newer than the checkpoint.
        """
        replayed = {
            owner: (first, replay.history) for replay in replays for owner, first in replay.first.items()
        }
        saved: dict[tuple[str, str], int] = {}
        for vpa in vpas:
            state, key = self._states.get(vpa), str(vpa)
            if state is None or key not in state.vpas:
                continue  # the shard was lost while the list was read
            self._saved_until.pop(vpa, None)
            for checkpoint in stored.get(vpa, ()):
                owner = key, checkpoint.spec.container_name
                first = from_wire_time(checkpoint.status.first_sample_start)
                if owner in replayed and covers(replayed[owner][1], replayed[owner][0], first):
                    continue
                if has_history(state, key, checkpoint):
                    continue
                if refusal := load_checkpoint(state, checkpoint, now_ns):
                    log.warning("%s", refusal)
                    continue
                saved[owner] = from_wire_time(checkpoint.status.last_sample_start)
                until = from_wire_time(checkpoint.status.last_update_time)
                self._saved_until[vpa] = max(until, self._saved_until.get(vpa, until))
            expire_loaded_history(state, state.vpas[key], now_ns)
        return saved

    def _read_histories(self, control: ControlSnapshot) -> tuple[set[str], dict[str, str]]:
        """Collect histories that were read and return the waiting and the failed namespaces."""
        waiting: set[str] = set()
        failed: dict[str, str] = {}
        if self._loader is None:
            return waiting, failed
        for namespace in sorted({vpa.namespace for vpa in self._missing}):
            lacking = self._states_lacking(namespace)
            if not lacking or namespace in self._unreplayed:
                continue
            self._loader.want(namespace, self._label_keys(namespace, control))
            history = self._loader.take(namespace)
            if history is None:
                waiting.add(namespace)
            elif isinstance(history, HistoryFailure):
                failed[namespace] = history.reason
                for state in lacking:
                    self._replayed[state].add(namespace)
            else:
                self._unreplayed[namespace] = history
        for outcome, count in self._loader.counts.items():
            self._metrics.history.labels(outcome).set(count)
        return waiting, failed

    def _states_lacking(self, namespace: str) -> list[ClusterState]:
        """Return the states of VPAs without history that lack the Prometheus history of a namespace."""
        self._replayed = {state: self._replayed.get(state, set()) for state in self._states}
        states = self._states.matching(str(vpa) for vpa in self._missing if vpa.namespace == namespace)
        return [state for state in states if namespace not in self._replayed[state]]

    def _prepare_replay(
        self, history: UsageHistory, control: ControlSnapshot, capacities: PodCapacities
    ) -> _Replay:
        namespace = history.namespace
        pods = HistoricalPods(
            namespace,
            control.index,
            control.owners,
            control.nodes,
            live={pod.metadata.name: pod for pod in self._pods_of(namespace)},
            recorded_labels=history.label_keys,
        )
        context = HistoryContext(pods.attribute, lambda pod: capacities.of(PodId(namespace, pod)))
        return _Replay(history, context, first_samples(history, context))

    def _replay(self, replay: _Replay, saved: Mapping[tuple[str, str], int], now_ns: int) -> None:
        """Add a namespace's history to the states, from the last saved sample on."""
        namespace = replay.history.namespace
        del self._unreplayed[namespace]

        def since(receivers: tuple[str, ...], container: str) -> int:
            known = [saved[vpa, container] for vpa in receivers if (vpa, container) in saved]
            return max(known, default=_BEGINNING)

        context = dataclasses.replace(replay.context, checkpointed_until=since)
        for state in self._states_lacking(namespace):
            self._replayed[state].add(namespace)
            replayed = add_history(state, replay.history, context, now_ns)
            self._metrics.history_samples.inc(replayed.samples)
            _log_replay(namespace, replayed)

    def _pods_of(self, namespace: str) -> Iterable[Pod]:
        return (pod for pod in self._view.pods if pod.metadata.namespace == namespace)

    def _label_keys(self, namespace: str, control: ControlSnapshot) -> set[str]:
        """Return the label keys of a namespace's pods and selectors, as Kubernetes spells them."""
        keys = {key for pod in self._pods_of(namespace) for key in pod.metadata.labels}
        for claim in control.claims.values():
            if claim.vpa.metadata.namespace == namespace:
                keys |= _selector_keys(claim)
        return keys


def _selector_keys(claim: VpaClaim) -> set[str]:
    selectors = [claim.selector, claim.scope.pods if isinstance(claim.scope, Scope) else None]
    return {
        requirement.key
        for selector in selectors
        if selector is not None
        for requirement in selector.requirements
    }


def _log_replay(namespace: str, replayed: ReplayReport) -> None:
    log.info(
        "history of namespace %s: %s of %s",
        namespace,
        counted(replayed.samples, "sample"),
        counted(replayed.containers, "container"),
    )
    if replayed.skipped_pods:
        log.info(
            "history of namespace %s: skipped %s that cannot be assigned to one VPA: %s",
            namespace,
            counted(len(replayed.skipped_pods), "pod"),
            ", ".join(replayed.skipped_pods[:5]),
        )
