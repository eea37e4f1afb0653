"""What was before this process: loaded into the model for every VPA that is new to it, from Prometheus or checkpoints.

A VPA is recommended for, and its history saved, only once its past is loaded: half a history would be written over the
whole one (decision 0111).
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from trimtab.decide.vertical.checkpoints import load_checkpoint
from trimtab.decide.vertical.control import Claim
from trimtab.decide.vertical.history import Replayed, Retrospect, add_history
from trimtab.decide.vertical.past_pods import PastPods
from trimtab.decide.vertical.scope import Scope
from trimtab.decide.vertical.state import ClusterState, PodId
from trimtab.model import times
from trimtab.model.pod import Pod
from trimtab.model.usage_history import UsageHistory
from trimtab.operator.vertical.checkpoint_store import CheckpointStore
from trimtab.operator.vertical.cluster_view import ClusterView, Standings
from trimtab.operator.vertical.history import Failed, HistoryLoader
from trimtab.operator.vertical.telemetry import RecommenderMetrics
from trimtab.operator.vertical.usage import Bounds

log = logging.getLogger(__name__)
UNAVAILABLE_REASON = "HistoryUnavailable"


@dataclass(frozen=True)
class Loaded:
    """How far the past is loaded."""

    waiting: frozenset[str] = frozenset()
    """Namespaces whose history is on its way; nothing of theirs may be learnt, recommended or saved yet."""
    failed: dict[str, str] = field(default_factory=dict)
    """Namespaces that turned out just now to have no history but checkpoints: why."""


class Past:
    """Brings the past into the model; one per recommender."""

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

    def start_over(self) -> None:
        """Begin again with an empty model."""
        self._missing.clear()
        if self._loader is not None:
            self._loader.start_over()

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

    async def load(
        self, state: ClusterState, standings: Standings, new: Iterable[str], bounds: Bounds, now: datetime
    ) -> Loaded:
        """Load the past of VPAs that are new; raises, and is tried again, if checkpoints cannot be read."""
        self._missing.update(new)
        self._missing &= state.vpas.keys()
        self._waiting = frozenset()
        if not self._missing:
            return Loaded()
        waiting, failed = self._load_histories(state, standings, bounds, now)
        ready = sorted(vpa for vpa in self._missing if _namespace(vpa) not in waiting)
        if ready:
            await self._load_checkpoints(state, ready, times.to_ns(now))
            self._missing.difference_update(ready)
        self._waiting = frozenset(waiting)
        return Loaded(self._waiting, failed)

    async def _load_checkpoints(self, state: ClusterState, vpas: list[str], now_ns: int) -> None:
        stored = await self._checkpoints.read()
        for vpa in vpas:
            known = _containers_with_samples(state, vpa) if self._loader is not None else frozenset()
            for checkpoint in stored.get(vpa, ()):
                # What Prometheus told is the same usage: both together would count it twice.
                if checkpoint.spec.container_name not in known:
                    refusal = load_checkpoint(state, checkpoint, now_ns)
                    if refusal:
                        log.warning("%s", refusal)

    def _load_histories(
        self, state: ClusterState, standings: Standings, bounds: Bounds, now: datetime
    ) -> tuple[set[str], dict[str, str]]:
        waiting: set[str] = set()
        failed: dict[str, str] = {}
        if self._loader is None:
            return waiting, failed
        for namespace in sorted({_namespace(vpa) for vpa in self._missing}):
            self._loader.want(namespace, self._label_keys(namespace, standings))
            found = self._loader.take(namespace)
            if isinstance(found, Failed):
                failed[namespace] = found.why
            elif found is not None:
                self._replay(state, standings, found, bounds, now)
            elif self._loader.is_waiting(namespace):
                waiting.add(namespace)
        for outcome, count in self._loader.counts.items():
            self._metrics.history.labels(outcome).set(count)
        return waiting, failed

    def _replay(
        self, state: ClusterState, standings: Standings, history: UsageHistory, bounds: Bounds, now: datetime
    ) -> None:
        namespace = history.namespace
        pods = PastPods(
            namespace,
            standings.index,
            standings.owners,
            standings.nodes,
            live={pod.metadata.name: pod for pod in self._pods_of(namespace)},
            told=history.label_keys,
        )
        retrospect = Retrospect(pods.attribute, lambda pod: bounds.of(PodId(namespace, pod)))
        done = add_history(state, history, retrospect, times.to_ns(now))
        self._metrics.history_samples.inc(done.samples)
        _tell(namespace, done)

    def _pods_of(self, namespace: str) -> Iterable[Pod]:
        return (pod for pod in self._view.pods if pod.metadata.namespace == namespace)

    def _label_keys(self, namespace: str, standings: Standings) -> set[str]:
        """Return the label keys that count in a namespace, as Kubernetes spells them."""
        keys = {key for pod in self._pods_of(namespace) for key in pod.metadata.labels}
        for claim in standings.claims.values():
            if claim.vpa.metadata.namespace == namespace:
                keys |= _keys_of(claim)
        return keys


def _keys_of(claim: Claim) -> set[str]:
    selectors = [claim.selector, claim.scope.pods if isinstance(claim.scope, Scope) else None]
    return {requirement.key for one in selectors if one is not None for requirement in one.requirements}


def _containers_with_samples(state: ClusterState, vpa: str) -> frozenset[str]:
    aggregates = state.vpas[vpa].aggregates.items()
    return frozenset(key.container for key, aggregate in aggregates if not aggregate.is_empty)


def _tell(namespace: str, done: Replayed) -> None:
    log.info("history of namespace %s: %d samples of %d containers", namespace, done.samples, done.containers)
    if done.left_out:
        log.info(
            "history of namespace %s: %d pods are left out, since nobody can tell which VPA they taught: %s",
            namespace,
            len(done.left_out),
            ", ".join(done.left_out[:5]),
        )


def _namespace(vpa: str) -> str:
    return vpa.partition("/")[0]
