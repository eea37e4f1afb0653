"""Explanations of a VPA or a pod, live from a cluster: one look through the same view that the loops use.

Numbers are derived from the checkpoints that the recommender saved, and the text says from when they are.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.informers import InformerFactory, SharedInformers
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.discovery import Discovery
from trimtab.cluster.resource import NODES
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.compat import DEFAULT, VpaCompat
from trimtab.decide.vertical.explain import (
    PodExplanation,
    VPAExplanation,
    explain_pod,
    explain_vpa,
    pod_lines,
    vpa_lines,
)
from trimtab.decide.vertical.input.checkpoints import load_checkpoint
from trimtab.decide.vertical.recommend.recommender import VPARecommendation, recommend_vpas
from trimtab.decide.vertical.update.actions import (
    Action,
    ActionResult,
    Evict,
    PodUpdateResult,
)
from trimtab.decide.vertical.update.loop import UpdateResult, update_loop
from trimtab.decide.vertical.update.loop_state import UpdaterState
from trimtab.decide.vertical.update.node_fit import rooms_of
from trimtab.decide.vertical.update.observation import NamespaceRanges
from trimtab.model import times
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.times import format_time
from trimtab.model.vpa.types import VPAConditionType
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot
from trimtab.operator.vertical.estimation import aggregation_of, estimation_of, post_processing_of
from trimtab.operator.vertical.kinds import CHECKPOINTS
from trimtab.operator.vertical.recommender.feeder import (
    UnsupportedConfig,
    is_served_by,
    usable_selector,
)
from trimtab.operator.vertical.updater.controller import updater_settings
from trimtab.operator.vertical.updater.replacement import Obstacle, ReplacementCheck


@dataclass(frozen=True)
class CheckpointedState:
    """A model that holds one VPA's saved history, and what follows from it."""

    state: ClusterState
    recommended: VPARecommendation
    saved_at: datetime | None = None
    """When the last of it was saved; None if nothing is."""

    def model_of(self, vpa: str) -> ClusterState | None:
        """Return the model, if it is about this VPA, by `namespace/name`."""
        return self.state if vpa in self.state.vpas else None

    def recommendation(self, vpa: str) -> VPARecommendation | None:
        """Return the recommendation, by `namespace/name`."""
        return self.recommended if vpa in self.state.vpas else None


class CheckpointReader:
    """Reads checkpoints and derives recommendations from them, by the recommender's settings; writes nothing."""

    def __init__(self, clock: Clock, client: Client, view: ClusterView, settings: Settings) -> None:
        self._clock = clock
        self._recommender = settings.recommender.recommender_name
        self._aggregation = aggregation_of(settings.estimation)
        self._estimation = estimation_of(settings.estimation)
        self._post = post_processing_of(settings.estimation)
        self._client = client
        self._view = view

    async def of(self, key: str, standings: ControlSnapshot) -> CheckpointedState | None:
        """Return what is saved about a VPA, by `namespace/name`; None if it can learn nothing as it is.

        Nothing is derived for a VPA of another recommender: its numbers follow from rules that are not known here.
        """
        one = next((one for one in standings.vpas if one.vpa.key == key), None)
        selector = None if one is None else usable_selector(one, standings)
        if one is None or selector is None or isinstance(selector, UnsupportedConfig):
            return None
        if not is_served_by(one.vpa, self._recommender):
            return None
        state = ClusterState(
            self._aggregation, compat=self._view.compat, per_vpa_config=self._view.gates.per_vpa_config
        )
        vpa = state.add_or_update_vpa(one.vpa, selector)
        now_ns = times.to_ns(self._clock.now())
        saved = await self._client.list(CHECKPOINTS, ListOptions(one.vpa.metadata.namespace))
        ours = [item for item in saved.items if item.spec.vpa_object_name == one.vpa.metadata.name]
        for checkpoint in ours:
            load_checkpoint(state, checkpoint, now_ns)
        dates = [item.status.last_update_time for item in ours if item.status.last_update_time is not None]
        rooms = tuple(rooms_of(self._view.nodes)) if self._view.compat.sizes_are_admissible else ()
        post = replace(self._post, rooms=rooms)
        recommended = recommend_vpas(state, [vpa], self._estimation, post, now_ns)[0]
        return CheckpointedState(state, recommended, max(dates, default=None))


async def preview_updates(
    client: Client,
    view: ClusterView,
    settings: Settings,
    now: datetime,
    *,
    sees_all_pods: bool = True,
) -> dict[str, PodUpdateResult]:
    """Return what a loop would do with each pod, by `namespace/name`, as far as nodes tell.

    Whether a replacement would be admitted is not asked: nobody creates pods to look at them.
    """
    observation = await view.observation(serves_resize=await view.serves_resize())
    loop = update_loop(observation, UpdaterState(), now, updater_settings(settings), view.gates, view.compat)
    check = None
    if view.compat.sizes_are_admissible and settings.updater.node_fit != "none":
        check = ReplacementCheck(
            client, view, creates=False, node_fit=settings.updater.node_fit, sees_all_pods=sees_all_pods
        )
    return await _foreseen(loop, check)


async def _foreseen(
    loop: Generator[Action, ActionResult, UpdateResult], check: ReplacementCheck | None
) -> dict[str, PodUpdateResult]:
    kept: dict[str, PodUpdateResult] = {}
    outcome: ActionResult | None = None
    try:
        while True:
            action = next(loop) if outcome is None else loop.send(outcome)
            found = await _obstacle(check, action)
            outcome = ActionResult.DONE if found is None else ActionResult.UNREPLACEABLE
            if found is not None:
                pod = action.pod.metadata.key
                kept[pod] = PodUpdateResult(pod=pod, vpa=action.vpa.key, action="none", reason=found.message)
    except StopIteration as end:
        result: UpdateResult = end.value
        return {verdict.pod: verdict for verdict in result.verdicts} | kept


async def _obstacle(check: ReplacementCheck | None, action: Action) -> Obstacle | None:
    """Return why a pod would not come back; None if who looks may not read what that takes."""
    if check is None or not isinstance(action, Evict):
        return None
    try:
        return await check.obstacle(action.pod, action.vpa)
    except errors.ClusterError:
        return None


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
        settings: Settings,
        compat: VpaCompat = DEFAULT,
        sees_all_pods: bool = True,
    ) -> None:
        self._sees_all_pods = sees_all_pods
        """Whether the updater does; we look at one namespace."""
        self._clock = clock
        self._client = client
        self._namespace = namespace
        self._settings = settings
        self._informers = InformerFactory(client, (namespace,))
        informers = SharedInformers(self._informers)
        self._view = ClusterView(client, Discovery(client), informers, gates=gates, compat=compat).size_pods()
        self._saved = CheckpointReader(clock, client, self._view, settings)

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
        await self._informers.close()

    async def pod(self, name: str) -> Explained:
        """Explain a pod: who controls it, who lost it and why, what it would get, what comes next and why not yet."""
        await self._wait_synced()
        pod = self._view.pods.get(name, self._namespace)
        if pod is None:
            raise NotFoundError(f"there is no pod {self._namespace}/{name}")
        standings = await self._view.standings()
        ranges = NamespaceRanges(tuple(self._view.limit_ranges)).of(self._namespace)
        verdicts = await preview_updates(
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
