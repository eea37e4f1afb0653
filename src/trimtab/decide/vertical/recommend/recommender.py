"""Recommends for many VPAs in one pass: merge, estimate, post-process, set conditions."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from trimtab.decide.vertical.cluster_state.aggregates import controlled_resources
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.profiles import Profile, merged_rows, profiles_of
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.recommend.estimators import BOUNDS
from trimtab.decide.vertical.recommend.plugin_estimates import (
    NO_ESTIMATORS,
    Estimators,
    PluginAnswers,
    ask_estimators,
)
from trimtab.decide.vertical.recommend.quantities import round_to_whole_cores
from trimtab.decide.vertical.recommend.recommendation import (
    ContainerRecommendation,
    ContainerToRecommend,
    RecommenderSettings,
    pod_resources,
    recommend_rows,
)
from trimtab.decide.vertical.resources.capping import Cut, cap_by_policy, cap_to_nodes, total_target
from trimtab.decide.vertical.resources.container_resources import is_off, policy_for
from trimtab.decide.vertical.resources.node_fit import NodeRoom, no_room
from trimtab.model.core.pod import ResourceList
from trimtab.model.vpa.types import (
    RecommendedContainerResources,
    RecommendedPodResources,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerStatus,
    VPAConditionType,
)
from trimtab.plugins.guard import PluginFailure


@dataclass(frozen=True)
class PostProcessing:
    """Settings of the steps between estimate and status."""

    whole_cores: bool = True
    """Round CPU up to whole cores where an annotation of the VPA says so."""
    global_max: ResourceList = field(default_factory=dict)
    """The maximum of any container whose policy has none."""
    rooms: tuple[NodeRoom, ...] = ()
    """The nodes of the cluster without their pods. Condition NoNodeFits reports a recommendation that no node fits."""
    caps_to_nodes: bool = False
    """Cap a recommendation that no node fits to the node that comes nearest."""


@dataclass(frozen=True)
class VPARecommendation:
    """The next status of a VPA, and its derivation."""

    vpa: str
    status: VerticalPodAutoscalerStatus
    is_changed: bool
    """Whether the status differs from that of the cached object."""
    containers: tuple[ContainerRecommendation, ...]
    cuts: tuple[Cut, ...] = ()


def recommend_vpas(
    state: ClusterState,
    vpas: Iterable[VPAState],
    settings: RecommenderSettings,
    post: PostProcessing,
    now_ns: int,
    estimators: Estimators = NO_ESTIMATORS,
) -> tuple[VPARecommendation, ...]:
    """Recommend for VPAs and store the recommendations in the cluster state.

    A VPA that names one of the `estimators` gets its amounts. If it fails, the last recommendation stays.
    """
    containers: dict[str, list[ContainerRecommendation]] = {vpa.key: [] for vpa in vpas}
    # Containers in mode Off are merged too, because merging moves reference times and upstream merges them.
    profiles = [profile for key in containers for profile in profiles_of(state.vpas[key])]
    with merged_rows(state.table, profiles) as rows:
        scaled = [
            (profile, row)
            for profile, row, has_samples in zip(
                profiles, rows.tolist(), _have_samples(state, rows), strict=True
            )
            if has_samples and _is_scaled(state, profile)
        ]
        batch = recommend_rows(state.table, _to_recommend(state, scaled, settings), settings)
        answers = ask_estimators(state, scaled, batch, estimators, now_ns) if estimators else PluginAnswers()
    for index, ((profile, _), recommendation) in enumerate(zip(scaled, batch, strict=True)):
        containers[profile.vpa].append(answers.recommendations.get(index, recommendation))
    return tuple(
        _store_recommendation(
            state.vpas[key], tuple(recommended), settings, post, now_ns, answers.failures.get(key)
        )
        for key, recommended in containers.items()
    )


def _have_samples(state: ClusterState, rows: Ints) -> list[bool]:
    """Return which histories have a sample of any resource. Upstream recommends without one, too."""
    has_any = np.full(len(rows), True)
    if state.rules.ours:
        without_cpu = state.table.count[rows] == 0
        has_any[without_cpu] = state.table.memory.counted(rows[without_cpu]).any(axis=0)
    listed: list[bool] = has_any.tolist()
    return listed


def _is_scaled(state: ClusterState, profile: Profile) -> bool:
    return not is_off(profile.container, state.vpas[profile.vpa].vpa.spec.resource_policy)


def _to_recommend(
    state: ClusterState, scaled: list[tuple[Profile, int]], settings: RecommenderSettings
) -> list[ContainerToRecommend]:
    counts = Counter(profile.vpa for profile, _ in scaled)
    floors = {count: settings.floors(count) for count in set(counts.values())}
    containers = []
    for profile, row in scaled:
        policy = policy_for(profile.container, state.vpas[profile.vpa].vpa.spec.resource_policy)
        containers.append(
            ContainerToRecommend(
                row,
                profile.container,
                floors[counts[profile.vpa]],
                policy,
                controlled_resources(policy),
                needs_samples=state.rules.ours,
            )
        )
    return containers


def _store_recommendation(
    vpa: VPAState,
    containers: tuple[ContainerRecommendation, ...],
    settings: RecommenderSettings,
    post: PostProcessing,
    now_ns: int,
    failure: PluginFailure | None = None,
) -> VPARecommendation:
    cuts: tuple[Cut, ...] = ()
    vpa.set_obstacle(VPAConditionType.ESTIMATOR_FAILED, failure.message if failure else "", now_ns)
    if vpa.unsupported is not None:
        vpa.mark_unsupported(vpa.unsupported, now_ns)
        containers = ()
    elif failure is not None:
        vpa.recommend(vpa.recommendation or RecommendedPodResources(), now_ns, is_computed=False)
        containers = ()
    else:
        processed = _post_process(vpa.vpa, join(vpa, pod_resources(containers, settings.rounding)), post)
        cuts = processed.cuts
        vpa.recommend(processed.recommendation, now_ns)
        vpa.set_obstacle(VPAConditionType.NO_NODE_FITS, processed.no_node_fits, now_ns)
    status = vpa.status()
    return VPARecommendation(vpa.key, status, status != vpa.vpa.status, containers, cuts)


def join(vpa: VPAState, computed: RecommendedPodResources) -> RecommendedPodResources:
    """Return the computed amounts, and the stored ones of resources without a sample where those can be trusted.

    A container stays while a pod has it. Without pods there is nobody to ask, so all stay.
    """
    kept = kept_entries(vpa)
    if not kept:
        return computed
    entries = {entry.container_name: entry for entry in computed.container_recommendations}
    names = {key.container for key in vpa.aggregates} | {*vpa.initial}
    for name, stored in kept.items():
        policy = policy_for(name, vpa.vpa.spec.resource_policy)
        if is_off(name, vpa.vpa.spec.resource_policy) or (vpa.pod_count > 0 and name not in names):
            continue
        entry = entries.get(name, RecommendedContainerResources(container_name=name))
        bounds = {
            bound: {
                **{
                    resource: getattr(stored, bound)[resource]
                    for resource in controlled_resources(policy)
                    if resource in getattr(stored, bound)
                },
                **getattr(entry, bound),
            }
            for bound in (*BOUNDS, "uncapped_target")
        }
        if bounds["target"]:
            entries[name] = msgspec.structs.replace(entry, **bounds)
    return RecommendedPodResources(container_recommendations=tuple(entries[name] for name in sorted(entries)))


def kept_entries(vpa: VPAState) -> dict[str, RecommendedContainerResources]:
    """Return the stored amounts of a VPA, before its policy cut them, if they are for its present pods."""
    if not vpa.keeps_amounts or vpa.recommendation is None:
        return {}
    return {
        entry.container_name: msgspec.structs.replace(entry, target={**entry.target, **entry.uncapped_target})
        for entry in vpa.recommendation.container_recommendations
    }


class _Processed(NamedTuple):
    recommendation: RecommendedPodResources
    cuts: tuple[Cut, ...]
    no_node_fits: str
    """The message of condition NoNodeFits, empty if a node fits."""


def _post_process(
    vpa: VerticalPodAutoscaler, recommendation: RecommendedPodResources, post: PostProcessing
) -> _Processed:
    cuts: tuple[Cut, ...] = ()
    if post.whole_cores and vpa.metadata.annotations:
        recommendation = round_to_whole_cores(vpa, recommendation)
    if vpa.spec.resource_policy is not None or post.global_max:
        capped = cap_by_policy(recommendation, vpa.spec.resource_policy, post.global_max)
        recommendation, cuts = capped.recommendation or recommendation, capped.cuts
    unplaceable = no_room(total_target(recommendation), post.rooms)
    if unplaceable is None:
        return _Processed(recommendation, cuts, "")
    if not post.caps_to_nodes:
        return _Processed(recommendation, cuts, unplaceable.message)
    fitted = cap_to_nodes(recommendation, unplaceable.largest)
    return _Processed(fitted.recommendation or recommendation, (*cuts, *fitted.cuts), "")
