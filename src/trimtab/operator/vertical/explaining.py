"""Explanations of a VPA or a pod, live from a cluster: one look through the same view that the loops use.

Numbers are derived from the checkpoints that the recommender saved, and the text says from when they are.
"""

from dataclasses import dataclass

import msgspec

from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.cluster.resource import NODES
from trimtab.decide.vertical.compat import DEFAULT, Compat
from trimtab.decide.vertical.explain import (
    PodExplanation,
    VPAExplanation,
    explain_pod,
    explain_vpa,
    pod_lines,
    vpa_lines,
)
from trimtab.decide.vertical.update.observation import NamespaceRanges
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.times import format_time
from trimtab.model.vpa.types import VPAConditionType
from trimtab.operator.caches import Caches
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.foresight import next_verdicts
from trimtab.operator.vertical.saved import SavedHistory
from trimtab.operator.vertical.settings import VerticalSettings

PATIENCE_SECONDS = 5.0
"""How long a list may fail before the explanation is given up: a server may be busy for a moment."""
_POLL_SECONDS = 0.05
_UNMET = (
    VPAConditionType.NO_NODE_FITS,
    VPAConditionType.REPLACEMENT_REFUSED,
    VPAConditionType.CONFIG_UNSUPPORTED,
)
"""Conditions that say why a recommendation does not reach its pods."""


class NotFoundError(LookupError):
    """There is no such object; the message names it."""


class CannotLookError(Exception):
    """A kind that the explanation depends on cannot be listed; the message says which and why."""


@dataclass(frozen=True)
class Explained:
    """An explanation as data and as lines for people."""

    data: PodExplanation | VPAExplanation
    lines: list[str]


class Explainer:
    """Looks at one namespace of a cluster and explains what it finds."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        namespace: str,
        *,
        gates: FeatureGates,
        settings: VerticalSettings,
        compat: Compat = DEFAULT,
        sees_all_pods: bool = True,
    ) -> None:
        self._sees_all_pods = sees_all_pods
        """Whether the updater does; we look at one namespace."""
        self._clock = clock
        self._client = client
        self._namespace = namespace
        self._settings = settings
        self._caches = Caches(client, (namespace,))
        self._view = ClusterView(client, self._caches, gates=gates, compat=compat).size_pods()
        self._saved = SavedHistory(clock, client, self._view, settings)

    async def _wait_synced(self) -> None:
        """Wait for the first lists; nodes may be missing, because who sees one namespace cannot list them."""
        await self._view.begin()
        started = self._clock.monotonic()
        waiting = list(self._view.all_caches())
        while waiting := [cache for cache in waiting if not cache.has_synced]:
            failed = {cache.resource.plural: error for cache in waiting if (error := cache.last_error())}
            if set(failed) == {NODES.plural} and len(waiting) == 1:
                return
            for plural, error in failed.items():
                if plural != NODES.plural and self._clock.monotonic() - started > PATIENCE_SECONDS:
                    raise CannotLookError(f"{plural} cannot be listed: {error}")
            await self._clock.sleep(_POLL_SECONDS)

    def _unseen_nodes(self) -> list[str]:
        """Return what is not known without the nodes; nothing if they could be read or no scope needs them."""
        if self._view.nodes.has_synced:
            return []
        scopes = sorted(
            scope.metadata.name for scope in self._view.scopes() if scope.spec.node_selector is not None
        )
        if not scopes:
            return []
        named = f"{', '.join(scopes)} of this namespace"
        return [f"not known: nodes cannot be listed, and pods are selected by their nodes in {named}"]

    async def close(self) -> None:
        """Stop watching."""
        await self._caches.close()

    async def pod(self, name: str) -> Explained:
        """Explain a pod: who controls it, who lost it and why, what it would get, what comes next and why not yet."""
        await self._wait_synced()
        pod = self._view.pods.get(name, self._namespace)
        if pod is None:
            raise NotFoundError(f"there is no pod {self._namespace}/{name}")
        standings = await self._view.standings()
        ranges = NamespaceRanges(tuple(self._view.limit_ranges)).of(self._namespace)
        verdicts = await next_verdicts(
            self._client,
            self._view,
            self._settings,
            self._clock.now(),
            sees_all_pods=self._sees_all_pods,
        )
        found = explain_pod(
            pod,
            standings.index,
            standings.owners,
            standings.nodes,
            ranges,
            verdicts.get(pod.metadata.key),
            self._view.compat,
        )
        lines = [line.replace("last update loop:", "next update:") for line in pod_lines(found)]
        return Explained(found, lines + self._unseen_nodes())

    async def vpa(self, name: str) -> Explained:
        """Explain a VPA: whom it speaks for, who feeds it, and how each number came about."""
        await self._wait_synced()
        key = f"{self._namespace}/{name}"
        standings = await self._view.standings()
        claim = standings.claims.get(key)
        if claim is None:
            raise NotFoundError(f"there is no VPA {key}, or it names no target")
        learned = await self._saved.of(key, standings)
        recommended = learned.recommended if learned else None
        found = explain_vpa(
            claim,
            list(self._view.pods),
            standings.index,
            standings.owners,
            standings.nodes,
            recommended.containers if recommended else (),
            recommended.cuts if recommended else (),
        )
        if learned is not None and learned.saved_at is not None:
            found = msgspec.structs.replace(found, saved_at=format_time(learned.saved_at))
        unmet = [
            f"  {condition.type}: {condition.message}"
            for condition in claim.vpa.status.conditions
            if condition.type in _UNMET and condition.status == "True"
        ]
        return Explained(found, vpa_lines(found) + unmet + self._unseen_nodes())
