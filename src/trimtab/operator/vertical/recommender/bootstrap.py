"""What was before this process: loaded into the models for every VPA that is new to them, from Prometheus or checkpoints.

A VPA is recommended for, and its history saved, only once its past is loaded: half a history would be written over the
whole one (decision 0111).
"""

import asyncio
import dataclasses
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trimtab.decide.vertical.cluster_state.cluster import ClusterState, PodId
from trimtab.decide.vertical.cluster_state.garbage import expire_loaded_history
from trimtab.decide.vertical.control.control import VpaClaim
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
from trimtab.model.core.pod import Pod
from trimtab.model.usage_history import UsageHistory
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpoint as Checkpoint
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.history_loader import HistoryFailure, HistoryLoader
from trimtab.operator.vertical.recommender.usage import Bounds

log = logging.getLogger(__name__)
UNAVAILABLE_REASON = "HistoryUnavailable"
_BEGINNING = -(2**62)


@dataclass(frozen=True)
class Loaded:
    """How far the past is loaded."""

    waiting: frozenset[str] = frozenset()
    """Namespaces whose history is on its way; nothing of theirs may be learnt, recommended or saved yet."""
    failed: dict[str, str] = field(default_factory=dict)
    """Namespaces that turned out just now to have no history but checkpoints: why."""


@dataclass(frozen=True)
class _Replay:
    """A namespace's history, how it is judged, and where it begins."""

    history: UsageHistory
    retrospect: HistoryContext
    first: Mapping[tuple[str, str], int]


class HistoryBootstrap:
    """Brings the past into the models; one per recommender."""

    def __init__(
        self,
        view: ClusterView,
        checkpoints: CheckpointStore,
        metrics: RecommenderMetrics,
        loader: HistoryLoader | None = None,
    ) -> None:
        self._view = view
        self._checkpoints = checkpoints
        self._metrics = metrics
        self._loader = loader
        self._missing: set[str] = set()
        self._waiting: frozenset[str] = frozenset()
        self._found: dict[str, UsageHistory] = {}
        """Histories that were read and are not taken in yet, by namespace."""
        self._saved_until: dict[str, int] = {}
        self._told: dict[int, tuple[ClusterState, set[str]]] = {}
        """Per share: its model, and the namespaces whose history in Prometheus it was told."""

    async def arrived(self) -> None:
        """Wait until the history is read that VPAs wait for; forever if none do."""
        if self._loader is not None and self._waiting:
            await self._loader.finished(self._waiting)
        else:
            await asyncio.Event().wait()

    async def close(self) -> None:
        """Stop reading."""
        if self._loader is not None:
            await self._loader.close()

    def saved_until(self, vpa: str) -> int:
        """Return when the history that was loaded for a VPA was saved; all kills before are in it."""
        return self._saved_until.get(vpa, 0)

    async def load(
        self,
        models: ShardedClusterStates,
        standings: ControlSnapshot,
        new: Iterable[str],
        bounds: Bounds,
        now: datetime,
    ) -> Loaded:
        """Load the past of VPAs that are new; raises, and is tried again, if checkpoints cannot be read."""
        self._missing.update(new)
        self._missing = {vpa for vpa in self._missing if models.vpa(vpa) is not None}
        self._waiting = frozenset()
        if not self._missing:
            return Loaded()
        waiting, failed = self._read_histories(models, standings)
        ready = sorted(vpa for vpa in self._missing if _namespace(vpa) not in waiting)
        if ready:
            stored = await self._checkpoints.read(ready)
            replays = [self._replay_of(found, standings, bounds) for found in self._found.values()]
            saved = self._load_checkpoints(models, ready, stored, replays, times.to_ns(now))
            for replay in replays:
                self._replay(models, replay, saved, times.to_ns(now))
            self._missing.difference_update(ready)
        self._waiting = frozenset(waiting)
        return Loaded(self._waiting, failed)

    def _load_checkpoints(
        self,
        models: ShardedClusterStates,
        vpas: list[str],
        stored: Mapping[str, list[Checkpoint]],
        replays: list[_Replay],
        now_ns: int,
    ) -> dict[tuple[str, str], int]:
        """Load what is saved and not known otherwise; return the times of the last samples, by VPA and container.

        What Prometheus tells is the same usage: both together would count it twice. So it is taken instead of the
        checkpoint where it reaches back as far, and else only from the last saved sample on.
        """
        told = {owner: (first, replay.history) for replay in replays for owner, first in replay.first.items()}
        saved: dict[tuple[str, str], int] = {}
        for vpa in vpas:
            model = models.of(vpa)
            if model is None or vpa not in model.vpas:
                continue  # lost while the list was on its way
            self._saved_until.pop(vpa, None)
            for checkpoint in stored.get(vpa, ()):
                owner = vpa, checkpoint.spec.container_name
                first = from_wire_time(checkpoint.status.first_sample_start)
                if owner in told and covers(told[owner][1], told[owner][0], first):
                    continue
                if has_history(model, vpa, checkpoint):
                    continue
                if refusal := load_checkpoint(model, checkpoint, now_ns):
                    log.warning("%s", refusal)
                    continue
                saved[owner] = from_wire_time(checkpoint.status.last_sample_start)
                until = from_wire_time(checkpoint.status.last_update_time)
                self._saved_until[vpa] = max(until, self._saved_until.get(vpa, until))
            expire_loaded_history(model, model.vpas[vpa], now_ns)
        return saved

    def _read_histories(
        self, models: ShardedClusterStates, standings: ControlSnapshot
    ) -> tuple[set[str], dict[str, str]]:
        """Take over the histories that arrived; return which namespaces wait for theirs, and which have none."""
        waiting: set[str] = set()
        failed: dict[str, str] = {}
        if self._loader is None:
            return waiting, failed
        for namespace in sorted({_namespace(vpa) for vpa in self._missing}):
            untold = self._untold(models, namespace)
            if not untold or namespace in self._found:
                continue
            self._loader.want(namespace, self._label_keys(namespace, standings))
            found = self._loader.take(namespace)
            if found is None:
                waiting.add(namespace)
            elif isinstance(found, HistoryFailure):
                failed[namespace] = found.why
                for share in untold:
                    self._told[share][1].add(namespace)
            else:
                self._found[namespace] = found
        for outcome, count in self._loader.counts.items():
            self._metrics.history.labels(outcome).set(count)
        return waiting, failed

    def _untold(self, models: ShardedClusterStates, namespace: str) -> list[int]:
        """Return the shares with VPAs that lack their past, and whose models were not told this namespace's yet."""
        told = {
            share: self._told[share][1]
            if share in self._told and self._told[share][0] is models[share]
            else set[str]()
            for share in models
        }
        self._told = {share: (models[share], namespaces) for share, namespaces in told.items()}
        shares = {models.share(vpa) for vpa in self._missing if _namespace(vpa) == namespace}
        return sorted(share for share in shares if namespace not in told[share])

    def _replay_of(self, history: UsageHistory, standings: ControlSnapshot, bounds: Bounds) -> _Replay:
        namespace = history.namespace
        pods = HistoricalPods(
            namespace,
            standings.index,
            standings.owners,
            standings.nodes,
            live={pod.metadata.name: pod for pod in self._pods_of(namespace)},
            recorded_labels=history.label_keys,
        )
        retrospect = HistoryContext(pods.attribute, lambda pod: bounds.of(PodId(namespace, pod)))
        return _Replay(history, retrospect, first_samples(history, retrospect))

    def _replay(
        self, models: ShardedClusterStates, replay: _Replay, saved: Mapping[tuple[str, str], int], now_ns: int
    ) -> None:
        """Lead the models through a namespace's past, from where the checkpoints end."""
        namespace = replay.history.namespace
        del self._found[namespace]

        def since(receivers: tuple[str, ...], container: str) -> int:
            known = [saved[vpa, container] for vpa in receivers if (vpa, container) in saved]
            return max(known, default=_BEGINNING)

        retrospect = dataclasses.replace(replay.retrospect, checkpointed_until=since)
        for share in self._untold(models, namespace):
            self._told[share][1].add(namespace)
            done = add_history(models[share], replay.history, retrospect, now_ns)
            self._metrics.history_samples.inc(done.samples)
            _tell(namespace, done)

    def _pods_of(self, namespace: str) -> Iterable[Pod]:
        return (pod for pod in self._view.pods if pod.metadata.namespace == namespace)

    def _label_keys(self, namespace: str, standings: ControlSnapshot) -> set[str]:
        """Return the label keys that count in a namespace, as Kubernetes spells them."""
        keys = {key for pod in self._pods_of(namespace) for key in pod.metadata.labels}
        for claim in standings.claims.values():
            if claim.vpa.metadata.namespace == namespace:
                keys |= _keys_of(claim)
        return keys


def _keys_of(claim: VpaClaim) -> set[str]:
    selectors = [claim.selector, claim.scope.pods if isinstance(claim.scope, Scope) else None]
    return {requirement.key for one in selectors if one is not None for requirement in one.requirements}


def _tell(namespace: str, done: ReplayReport) -> None:
    log.info("history of namespace %s: %d samples of %d containers", namespace, done.samples, done.containers)
    if done.skipped_pods:
        log.info(
            "history of namespace %s: %d pods are left out, since nobody can tell which VPA they taught: %s",
            namespace,
            len(done.skipped_pods),
            ", ".join(done.skipped_pods[:5]),
        )


def _namespace(vpa: str) -> str:
    return vpa.partition("/")[0]
