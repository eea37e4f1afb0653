"""Recommends, and builds the VPA statuses that differ from the stored ones."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from trimtab.decide.vertical.cluster_state.vpa import VPAState
from trimtab.decide.vertical.recommend.minor_changes import is_minor_change
from trimtab.decide.vertical.recommend.recommender import VPARecommendation, recommend_vpas
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.refused_replacements import refusals_by_vpa
from trimtab.model import times
from trimtab.model.labels.selector import NOTHING
from trimtab.model.vpa.types import (
    UpdateMode,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerStatus,
    VPAConditionType,
)
from trimtab.operator.settings.settings import NamespaceRules
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot
from trimtab.operator.vertical.estimation import Estimation
from trimtab.operator.vertical.metrics import RecommenderMetrics
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.recommender.feeder import LoadResult, UnsupportedConfig

UNSUPPORTED = VPAConditionType.CONFIG_UNSUPPORTED
FETCHING_MESSAGE = "Usage of the past is being read from Prometheus"


@dataclass(frozen=True)
class StatusChange:
    """A VPA and its new status."""

    vpa: VerticalPodAutoscaler
    status: VerticalPodAutoscalerStatus


class StatusBuilder:
    """Builds the statuses of one step, and keeps its recommendations."""

    def __init__(
        self,
        view: ClusterView,
        states: ShardedClusterStates,
        namespaces: NamespaceRules,
        estimation: Estimation,
        metrics: RecommenderMetrics,
        *,
        is_dry_run: bool,
    ) -> None:
        self._view = view
        self._states = states
        self._namespaces = namespaces
        self._estimation = estimation
        self._metrics = metrics
        self._is_dry_run = is_dry_run
        self.recommendations: Mapping[str, VPARecommendation] = {}
        """The recommendations of the last step, by `namespace/name` of the VPA."""

    def build(self, control: ControlSnapshot, loaded: LoadResult, now_ns: int) -> list[StatusChange]:
        """Recommend for all usable VPAs and return the statuses that changed."""
        recommendations: dict[str, VPARecommendation] = {}
        changes: list[StatusChange | None] = []
        post = self._estimation.post_processing_for(self._view)
        refused = self._refused_replacements(control)
        usable = [str(name) for name in loaded.usable]
        for state in self._states:
            vpas = [state.vpas[key] for key in usable if key in state.vpas]
            for recommended in recommend_vpas(
                state, vpas, self._estimation.settings, post, now_ns, self._estimation.estimators
            ):
                recommendations[recommended.vpa] = recommended
                vpa = state.vpas[recommended.vpa]
                changes.append(self._change(vpa, refused.get(recommended.vpa, ""), now_ns))
        self.recommendations = recommendations
        for targeted in control.vpas:
            if (reason := loaded.unusable.get(targeted.name)) is not None:
                changes.append(unsupported_change(targeted.vpa, reason, now_ns))
            elif (refusal := loaded.waiting.get(targeted.name)) is not None:
                changes.append(waiting_change(targeted.vpa, now_ns, refusal))
        return [change for change in changes if change is not None]

    def _refused_replacements(self, control: ControlSnapshot) -> dict[str, str]:
        """Return why pods stay, by VPA, as the updater noted on the pods. Upstream has no such condition."""
        if not self._view.rules.ours:
            return {}
        return refusals_by_vpa(self._view.pods, control.index, control.owners, control.nodes)

    def _change(self, vpa: VPAState, refused: str, now_ns: int) -> StatusChange | None:
        change = change_of(vpa, self._view.rules, self._excluded(vpa), now_ns, refused=refused)
        created = vpa.vpa.metadata.creation_timestamp
        is_first = vpa.vpa.status.recommendation is None and vpa.has_recommendation
        if change is not None and is_first and created is not None and not self._is_dry_run:
            self._metrics.latency.observe(max((now_ns - times.to_ns(created)) / times.SECOND_NS, 0.0))
        return change

    def _excluded(self, vpa: VPAState) -> UnsupportedConfig | None:
        namespace = vpa.vpa.metadata.namespace
        if vpa.update_mode == UpdateMode.OFF or namespace not in self._namespaces.unchanged:
            return None
        return excluded_namespace(vpa.vpa, self._namespaces.own)


def change_of(
    state: VPAState,
    rules: Rules = Rules.TRIMTAB,
    excluded: UnsupportedConfig | None = None,
    now_ns: int = 0,
    *,
    refused: str = "",
) -> StatusChange | None:
    """Return the status of a VPA with a recommendation, or None if the stored status is close enough.

    `excluded` is why the recommendation changes no pods, `refused` why pods stay whose replacements would be refused.
    """
    state.set_obstacle(VPAConditionType.REPLACEMENT_REFUSED, refused, now_ns)
    for kind in (VPAConditionType.CONFIG_DEPRECATED, VPAConditionType.FETCHING_HISTORY):
        state.conditions.pop(kind, None)
    if excluded is None:
        state.conditions.pop(UNSUPPORTED, None)
    else:
        stored_condition = state.vpa.status.condition(UNSUPPORTED)
        if stored_condition is not None:  # restored for its transition time: recommending removed it
            state.conditions[UNSUPPORTED] = stored_condition
        state.set_condition(UNSUPPORTED, True, excluded.reason, excluded.message, now_ns)
    status, stored = state.status(), state.vpa.status
    if status == stored or (rules.ours and is_minor_change(stored, status)):
        return None
    return StatusChange(state.vpa, status)


def excluded_namespace(vpa: VerticalPodAutoscaler, own_namespace: str) -> UnsupportedConfig:
    """Return why a VPA in kube-system, or in Trimtab's own namespace, changes no pods."""
    namespace = vpa.metadata.namespace
    hint = "" if namespace == own_namespace else "; start Trimtab with --include-kube-system to change them"
    return UnsupportedConfig(
        "NamespaceExcluded",
        f"VPA {vpa.key} recommends only: Trimtab changes no pods in namespace {namespace}{hint}",
    )


def unsupported_change(
    vpa: VerticalPodAutoscaler, reason: UnsupportedConfig, now_ns: int
) -> StatusChange | None:
    """Return the status of an unsupported VPA: the reason, and the last recommendation."""
    state = VPAState(vpa, NOTHING)
    state.update(vpa, per_vpa=False)
    state.set_condition(UNSUPPORTED, True, reason.reason, reason.message, now_ns)
    state.conditions.pop(VPAConditionType.REPLACEMENT_REFUSED, None)
    return _with_stored_recommendation(state)


def waiting_change(vpa: VerticalPodAutoscaler, now_ns: int, refusal: str = "") -> StatusChange | None:
    """Return the status of a VPA whose history is being read, or may not be read."""
    message = f"Checkpoints cannot be read: {refusal}" if refusal else FETCHING_MESSAGE
    state = VPAState(vpa, NOTHING)
    state.update(vpa, per_vpa=False)
    state.set_condition(VPAConditionType.FETCHING_HISTORY, True, "", message, now_ns)
    return _with_stored_recommendation(state)


def _with_stored_recommendation(state: VPAState) -> StatusChange | None:
    stored = state.vpa.status
    status = msgspec.structs.replace(state.status(), recommendation=stored.recommendation)
    return StatusChange(state.vpa, status) if status != stored else None
