"""The pods that match each HPA's selector, and the HPAs that conflict over them."""

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.decide.horizontal.observation.owners import ConflictingHpa, Target
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.selection.selection import (
    count_extra_pods,
    effective_strategy,
    expected_pods,
)
from trimtab.decide.horizontal.status.ignored_fields import must_not_scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.operator.horizontal.inputs.hpa_cache import HpaCache
from trimtab.operator.horizontal.inputs.hpa_state import HpaState
from trimtab.operator.horizontal.inputs.nodes import FilterNeeds
from trimtab.operator.horizontal.inputs.pod_index import PodIndex
from trimtab.operator.horizontal.inputs.targets import ResolvedTarget


@dataclass(frozen=True, slots=True)
class MatchedPods:
    """The pods that match an HPA's selector, and the HPAs that conflict over them."""

    pods: tuple[PodSnapshot, ...]
    conflicting: tuple[ConflictingHpa, ...]


class PodMatcher:
    """Registers the target of each HPA, and matches pods by the target's selector."""

    def __init__(self, gates: FeatureGates, hpas: HpaCache, pods: PodIndex, needs: FilterNeeds) -> None:
        self._gates = gates
        self._needs = needs
        self._hpas = hpas
        self._pods = pods
        self._targets: dict[str, Target] = {}
        self._replicas: dict[str, int] = {}
        self._matched: dict[str, tuple[int, MatchedPods]] = {}

    def register_target(self, hpa_state: HpaState, target: ResolvedTarget) -> None:
        """Register an HPA's target and selector. Call it before computing conflicts."""
        hpa_state.keep_queries(None)
        if hpa_state.is_deleted:
            return  # its target was read while it was deleted
        uid, scale = hpa_state.uid, target.scale
        if scale is None:
            self._pods.remove_selector(uid)
            return
        self._replicas[uid] = expected_pods(scale)
        reference, target_uid = hpa_state.hpa.spec.scale_target_ref, scale.metadata.uid
        known = self._targets.get(uid)
        if (
            known is None
            or known.uid != target_uid
            or known.name != reference.name
            or known.kind != reference.kind
        ):
            self._targets[uid] = Target(
                api_version=reference.api_version, kind=reference.kind, name=reference.name, uid=target_uid
            )
        # The decision reports a selector that is missing or cannot be parsed.
        self._pods.set_selector(uid, hpa_state.hpa.metadata.namespace, scale.status.selector)

    def forget(self, hpa_state: HpaState) -> None:
        """Drop everything that is kept of a deleted HPA."""
        uid = hpa_state.uid
        self._pods.remove_selector(uid)
        self._targets.pop(uid, None)
        self._replicas.pop(uid, None)
        self._matched.pop(uid, None)

    def target_of(self, hpa_state: HpaState) -> Target:
        """Return the registered target of an HPA."""
        return self._targets.get(hpa_state.uid, Target())

    def matching_pods(self, hpa_state: HpaState) -> MatchedPods:
        """Return the pods that match an HPA's selector, and the conflicting HPAs."""
        uid = hpa_state.uid
        version = self._pods.version(hpa_state.hpa.metadata.namespace)
        known = self._matched.get(uid)
        if known is not None and known[0] == version:
            return known[1]
        pods = self._pods.matching(uid)
        others = self._pods.also_matched_by(uid, pods)
        matched = MatchedPods(pods, self._conflicting(hpa_state, others) if others else ())
        if others or hpa_state.is_deleted:
            # The targets of the other HPAs, and whether they are dry runs, may change while the pods do not.
            self._matched.pop(uid, None)
        else:
            self._matched[uid] = version, matched
        return matched

    def owner_targets(self, hpa_state: HpaState, matched: MatchedPods) -> list[Target]:
        """Return the targets whose ownership of the pods the decision has to compute."""
        by_owner = SelectionStrategy.OWNER_REFERENCE
        strategy = self._strategy(hpa_state)
        needs_owners = strategy == by_owner or (
            hpa_state.names_plugins and self._needs.needs_owners(strategy)
        )
        own = [self.target_of(hpa_state)] if needs_owners else []
        if not matched.conflicting:
            return own
        return [hpa.target for hpa in matched.conflicting if hpa.strategy == by_owner] + own

    def has_extra_pods(self, hpa_state: HpaState, matched: MatchedPods) -> bool:
        """Return whether the selector matches more active pods than the target has replicas."""
        replicas = self._replicas.get(hpa_state.uid)
        if replicas is None or len(matched.pods) <= replicas or not self._gates.hpa_selection_strategy:
            return False
        return count_extra_pods(matched.pods, replicas) > 0

    def _strategy(self, hpa_state: HpaState) -> str:
        return effective_strategy(hpa_state.hpa.spec.selection_strategy, self._gates)

    def _conflicting(self, hpa_state: HpaState, uids: Iterable[str]) -> tuple[ConflictingHpa, ...]:
        others = [other for uid in uids if (other := self._hpas.get(uid)) is not None]
        return tuple(
            ConflictingHpa(
                key=other.key,
                selector=self._pods.selector_of(other.uid),
                strategy=self._strategy(other),
                target=self.target_of(other),
            )
            for other in sorted(others, key=lambda other: (other.key, other.uid))
            if self._is_conflict(hpa_state, other)
        )

    def _is_conflict(self, hpa_state: HpaState, other: HpaState) -> bool:
        """Return whether two HPAs that count the same pods must not both scale.

        A dry run, or an HPA with a misspelt annotation, writes no scale, so it conflicts with no other HPA. It
        previews its decision in place of the HPA that scales its target. An HPA of another target stops it.
        """
        if must_not_scale(other.hpa, self._gates):
            return False
        return not must_not_scale(hpa_state.hpa, self._gates) or self._targets.get(
            other.uid
        ) != self._targets.get(hpa_state.uid)
