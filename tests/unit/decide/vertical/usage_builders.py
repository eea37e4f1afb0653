"""A recommender over the small workload of `policy_builders`: pods come, play roles, use CPU and memory."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from tests.unit.decide.vertical.policy_builders import ALL_GATES, index, observed, pod
from tests.unit.decide.vertical.samples import UsageBatch, add_usage
from trimtab.decide.vertical.cluster_state.aggregates import Aggregate
from trimtab.decide.vertical.cluster_state.cluster import ClusterState, ContainerId, PodId
from trimtab.decide.vertical.cluster_state.profiles import merged_rows, profiles_of
from trimtab.decide.vertical.control.attribution import attribution_of
from trimtab.decide.vertical.control.claims import Trust
from trimtab.decide.vertical.control.control import control_of
from trimtab.decide.vertical.input.usage import Capacity, IntakeReport
from trimtab.decide.vertical.recommend.plugin_estimates import NO_ESTIMATORS, Estimators, collect_samples
from trimtab.decide.vertical.recommend.recommendation import (
    ContainerRecommendation,
    ContainerToRecommend,
    RecommenderSettings,
    recommend_rows,
)
from trimtab.decide.vertical.recommend.recommender import (
    PostProcessing,
    VPARecommendation,
    recommend_vpas,
)
from trimtab.decide.vertical.rules import Rules
from trimtab.model.labels.selector import Selector
from trimtab.model.times import SECOND_NS, parse_ns

START_NS = parse_ns("2026-01-15T12:00:00Z")
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS
SHARES = (0.5, 0.9, 0.95)


@dataclass(frozen=True)
class Load:
    """What one pod uses."""

    millicores: int
    memory: int


class Recommender:
    """The model, fed one scrape after another; `vpas` and `scopes` as an operator would know them."""

    def __init__(self, vpas, scopes=(), *, rules: Rules = Rules.TRIMTAB, gates=ALL_GATES, nodes=None) -> None:
        self.vpas, self.scopes, self.rules, self.gates = tuple(vpas), tuple(scopes), rules, gates
        self.nodes = nodes or {}
        self.state = ClusterState(rules=rules, per_vpa_config=True, block_columns=64)
        self.settings = RecommenderSettings()
        for one in self.vpas:
            self.state.add_or_update_vpa(one, Selector.parse("app=db"))
        self.now_ns = START_NS
        self.estimators: Estimators = NO_ESTIMATORS

    def observe(self, pods) -> None:
        """Take over the pods as they are now."""
        seen = observed(self.vpas, pods, self.scopes, nodes=self.nodes)
        vpas = index(seen, self.gates, self.rules)
        for claim in (claim for claims in vpas.by_target.values() for claim in claims if self.rules.ours):
            state = self.state.vpas[claim.key]
            state.computed_for = claim.computed_for, claim.described
            state.keeps_amounts = claim.trust is Trust.ALL
        for one in pods:
            pod_id = PodId(one.metadata.namespace, one.name)
            attribution = attribution_of(control_of(one, vpas, seen.owners(), seen.nodes))
            self.state.add_or_update_pod(
                pod_id, one.metadata.labels, one.status.phase, self.now_ns, attribution
            )
            self.state.add_or_update_container(ContainerId(pod_id, "app"), 100, 2**30, self.now_ns)

    def scrape(
        self, loads: dict[str, Load], *, minutes: int = 1, capacity: Capacity | None = None
    ) -> tuple[IntakeReport, IntakeReport]:
        """Add one sample per pod, some minutes after the last."""
        self.now_ns += minutes * MINUTE_NS
        names = [ContainerId(PodId("shop", name), "app") for name in loads]
        moments = [self.now_ns] * len(names)
        cpu = UsageBatch(names, [load.millicores for load in loads.values()], moments)
        memory = UsageBatch(names, [load.memory for load in loads.values()], moments)
        if capacity is not None:
            cpu = replace(cpu, capacities=[capacity.millicores] * len(names))
            memory = replace(memory, capacities=[capacity.memory_bytes] * len(names))
        intake = (
            add_usage(self.state, "cpu", cpu, self.now_ns),
            add_usage(self.state, "memory", memory, self.now_ns),
        )
        for resource, report in zip(("cpu", "memory"), intake, strict=True):
            collect_samples(self.state, self.estimators, resource, report.usage)
        return intake

    def restarted(self, **more) -> "Recommender":
        """Return a recommender that starts with the stored statuses and without any history."""
        made = self.recommend()
        vpas = [msgspec.structs.replace(one, status=made[one.metadata.name].status) for one in self.vpas]
        other = Recommender(vpas, **{"scopes": self.scopes, "rules": self.rules, **more})
        other.now_ns = self.now_ns
        return other

    def recommend(self) -> dict[str, VPARecommendation]:
        """Recommend for every VPA, by name."""
        vpas = [self.state.vpas[key] for key in sorted(self.state.vpas)]
        found = recommend_vpas(
            self.state, vpas, self.settings, PostProcessing(), self.now_ns, self.estimators
        )
        return {recommendation.vpa.removeprefix("shop/"): recommendation for recommendation in found}

    def targets(self, resource="memory") -> dict[str, int | None]:
        """Return the target of each VPA, None where there is no recommendation."""
        return {
            name: found.containers[0].amounts["target"][resource] if found.containers else None
            for name, found in self.recommend().items()
        }

    def buckets(self, vpa: str) -> list[int]:
        """Return the buckets that a VPA's CPU and memory percentiles lie in."""
        (profile,) = profiles_of(self.state.vpas[f"shop/{vpa}"])
        table = self.state.table
        with merged_rows(table, [profile]) as rows:
            found = [matrix.percentiles(SHARES, rows)[:, 0].tolist() for matrix in (table.cpu, table.memory)]
        return [*found[0], *found[1]]


def member(name: str, role: str | None = None, **more):
    """Make a pod of the StatefulSet, with the label that the StatefulSet controller gives it."""
    labels = {"statefulset.kubernetes.io/pod-name": name}
    return pod(name, labels if role is None else {**labels, "role": role}, **more)


def recommend_containers(
    profiles: Mapping[str, Aggregate], settings: RecommenderSettings
) -> tuple[ContainerRecommendation, ...]:
    """Recommend for the containers of a VPA, sorted by name, which share the pod's minimum."""
    names = sorted(profiles)
    if not names:
        return ()
    floor = settings.floors(len(names))
    containers = [
        ContainerToRecommend(
            profiles[name].row, name, floor, profiles[name].policy, profiles[name].controlled_resources
        )
        for name in names
    ]
    return tuple(recommend_rows(profiles[names[0]].table, containers, settings))
