"""Explanations of a VPA or a pod, live from a cluster: one look through the same view that the loops use.

The recommender's own memory is not reachable from outside, so numbers are derived from the checkpoints that it saved;
they lack what is not saved yet (the memory windows that still run), and the text says from when they are.
"""

from dataclasses import dataclass

from trimtab.clock import Clock
from trimtab.cluster.client import Client, Selection
from trimtab.decide.vertical.actions import Action, Outcome, Verdict
from trimtab.decide.vertical.checkpoints import load_checkpoint
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
from trimtab.decide.vertical.recommend import RecommenderSettings
from trimtab.decide.vertical.recommender import PostProcessing, VPARecommendation, recommend_vpas
from trimtab.decide.vertical.state import ClusterState
from trimtab.decide.vertical.update import drive, update_loop
from trimtab.decide.vertical.updater_state import UpdaterState
from trimtab.model import times
from trimtab.model.gates import FeatureGates
from trimtab.operator.caches import Caches
from trimtab.operator.vertical.cluster_view import ClusterView, Standings
from trimtab.operator.vertical.follow import Unusable, usable_selector
from trimtab.operator.vertical.kinds import CHECKPOINTS
from trimtab.operator.vertical.settings import VerticalSettings
from trimtab.operator.vertical.updater import updater_settings


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
        found = explain_pod(
            pod,
            standings.index,
            standings.owners,
            standings.nodes,
            ranges,
            await self._next_verdict(pod.metadata.key),
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
        recommended = await self._recommended(key, standings)
        found = explain_vpa(
            claim,
            list(self._view.pods),
            standings.index,
            standings.owners,
            standings.nodes,
            recommended.containers if recommended else (),
            recommended.cuts if recommended else (),
        )
        return Explained(found, vpa_lines(found))

    async def _next_verdict(self, pod: str) -> Verdict | None:
        """Return what an update loop would do with a pod now, if nothing were in its way."""
        pods = await self._view.discovery.served("", "v1", "pods")
        serves_resize = pods is not None and "resize" in pods.subresources
        observation = await self._view.observation(serves_resize=serves_resize)
        loop = update_loop(
            observation,
            UpdaterState(),
            self._clock.now(),
            updater_settings(self._settings),
            self._view.gates,
            self._view.compat,
        )
        result = drive(loop, _would_succeed)
        return next((verdict for verdict in result.verdicts if verdict.pod == pod), None)

    async def _recommended(self, key: str, standings: Standings) -> VPARecommendation | None:
        state = ClusterState(compat=self._view.compat, per_vpa_config=self._view.gates.per_vpa_config)
        one = next((one for one in standings.vpas if one.vpa.key == key), None)
        if one is None:
            return None
        selector = usable_selector(one, standings)
        if isinstance(selector, Unusable):
            return None
        vpa = state.add_or_update_vpa(one.vpa, selector)
        now_ns = times.to_ns(self._clock.now())
        saved = await self._client.list(CHECKPOINTS, Selection(self._namespace))
        for checkpoint in saved.items:
            if checkpoint.spec.vpa_object_name == one.vpa.metadata.name:
                load_checkpoint(state, checkpoint, now_ns)
        return recommend_vpas(state, [vpa], RecommenderSettings(), PostProcessing(), now_ns)[0]


def _would_succeed(_: Action) -> Outcome:
    return Outcome.DONE
