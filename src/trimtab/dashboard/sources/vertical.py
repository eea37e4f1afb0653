"""The VPAs of a running operator: recommendations, usage, and the VPA that controls each pod."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from trimtab.dashboard.auth.rights import (
    CHECKPOINTS,
    EVENTS,
    NATIVE_CHECKPOINTS,
    PODS,
    SCOPES,
    NamespaceRights,
)
from trimtab.dashboard.pages.histograms import count_samples, usage_bars
from trimtab.dashboard.pages.patches import requests_yaml
from trimtab.dashboard.pages.views import AmountView, EventView, SizedPod, VerticalPage, VerticalRow
from trimtab.dashboard.sources.horizontal import view_conditions
from trimtab.decide.horizontal.reasons import State
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.control.claims import VpaClaim
from trimtab.decide.vertical.explain import (
    PodExplanation,
    SizingRules,
    describe_scope,
    explain_pod,
    explain_vpa,
)
from trimtab.decide.vertical.recommend.estimators import Bound
from trimtab.decide.vertical.recommend.recommendation import Derivation
from trimtab.decide.vertical.recommend.recommender import VPARecommendation
from trimtab.decide.vertical.resources.container_resources import requests_and_limits
from trimtab.decide.vertical.update.actions import PodUpdateResult
from trimtab.model.core.pod import CPU, MEMORY, Pod, ResourceList
from trimtab.model.quantity import Quantity
from trimtab.model.readable import readable_amount
from trimtab.model.vpa.types import RecommendedContainerResources, VerticalPodAutoscaler, VPAConditionType
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot

MAX_PODS: Final = 300
PODS_PER_TURN: Final = 200
"""Pods that are explained before the event loop runs again, about 6 ms of work."""
_HISTORY: Final = "Usage history, samples and derivations"
_PARTS: Final = {
    PODS: "Pods and their requests",
    EVENTS: "Events",
    CHECKPOINTS: _HISTORY,
    NATIVE_CHECKPOINTS: _HISTORY,
    SCOPES: "Selectors of the scope",
}
"""The parts of a page by kind."""


class RecommenderView(Protocol):
    """What the page needs of the recommender."""

    def model_of(self, vpa: str) -> ClusterState | None:
        """Return the cluster state that contains a VPA, by `namespace/name`, or None."""
        ...

    def recommendation(self, vpa: str) -> VPARecommendation | None:
        """Return the last recommendation for a VPA."""
        ...


class UpdaterView(Protocol):
    """What the page needs of the updater."""

    def verdict(self, pod: str) -> PodUpdateResult | None:
        """Return what the last loop did with a pod."""
        ...


class RemoteLoops(Protocol):
    """Reads the state of loops in other processes from the cluster."""

    async def checkpointed(self, vpa: str, control: ControlSnapshot) -> RecommenderView | None:
        """Return the recommender's checkpointed state of a VPA, or None."""
        ...

    async def preview(self) -> Mapping[str, PodUpdateResult]:
        """Return what the next update loop would do with each pod."""
        ...

    async def events(self, identity: str, pods: Collection[str]) -> tuple[EventView, ...]:
        """Return the events of a VPA by its id, and those about the sizes of these pods of its namespace."""
        ...


@dataclass(frozen=True)
class OperatorVertical:
    """Returns the VPAs of an operator. The process may lack the recommender or the updater."""

    view: ClusterView
    recommender: RecommenderView | None = None
    updater: UpdaterView | None = None
    remote: RemoteLoops | None = None

    def rows(self) -> Sequence[VerticalRow]:
        """Return every VPA, sorted by id."""
        return sorted((_row(vpa) for vpa in self.view.vpas), key=lambda row: row.id)

    async def page(self, identity: str, rights: NamespaceRights) -> VerticalPage | None:
        """Return the parts of a VPA's page that a viewer may see, or None if there is no such VPA."""
        _, namespace, name = identity.split("/")
        vpa = self.view.vpas.get(name, namespace)
        if vpa is None or _id_of(vpa) != identity:
            return None
        checkpoints = NATIVE_CHECKPOINTS if vpa.is_native else CHECKPOINTS
        unused = {CHECKPOINTS, NATIVE_CHECKPOINTS} - {checkpoints}
        parts = {kind: part for kind, part in _PARTS.items() if kind not in unused}
        allowed = await rights.allowed(parts)
        control = await self.view.control_snapshot()
        await self.view.read_kubernetes()
        claim = control.claims.get(vpa.key)
        source = await self._for_viewer(
            vpa.key, control, shows_usage=checkpoints in allowed, shows_pods=PODS in allowed
        )
        lists_events = EVENTS in allowed
        explained = await source._explain_all(vpa, control) if claim is not None and PODS in allowed else []
        controlled = {pod.metadata.name for pod, told in explained if told.controlled_by == vpa.key}
        events = await self.remote.events(identity, controlled) if self.remote and lists_events else ()
        return msgspec.structs.replace(
            source._page(vpa, claim, control, explained, shows_scopes=SCOPES in allowed),
            events=events,
            shows_pods=PODS in allowed,
            shows_events=EVENTS in allowed,
            shows_usage=checkpoints in allowed,
            hidden=tuple(
                rights.explain_missing(part, kind)
                for kind, part in parts.items()
                if kind not in allowed and (kind != SCOPES or vpa.scope_names)
            ),
        )

    async def _for_viewer(
        self, vpa: str, control: ControlSnapshot, *, shows_usage: bool, shows_pods: bool
    ) -> "OperatorVertical":
        """Return this source with the state of other processes, and without what a viewer may not see."""
        recommender = self.recommender if shows_usage else None
        updater = self.updater if shows_pods else None
        if self.remote is None:
            return OperatorVertical(self.view, recommender, updater)
        if shows_usage and (recommender is None or recommender.model_of(vpa) is None):
            recommender = await self.remote.checkpointed(vpa, control)
        if shows_pods:
            updater = _UpdaterWithPreview(updater, await self.remote.preview())
        return OperatorVertical(self.view, recommender, updater)

    async def _explain_all(
        self, vpa: VerticalPodAutoscaler, control: ControlSnapshot
    ) -> list[tuple[Pod, PodExplanation]]:
        """Explain the pods that concern a VPA, controlled ones first.

        Pods of the target are listed even if another VPA controls them. A namespace may have thousands of pods, at about 30
        µs each, so the event loop runs in between.
        """
        explained: list[tuple[Pod, PodExplanation]] = []
        for number, pod in enumerate(self._pods_beside(vpa), start=1):
            explanation = self._explain(pod, control)
            if _concerns(explanation, vpa.key):
                explained.append((pod, explanation))
            if number % PODS_PER_TURN == 0:
                await asyncio.sleep(0)
        return sorted(explained, key=lambda pair: (pair[1].controlled_by != vpa.key, pair[1].pod))

    def _pods_beside(self, vpa: VerticalPodAutoscaler) -> list[Pod]:
        return [pod for pod in self.view.pods if pod.metadata.namespace == vpa.metadata.namespace]

    def _page(
        self,
        vpa: VerticalPodAutoscaler,
        claim: VpaClaim | None,
        control: ControlSnapshot,
        ours: Sequence[tuple[Pod, PodExplanation]],
        *,
        shows_scopes: bool,
    ) -> VerticalPage:
        controlled = [pod for pod, explanation in ours if explanation.controlled_by == vpa.key]
        return VerticalPage(
            row=_row(vpa, claim if shows_scopes else None),
            level=claim.level if claim is not None else 0,
            amounts=tuple(self._amounts(vpa, controlled)),
            pods=tuple(
                _sized_pod(explanation, vpa.key, shows_scopes=shows_scopes)
                for _, explanation in ours[:MAX_PODS]
            ),
            pods_total=len(ours),
            requests=requests_yaml(_container_recommendations(vpa)),
            cuts=self._cuts(claim, self._pods_beside(vpa), control),
            conditions=view_conditions(vpa.status.conditions),
        )

    def _explain(self, pod: Pod, control: ControlSnapshot) -> PodExplanation:
        last_update = self.updater.verdict(pod.metadata.key) if self.updater is not None else None
        return explain_pod(
            pod,
            control.index,
            control.owners,
            control.nodes,
            SizingRules(rules=self.view.rules, server=self.view.server_rules),
            last_update,
        )

    def _cuts(self, claim: VpaClaim | None, pods: Iterable[Pod], control: ControlSnapshot) -> tuple[str, ...]:
        recommendation = self.recommender.recommendation(claim.key) if self.recommender and claim else None
        if claim is None or recommendation is None:
            return ()
        return explain_vpa(
            claim, pods, control.index, control.owners, control.nodes, cuts=recommendation.cuts
        ).cuts

    def _amounts(self, vpa: VerticalPodAutoscaler, pods: Sequence[Pod]) -> Iterable[AmountView]:
        for entry in _container_recommendations(vpa):
            for resource in (CPU, MEMORY):
                if resource in entry.target:
                    yield self._amount(vpa.key, entry, resource, pods)

    def _amount(
        self, vpa: str, entry: RecommendedContainerResources, resource: str, pods: Sequence[Pod]
    ) -> AmountView:
        state = self.recommender.model_of(vpa) if self.recommender is not None else None
        vpa_state = state.vpas.get(vpa) if state is not None else None
        lower, target, upper = (
            amounts.get(resource) for amounts in (entry.lower_bound, entry.target, entry.upper_bound)
        )
        upper_text = _text(resource, upper)
        container = entry.container_name
        derivations = self._derivations(vpa, container, resource)
        if "upper_bound" in derivations and not derivations["upper_bound"].is_confident:
            # The bound is too wide to be of use: 1,330 cores after 2 samples.
            upper, upper_text = None, f"no bound yet: {derivations['upper_bound'].sample_text}"
        return AmountView(
            container=container,
            resource=resource,
            unit="cores" if resource == CPU else "bytes",
            lower=_number(lower),
            target=_number(target),
            upper=_number(upper),
            uncapped=_number(entry.uncapped_target.get(resource)),
            lower_text=_text(resource, lower),
            target_text=_text(resource, target),
            upper_text=upper_text,
            samples=count_samples(vpa_state, container) if vpa_state is not None else 0,
            histogram=usage_bars(state.table, vpa_state, container, resource) if state and vpa_state else (),
            requests=tuple(_requests(pods, container, resource)),
            reasons=tuple(
                f"{bound.replace('_', ' ')}: {derivation}" for bound, derivation in derivations.items()
            ),
        )

    def _derivations(self, vpa: str, container: str, resource: str) -> dict[Bound, Derivation]:
        recommendation = self.recommender.recommendation(vpa) if self.recommender is not None else None
        return {
            bound: amounts[resource]
            for recommended in (recommendation.containers if recommendation is not None else ())
            if recommended.name == container
            for bound, amounts in recommended.derivations.items()
            if resource in amounts
        }


@dataclass(frozen=True)
class _UpdaterWithPreview:
    updater: UpdaterView | None
    preview: Mapping[str, PodUpdateResult]

    def verdict(self, pod: str) -> PodUpdateResult | None:
        last = self.updater.verdict(pod) if self.updater is not None else None
        return last or self.preview.get(pod)


def _requests(pods: Iterable[Pod], container: str, resource: str) -> Iterable[tuple[str, float]]:
    for pod in pods:
        requests, _ = requests_and_limits(pod, container)
        if resource in requests:
            yield pod.metadata.name, requests[resource].as_float()


def _concerns(explained: PodExplanation, key: str) -> bool:
    return (
        explained.controlled_by == key
        or key in explained.teaches
        or any(rival.vpa == key for rival in explained.lost)
    )


def _sized_pod(explained: PodExplanation, key: str, *, shows_scopes: bool) -> SizedPod:
    reasons = {rival.vpa: rival.reason for rival in explained.lost}
    reason = explained.reason if explained.controlled_by == key else reasons.get(key, explained.reason)
    return SizedPod(
        name=explained.pod.partition("/")[2],
        controlled_by=explained.controlled_by or "",
        reason=reason if shows_scopes else "",  # a reason names selectors of scopes
        is_ours=explained.controlled_by == key,
        teaches=explained.teaches,
        sizes=tuple(
            f"{container.name}: {_sizes(container.requests)} → {_sizes(container.wanted_requests)}"
            for container in explained.containers
        ),
        update=explained.update,
    )


def _sizes(amounts: ResourceList) -> str:
    return ", ".join(f"{name} {_text(name, amounts[name])}" for name in sorted(amounts)) or "nothing"


def _text(resource: str, amount: Quantity | None) -> str:
    return readable_amount(resource, amount.milli_value()) if amount is not None else ""


def _number(amount: Quantity | None) -> float | None:
    return amount.as_float() if amount is not None else None


def _container_recommendations(vpa: VerticalPodAutoscaler) -> tuple[RecommendedContainerResources, ...]:
    recommendation = vpa.status.recommendation
    return tuple(recommendation.container_recommendations) if recommendation else ()


def _id_of(vpa: VerticalPodAutoscaler) -> str:
    return f"{'native-vpa' if vpa.is_native else 'vpa'}/{vpa.key}"


def _row(vpa: VerticalPodAutoscaler, claim: VpaClaim | None = None) -> VerticalRow:
    target, policy = vpa.spec.target_ref, vpa.spec.update_policy
    entries = _container_recommendations(vpa)
    state, summary = _state(vpa)
    scope_name = f"scope {vpa.scope_names[0]}" if vpa.scope_names else "the whole target"
    return VerticalRow(
        id=_id_of(vpa),
        namespace=vpa.metadata.namespace,
        name=vpa.metadata.name,
        target=f"{target.kind}/{target.name}" if target is not None else "",
        mode=(policy.update_mode if policy else None) or "Recreate",
        scope=describe_scope(claim.scope) if claim is not None else scope_name,
        state=state,
        summary=summary,
        amounts="; ".join(f"{entry.container_name}: {_sizes(entry.target)}" for entry in entries),
    )


_HEALTHY = (VPAConditionType.RECOMMENDATION_PROVIDED, VPAConditionType.COMPUTED_FOR)
"""Conditions that are no problem while they are true."""


def _state(vpa: VerticalPodAutoscaler) -> tuple[str, str]:
    problem = next(
        (
            condition
            for condition in vpa.status.conditions
            if condition.type not in _HEALTHY and condition.status == "True"
        ),
        None,
    )
    if problem is not None:
        return State.PROBLEM, problem.message or problem.type
    if _container_recommendations(vpa):
        return State.STEADY, "recommends what its pods were seen to need"
    return State.WAITING, "no recommendation yet"
