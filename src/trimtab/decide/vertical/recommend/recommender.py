"""Recommendations for every VPA of the model in one pass: merge, estimate, post-process, set conditions."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtab.decide.vertical.cluster_state.aggregates import controlled_resources
from trimtab.decide.vertical.cluster_state.cluster import ClusterState
from trimtab.decide.vertical.cluster_state.profiles import Profile, merged_rows, profiles_of
from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.recommend.quantities import round_to_whole_cores
from trimtab.decide.vertical.recommend.recommendation import (
    ContainerRecommendation,
    ContainerToRecommend,
    RecommenderSettings,
    pod_resources,
    recommend_rows,
)
from trimtab.decide.vertical.resources.capping import (
    Cut,
    cap_by_policy,
    cap_to_nodes,
    total_target,
)
from trimtab.decide.vertical.resources.container_resources import is_off, policy_for
from trimtab.decide.vertical.update.node_fit import NodeRoom, no_room
from trimtab.model.core.pod import ResourceList
from trimtab.model.vpa.types import VerticalPodAutoscalerStatus, VPAConditionType


@dataclass(frozen=True)
class PostProcessing:
    """What happens to a recommendation before it is written."""

    whole_cores: bool = True
    """Round CPU up to whole cores where an annotation of the VPA asks for it."""
    global_max: ResourceList = field(default_factory=dict)
    """The most any container gets where no policy says so."""
    rooms: tuple[NodeRoom, ...] = ()
    """The nodes of the cluster, empty of pods; a recommendation that none could hold is told."""
    caps_to_nodes: bool = False
    """Cut such a recommendation to what the nearest node could hold."""


@dataclass(frozen=True)
class VPARecommendation:
    """What a VPA's status should be, and why."""

    vpa: str
    status: VerticalPodAutoscalerStatus
    is_changed: bool
    """Whether the status differs from that of the object last seen."""
    containers: tuple[ContainerRecommendation, ...]
    cuts: tuple[Cut, ...] = ()


def recommend_all(
    state: ClusterState, settings: RecommenderSettings, post: PostProcessing, now_ns: int
) -> tuple[VPARecommendation, ...]:
    """Recommend for every VPA, by name, and take the recommendations over into the model."""
    return recommend_vpas(state, [state.vpas[key] for key in sorted(state.vpas)], settings, post, now_ns)


def recommend_vpas(
    state: ClusterState,
    vpas: Iterable[VPAState],
    settings: RecommenderSettings,
    post: PostProcessing,
    now_ns: int,
) -> tuple[VPARecommendation, ...]:
    """Recommend for some VPAs and take the recommendations over into the model."""
    found: dict[str, list[ContainerRecommendation]] = {vpa.key: [] for vpa in vpas}
    # Containers that are switched off are merged too: it moves reference times, and upstream's order is kept.
    profiles = [profile for key in found for profile in profiles_of(state.vpas[key])]
    with merged_rows(state.table, profiles) as rows:
        counts = state.table.count[rows].tolist()
        scaled = [
            (profile, row)
            for profile, row, count in zip(profiles, rows.tolist(), counts, strict=True)
            if _is_scaled(state, profile, count)
        ]
        wanted = _wanted(state, scaled, settings)
        batch = recommend_rows(state.table, wanted, settings)
    for (profile, _), recommendation in zip(scaled, batch, strict=True):
        found[profile.vpa].append(recommendation)
    return tuple(
        _finish(state.vpas[key], tuple(containers), settings, post, now_ns)
        for key, containers in found.items()
    )


def _is_scaled(state: ClusterState, profile: Profile, sample_count: int) -> bool:
    """Return whether the container is not switched off, and something is known about it."""
    if is_off(profile.container, state.vpas[profile.vpa].vpa.spec.resource_policy):
        return False
    return sample_count > 0 or not state.compat.recommends_from_samples


def _wanted(
    state: ClusterState, scaled: list[tuple[Profile, int]], settings: RecommenderSettings
) -> list[ContainerToRecommend]:
    together = Counter(profile.vpa for profile, _ in scaled)
    floors = {count: settings.floors(count) for count in set(together.values())}
    wanted = []
    for profile, row in scaled:
        policy = policy_for(profile.container, state.vpas[profile.vpa].vpa.spec.resource_policy)
        wanted.append(
            ContainerToRecommend(
                row, profile.container, floors[together[profile.vpa]], policy, controlled_resources(policy)
            )
        )
    return wanted


def _finish(
    vpa: VPAState,
    containers: tuple[ContainerRecommendation, ...],
    settings: RecommenderSettings,
    post: PostProcessing,
    now_ns: int,
) -> VPARecommendation:
    if vpa.unsupported is not None:
        vpa.mark_unsupported(vpa.unsupported, now_ns)
        return VPARecommendation(vpa.key, vpa.status(), vpa.status() != vpa.vpa.status, ())
    recommendation = pod_resources(containers, settings.rounding)
    if post.whole_cores and vpa.vpa.metadata.annotations:
        recommendation = round_to_whole_cores(vpa.vpa, recommendation)
    cuts: tuple[Cut, ...] = ()
    if vpa.vpa.spec.resource_policy is not None or post.global_max:
        capped = cap_by_policy(recommendation, vpa.vpa.spec.resource_policy, post.global_max)
        recommendation, cuts = capped.recommendation or recommendation, capped.cuts
    unplaceable = no_room(total_target(recommendation), post.rooms)
    if unplaceable is not None and post.caps_to_nodes:
        fitted = cap_to_nodes(recommendation, unplaceable.largest)
        recommendation, cuts, unplaceable = (
            fitted.recommendation or recommendation,
            (*cuts, *fitted.cuts),
            None,
        )
    vpa.recommend(recommendation, now_ns)
    vpa.set_obstacle(VPAConditionType.NO_NODE_FITS, unplaceable.message if unplaceable else "", now_ns)
    status = vpa.status()
    return VPARecommendation(vpa.key, status, status != vpa.vpa.status, containers, cuts)
