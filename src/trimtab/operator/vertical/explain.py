"""Explains a VPA or a pod from a running cluster, through the same view that the components use.

Numbers are derived from the recommender's checkpoints, and the text says when those were saved.
"""

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime

import msgspec

from trimtab.clock import Clock
from trimtab.cluster import errors
from trimtab.cluster.cache.shared import InformerFactory, SharedInformers
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.discovery import Discovery
from trimtab.cluster.resource import NODES
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.explain import (
    PodExplanation,
    SizingRules,
    VPAExplanation,
    explain_pod,
    explain_vpa,
    pod_lines,
    vpa_lines,
)
from trimtab.decide.vertical.input.checkpoints import load_checkpoint
from trimtab.decide.vertical.recommend.plugin_estimates import NO_ESTIMATORS, saved_estimators
from trimtab.decide.vertical.recommend.recommender import VPARecommendation, recommend_vpas
from trimtab.decide.vertical.resources.limit_ranges import NamespaceRanges
from trimtab.decide.vertical.update.actions import Action, ActionResult, Evict, PodUpdateResult
from trimtab.decide.vertical.update.loop import UpdateResult, update_loop
from trimtab.decide.vertical.update.loop_state import UpdaterState
from trimtab.model import times
from trimtab.model.core.pod import ResourceList
from trimtab.model.plugin_names import is_plugin_name
from trimtab.model.readable import readable_amount
from trimtab.model.times import format_time
from trimtab.model.vpa.defaults import recommender_of
from trimtab.model.vpa.types import VerticalPodAutoscaler, VPAConditionType
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot, vpa_rules
from trimtab.operator.vertical.estimation import Estimation
from trimtab.operator.vertical.kinds import kind_of, kinds_of
from trimtab.operator.vertical.recommender.feeder import UnsupportedConfig, is_served_by, usable_selector
from trimtab.operator.vertical.updater.controller import updater_settings
from trimtab.operator.vertical.updater.replacement import Obstacle, ReplacementCheck

PATIENCE_SECONDS = 5.0
"""How long a list may fail before the explanation is given up. One that is refused fails at once."""
_POLL_SECONDS = 0.05
_UNMET = (
    VPAConditionType.NO_NODE_FITS,
    VPAConditionType.REPLACEMENT_REFUSED,
    VPAConditionType.CONFIG_UNSUPPORTED,
    VPAConditionType.ESTIMATOR_FAILED,
)
"""Conditions that say why a recommendation does not reach its pods."""


class NotFoundError(LookupError):
    """The object does not exist."""


class CannotLookError(Exception):
    """A resource that the explanation needs cannot be listed."""


@dataclass(frozen=True)
class Explained:
    """An explanation as data and as lines of text."""

    data: PodExplanation | VPAExplanation
    lines: list[str]


class Explainer:
    """Explains VPAs and pods of one namespace, by the settings of the operator."""

    def __init__(
        self, client: Client, namespace: str, settings: Settings, *, sees_all_pods: bool = True
    ) -> None:
        self._sees_all_pods = sees_all_pods
        """Whether the updater watches all namespaces. This explainer watches one."""
        self._clock = client.clock
        self._client = client
        self._namespace = namespace
        self._settings = settings
        self._informers = InformerFactory(client, (namespace,))
        informers = SharedInformers(self._informers)
        self._view = ClusterView(
            client,
            Discovery(client),
            informers,
            gates=settings.gates,
            rules=vpa_rules(settings.compat),
            kinds=kinds_of(settings),
        ).size_pods()
        self._checkpoints = CheckpointReader(client.clock, client, self._view, settings)

    async def _wait_synced(self) -> None:
        """Wait for the first lists, except that of nodes, which a viewer of one namespace may not list."""
        await self._view.begin()
        started = self._clock.monotonic()
        waiting = list(self._view.all_caches())
        while waiting := [cache for cache in waiting if not cache.has_synced]:
            failed = {cache.resource.plural: error for cache in waiting if (error := cache.last_error())}
            if set(failed) == {NODES.plural} and len(waiting) == 1:
                return
            refused = {cache.resource.plural for cache in waiting if cache.refusals()}
            is_late = self._clock.monotonic() - started > PATIENCE_SECONDS
            for plural, error in failed.items():
                if plural != NODES.plural and (is_late or plural in refused):
                    raise CannotLookError(f"{plural} cannot be listed: {error}")
            await self._clock.sleep(_POLL_SECONDS)

    def _unseen_nodes(self) -> list[str]:
        """Return a line about scopes that select nodes, if nodes cannot be listed."""
        if self._view.nodes.has_synced:
            return []
        scopes = sorted(
            scope.metadata.name for scope in self._view.scopes() if scope.spec.node_selector is not None
        )
        if not scopes:
            return []
        names = f"{', '.join(scopes)} of this namespace"
        return [f"not known: nodes cannot be listed, and pods are selected by their nodes in {names}"]

    async def close(self) -> None:
        """Stop watching."""
        await self._informers.close()

    async def pod(self, name: str) -> Explained:
        """Explain which VPA controls a pod, its sizes, and its next update."""
        await self._wait_synced()
        pod = self._view.pods.get(name, self._namespace)
        if pod is None:
            raise NotFoundError(f"there is no pod {self._namespace}/{name}")
        control = await self._view.control_snapshot()
        ranges = NamespaceRanges(tuple(self._view.limit_ranges)).of(self._namespace)
        verdicts = await preview_updates(
            self._client,
            self._view,
            self._settings,
            self._clock.now(),
            sees_all_pods=self._sees_all_pods,
        )
        explanation = explain_pod(
            pod,
            control.index,
            control.owners,
            control.nodes,
            SizingRules(ranges, self._view.rules, self._view.server_rules),
            verdicts.get(pod.metadata.key),
        )
        lines = [line.replace("last update loop:", "next update:") for line in pod_lines(explanation)]
        return Explained(explanation, lines + self._unseen_nodes())

    async def vpa(self, name: str) -> Explained:
        """Explain which pods a VPA controls, and how each number of its recommendation came about."""
        await self._wait_synced()
        key = f"{self._namespace}/{name}"
        control = await self._view.control_snapshot()
        claim = control.claims.get(key)
        if claim is None:
            raise NotFoundError(f"there is no VPA {key}, or it names no target")
        saved = await self._checkpoints.read(key, control)
        recommended = saved.recommended if saved else None
        explanation = explain_vpa(
            claim,
            list(self._view.pods),
            control.index,
            control.owners,
            control.nodes,
            recommended.containers if recommended else (),
            recommended.cuts if recommended else (),
        )
        if saved is not None and saved.saved_at is not None:
            explanation = msgspec.structs.replace(explanation, saved_at=format_time(saved.saved_at))
        unmet = [
            f"  {condition.type}: {condition.message}"
            for condition in claim.vpa.status.conditions
            if condition.type in _UNMET and condition.status == "True"
        ]
        estimator = [] if explanation.amounts else _estimator_lines(claim.vpa)
        return Explained(explanation, vpa_lines(explanation) + estimator + unmet + self._unseen_nodes())


def _estimator_lines(vpa: VerticalPodAutoscaler) -> list[str]:
    """Return the amounts of an estimator by the status, for as long as no checkpoint has its answer."""
    name = recommender_of(vpa)
    if not is_plugin_name(name):
        return []
    if vpa.status.recommendation is None or not vpa.status.recommendation.container_recommendations:
        missing = f"  no recommendation yet: spec.recommenders names {name}, which must answer"
        return [f"{missing}; Trimtab's recommender calls it if the operator's --plugins names it"]
    lines = [
        f"  {container.container_name} {resource}: lower bound {_text(container.lower_bound, resource)}, "
        f"target {_text(container.target, resource)}, upper bound {_text(container.upper_bound, resource)}"
        for container in vpa.status.recommendation.container_recommendations
        for resource in sorted(container.target)
    ]
    return [
        *lines,
        f"  by {name}, whose reason is known from the next checkpoint on, or at once with --operator",
    ]


def _text(amounts: ResourceList, resource: str) -> str:
    amount = amounts.get(resource)
    return "none" if amount is None else readable_amount(resource, amount.milli_value())


@dataclass(frozen=True)
class CheckpointedState:
    """A cluster state with the saved history of one VPA, and the recommendation derived from it."""

    state: ClusterState
    recommended: VPARecommendation
    saved_at: datetime | None = None
    """When the newest checkpoint was saved, or None if there is none."""

    def model_of(self, vpa: str) -> ClusterState | None:
        """Return the cluster state, if it has this VPA, by `namespace/name`."""
        return self.state if vpa in self.state.vpas else None

    def recommendation(self, vpa: str) -> VPARecommendation | None:
        """Return the recommendation for a VPA, by `namespace/name`."""
        return self.recommended if vpa in self.state.vpas else None


class CheckpointReader:
    """Derives recommendations from checkpoints by the recommender's settings."""

    def __init__(self, clock: Clock, client: Client, view: ClusterView, settings: Settings) -> None:
        self._clock = clock
        self._own = settings.recommender.recommender_name
        self._estimation = Estimation.from_settings(settings.estimation)
        self._client = client
        self._view = view

    async def read(self, key: str, control: ControlSnapshot) -> CheckpointedState | None:
        """Return the saved state of a VPA, by `namespace/name`, or None if the VPA is unsupported.

        Nothing is derived for a VPA of another recommender, whose rules are unknown. Estimators are not loaded here: their
        last answers are in the checkpoints.
        """
        targeted = next((targeted for targeted in control.vpas if targeted.vpa.key == key), None)
        if targeted is None:
            return None
        has_estimator = is_plugin_name(recommender_of(targeted.vpa))
        if not has_estimator and not is_served_by(targeted.vpa, {self._own}):
            return None
        selector = usable_selector(targeted, control)
        if isinstance(selector, UnsupportedConfig):
            return None
        state = self._estimation.new_state(self._view)
        vpa = state.add_or_update_vpa(targeted.vpa, selector)
        now_ns = times.to_ns(self._clock.now())
        checkpointed = kind_of(targeted.vpa.api_version).checkpoints
        listing = await self._client.list(checkpointed, ListOptions(targeted.name.namespace))
        checkpoints = [item for item in listing.items if item.spec.vpa_object_name == targeted.name.name]
        for checkpoint in checkpoints:
            load_checkpoint(state, checkpoint, now_ns)
        dates = [checkpoint.status.last_update_time for checkpoint in checkpoints]
        post = self._estimation.post_processing_for(self._view)
        answers = saved_estimators(vpa) if has_estimator else NO_ESTIMATORS
        recommended = recommend_vpas(state, [vpa], self._estimation.settings, post, now_ns, answers)[0]
        return CheckpointedState(
            state, recommended, max((date for date in dates if date is not None), default=None)
        )


async def preview_updates(
    client: Client,
    view: ClusterView,
    settings: Settings,
    now: datetime,
    *,
    sees_all_pods: bool = True,
) -> dict[str, PodUpdateResult]:
    """Return what the next update loop would do with each pod, by `namespace/name`.

    Replacements are checked against nodes only. A reader must not create pods, not even in a dry run.
    """
    observation = await view.observation(serves_resize=await view.serves_resize())
    loop = update_loop(
        observation,
        UpdaterState(),
        now,
        updater_settings(settings.updater, settings.namespace_rules),
        view.gates,
        view.rules,
    )
    check = None
    if view.rules.ours and settings.updater.node_fit != "none":
        check = ReplacementCheck(
            client, view, creates=False, node_fit=settings.updater.node_fit, sees_all_pods=sees_all_pods
        )
    return await _preview(loop, check)


async def _preview(
    loop: Generator[Action, ActionResult, UpdateResult], check: ReplacementCheck | None
) -> dict[str, PodUpdateResult]:
    unreplaceable: dict[str, PodUpdateResult] = {}
    outcome: ActionResult | None = None
    try:
        while True:
            action = next(loop) if outcome is None else loop.send(outcome)
            obstacle = await _obstacle(check, action)
            outcome = ActionResult.DONE if obstacle is None else ActionResult.UNREPLACEABLE
            if obstacle is not None:
                pod = action.pod.metadata.key
                unreplaceable[pod] = PodUpdateResult(
                    pod=pod, vpa=action.vpa.key, action="none", reason=obstacle.message
                )
    except StopIteration as end:
        result: UpdateResult = end.value
        return {verdict.pod: verdict for verdict in result.pod_results} | unreplaceable


async def _obstacle(check: ReplacementCheck | None, action: Action) -> Obstacle | None:
    if check is None or not isinstance(action, Evict):
        return None
    try:
        return await check.obstacle(action.pod, action.vpa)
    except errors.ClusterError:
        return None  # the reader lacks a right
