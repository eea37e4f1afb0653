"""Explanations of a VPA or a pod, live from a cluster: one look through the same view that the loops use.

Numbers are derived from the checkpoints that the recommender saved, and the text says from when they are.
"""

from dataclasses import dataclass

import msgspec

from trimtab.clock import Clock
from trimtab.cluster.client import Client
from trimtab.decide.vertical.compat import DEFAULT, Compat
from trimtab.decide.vertical.explain import (
    PodExplanation,
    VPAExplanation,
    explain_pod,
    explain_vpa,
    pod_lines,
    vpa_lines,
)
from trimtab.decide.vertical.observation import NamespaceRanges
from trimtab.model.gates import FeatureGates
from trimtab.model.times import format_time
from trimtab.operator.caches import Caches
from trimtab.operator.vertical.cluster_view import ClusterView
from trimtab.operator.vertical.foresight import next_verdicts
from trimtab.operator.vertical.saved import SavedHistory
from trimtab.operator.vertical.settings import VerticalSettings


class NotFoundError(LookupError):
    """There is no such object; the message names it."""


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
    ) -> None:
        self._clock = clock
        self._client = client
        self._namespace = namespace
        self._settings = settings
        self._caches = Caches(client, (namespace,))
        self._view = ClusterView(client, self._caches, gates=gates, compat=compat)
        self._saved = SavedHistory(clock, client, self._view)

    async def close(self) -> None:
        """Stop watching."""
        await self._caches.close()

    async def pod(self, name: str) -> Explained:
        """Explain a pod: who controls it, who lost it and why, what it would get, what comes next and why not yet."""
        await self._view.wait_synced()
        pod = self._view.pods.get(name, self._namespace)
        if pod is None:
            raise NotFoundError(f"there is no pod {self._namespace}/{name}")
        standings = await self._view.standings()
        ranges = NamespaceRanges(tuple(self._view.limit_ranges)).of(self._namespace)
        verdicts = await next_verdicts(self._view, self._settings, self._clock.now())
        found = explain_pod(
            pod,
            standings.index,
            standings.owners,
            standings.nodes,
            ranges,
            verdicts.get(pod.metadata.key),
            self._view.compat,
        )
        return Explained(
            found, [line.replace("last update loop:", "next update:") for line in pod_lines(found)]
        )

    async def vpa(self, name: str) -> Explained:
        """Explain a VPA: whom it speaks for, who feeds it, and how each number came about."""
        await self._view.wait_synced()
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
        return Explained(found, vpa_lines(found))
