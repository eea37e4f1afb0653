"""Shows the VPAs of a running operator: what the recommender learned, who controls which pod, and what comes next."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from trimtab.dashboard.pages import decision
from trimtab.dashboard.pages.histograms import bars_of, samples_of
from trimtab.dashboard.pages.views import (
    AmountView,
    EventView,
    SizedPod,
    VerticalPage,
    VerticalRow,
)
from trimtab.dashboard.sources.horizontal import conditions_of
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.control.control import VpaClaim
from trimtab.decide.vertical.explain import PodExplanation, describe_scope, explain_pod, explain_vpa
from trimtab.decide.vertical.recommend.estimators import Bound
from trimtab.decide.vertical.recommend.recommendation import Derivation
from trimtab.decide.vertical.recommend.recommender import VPARecommendation
from trimtab.decide.vertical.resources.container_resources import requests_and_limits
from trimtab.decide.vertical.update.actions import PodUpdateResult
from trimtab.model.core.pod import CPU, MEMORY, Pod, ResourceList
from trimtab.model.quantity import Quantity
from trimtab.model.readable import readable_amount
from trimtab.model.vpa.types import RecommendedContainerResources, VerticalPodAutoscaler
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot

MOST_PODS: Final = 300


class RecommenderView(Protocol):
    """What is asked of the recommender."""

    def model_of(self, vpa: str) -> ClusterState | None:
        """Return the model that a VPA is in, by `namespace/name`; None if this recommender does not know it."""
        ...

    def recommendation(self, vpa: str) -> VPARecommendation | None:
        """Return the last recommendation for a VPA."""
        ...


class UpdaterView(Protocol):
    """What is asked of the updater."""

    def verdict(self, pod: str) -> PodUpdateResult | None:
        """Return what the last loop did with a pod."""
        ...


class Elsewhere(Protocol):
    """Finds out what the loops of another process know, from what they left in the cluster."""

    async def learned(self, vpa: str, standings: ControlSnapshot) -> RecommenderView | None:
        """Return what the recommender saved about a VPA."""
        ...

    async def verdicts(self) -> Mapping[str, PodUpdateResult]:
        """Return what the next update loop would do with each pod."""
        ...

    async def events(self, identity: str) -> tuple[EventView, ...]:
        """Return what was told about a VPA, by its id."""
        ...


@dataclass(frozen=True)
class OperatorVertical:
    """The source of VPAs for a dashboard beside an operator; a process may lack the recommender or the updater."""

    view: ClusterView
    recommender: RecommenderView | None = None
    updater: UpdaterView | None = None
    elsewhere: Elsewhere | None = None

    def rows(self) -> Sequence[VerticalRow]:
        """Return every VPA, by id."""
        return sorted((_row(vpa) for vpa in self.view.vpas), key=lambda row: row.id)

    async def page(self, identity: str) -> VerticalPage | None:
        """Return everything about one VPA."""
        _, namespace, name = identity.split("/")
        vpa = self.view.vpas.get(name, namespace)
        if vpa is None:
            return None
        standings = await self.view.control_snapshot()
        claim = standings.claims.get(vpa.key)
        here = await self._with_elsewhere(vpa.key, standings)
        events = await self.elsewhere.events(identity) if self.elsewhere is not None else ()
        return msgspec.structs.replace(here._page(vpa, claim, standings), events=events)

    async def _with_elsewhere(self, vpa: str, standings: ControlSnapshot) -> "OperatorVertical":
        """Return the same source with what other processes know, where the loops of this one know nothing."""
        if self.elsewhere is None:
            return self
        recommender, updater = self.recommender, self.updater
        if recommender is None or recommender.model_of(vpa) is None:
            recommender = await self.elsewhere.learned(vpa, standings)
        updater = _Foreseen(await self.elsewhere.verdicts(), updater)
        return OperatorVertical(self.view, recommender, updater)

    def _page(
        self, vpa: VerticalPodAutoscaler, claim: VpaClaim | None, standings: ControlSnapshot
    ) -> VerticalPage:
        pods = [pod for pod in self.view.pods if pod.metadata.namespace == vpa.metadata.namespace]
        explained = [self._pod(pod, standings) for pod in pods] if claim is not None else []
        # A pod of another workload is of no interest; one of ours that somebody else controls is.
        ours = [(pod, one) for pod, one in zip(pods, explained, strict=False) if _concerns(one, vpa.key)]
        ours.sort(key=lambda pair: (pair[1].controlled_by != vpa.key, pair[1].pod))
        controlled = [pod for pod, one in ours if one.controlled_by == vpa.key]
        return VerticalPage(
            row=_row(vpa, claim),
            level=claim.level if claim is not None else 0,
            amounts=tuple(self._amounts(vpa, controlled)),
            pods=tuple(_sized(one, vpa.key) for _, one in ours[:MOST_PODS]),
            pods_total=len(ours),
            cuts=self._cuts(claim, pods, standings),
            conditions=conditions_of(vpa.status.conditions),
        )

    def _pod(self, pod: Pod, standings: ControlSnapshot) -> PodExplanation:
        verdict = self.updater.verdict(pod.metadata.key) if self.updater is not None else None
        return explain_pod(
            pod,
            standings.index,
            standings.owners,
            standings.nodes,
            last_update=verdict,
            compat=self.view.compat,
        )

    def _cuts(
        self, claim: VpaClaim | None, pods: Iterable[Pod], standings: ControlSnapshot
    ) -> tuple[str, ...]:
        found = self.recommender.recommendation(claim.key) if self.recommender and claim else None
        if claim is None or found is None:
            return ()
        return explain_vpa(
            claim, pods, standings.index, standings.owners, standings.nodes, cuts=found.cuts
        ).cuts

    def _amounts(self, vpa: VerticalPodAutoscaler, pods: Sequence[Pod]) -> Iterable[AmountView]:
        recommended = vpa.status.recommendation
        for entry in recommended.container_recommendations if recommended else ():
            for resource in (CPU, MEMORY):
                if resource in entry.target:
                    yield self._amount(vpa.key, entry, resource, pods)

    def _amount(
        self, vpa: str, entry: RecommendedContainerResources, resource: str, pods: Sequence[Pod]
    ) -> AmountView:
        state = self.recommender.model_of(vpa) if self.recommender is not None else None
        model = state.vpas.get(vpa) if state is not None else None
        bounds = (entry.lower_bound, entry.target, entry.upper_bound, entry.uncapped_target)
        lower, target, upper, uncapped = (
            None if resource not in one else one[resource].as_float() for one in bounds
        )
        texts = [readable(resource, one[resource]) if resource in one else "" for one in bounds]
        container = entry.container_name
        derived = self._derivations(vpa, container, resource)
        if "upper_bound" in derived and not derived["upper_bound"].is_confident:
            # A bound that grows with ignorance is no bound: 1,330 cores after two samples.
            upper, texts[2] = None, f"no bound yet: {derived['upper_bound'].sample_text}"
        return AmountView(
            container=container,
            resource=resource,
            unit="cores" if resource == CPU else "bytes",
            lower=lower,
            target=target,
            upper=upper,
            uncapped=uncapped,
            lower_text=texts[0],
            target_text=texts[1],
            upper_text=texts[2],
            samples=samples_of(model, container) if model is not None else 0,
            histogram=bars_of(state.table, model, container, resource) if state and model else (),
            requests=tuple(_requests(pods, container, resource)),
            reasons=tuple(f"{bound.replace('_', ' ')}: {one}" for bound, one in derived.items()),
        )

    def _derivations(self, vpa: str, container: str, resource: str) -> dict[Bound, Derivation]:
        """Return how each bound of a container came about."""
        found = self.recommender.recommendation(vpa) if self.recommender is not None else None
        return {
            bound: amounts[resource]
            for recommended in (found.containers if found is not None else ())
            if recommended.name == container
            for bound, amounts in recommended.derivations.items()
            if resource in amounts
        }


@dataclass(frozen=True)
class _Foreseen:
    verdicts: Mapping[str, PodUpdateResult]
    updater: UpdaterView | None

    def verdict(self, pod: str) -> PodUpdateResult | None:
        known = self.updater.verdict(pod) if self.updater is not None else None
        return known or self.verdicts.get(pod)


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


def _sized(explained: PodExplanation, key: str) -> SizedPod:
    reasons = {rival.vpa: rival.reason for rival in explained.lost}
    return SizedPod(
        name=explained.pod.partition("/")[2],
        controlled_by=explained.controlled_by or "",
        reason=explained.reason if explained.controlled_by == key else reasons.get(key, explained.reason),
        is_ours=explained.controlled_by == key,
        teaches=explained.teaches,
        sizes=tuple(
            f"{one.name}: {_sizes(one.requests)} → {_sizes(one.wanted_requests)}"
            for one in explained.containers
        ),
        update=explained.update,
    )


def _sizes(amounts: ResourceList) -> str:
    return ", ".join(f"{name} {readable(name, amounts[name])}" for name in sorted(amounts)) or "nothing"


def readable(resource: str, amount: Quantity) -> str:
    """Return an amount as people read it."""
    return readable_amount(resource, amount.milli_value())


def _row(vpa: VerticalPodAutoscaler, claim: VpaClaim | None = None) -> VerticalRow:
    target, policy, scope = vpa.spec.target_ref, vpa.spec.update_policy, vpa.spec.vpa_scope
    trouble = next((one for one in vpa.status.conditions if one.type != "RecommendationProvided"), None)
    recommended = vpa.status.recommendation
    entries = recommended.container_recommendations if recommended else ()
    amounts = "; ".join(f"{one.container_name}: {_sizes(one.target)}" for one in entries)
    state, summary = decision.WAITING, "no recommendation yet"
    if trouble is not None and trouble.status == "True":
        state, summary = decision.PROBLEM, trouble.message or trouble.type
    elif entries:
        state, summary = decision.STEADY, "recommends what its pods were seen to need"
    named = f"scope {scope.name}" if scope is not None else "the whole target"
    return VerticalRow(
        id=f"vpa/{vpa.key}",
        namespace=vpa.metadata.namespace,
        name=vpa.metadata.name,
        target=f"{target.kind}/{target.name}" if target is not None else "",
        mode=(policy.update_mode if policy else None) or "Recreate",
        scope=describe_scope(claim.scope) if claim is not None else named,
        state=state,
        summary=summary,
        amounts=amounts,
    )
