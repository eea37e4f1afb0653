"""The pods of the watched namespaces by the selectors of HPAs, and the HPAs that conflict over them."""

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.cluster.cache.store import Delta
from trimtab.decide.horizontal.observation.owners import ConflictingHpa, Target
from trimtab.decide.horizontal.observation.pods import PodSnapshot
from trimtab.decide.horizontal.selection.selection import count_extra_pods, effective_strategy, expected_pods
from trimtab.decide.horizontal.status.ignored_fields import must_not_scale
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import SelectionStrategy
from trimtab.model.labels.index import SelectorIndex
from trimtab.model.labels.selector import Selector, SelectorError
from trimtab.operator.horizontal.hpa_cache import HpaCache
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.nodes import FilterNeeds
from trimtab.operator.horizontal.targets import ResolvedTarget
from trimtab.operator.pods.decoder import CachedPod


class PodIndex:
    """Snapshots of all pods, and which HPA's selector matches which pods.

    Pods and HPAs are keyed by uid: a pod that was recreated under the same name is another pod.
    """

    def __init__(self) -> None:
        self._snapshots: dict[str, PodSnapshot] = {}
        self._index: SelectorIndex[str, str] = SelectorIndex()
        self._selectors: dict[str, str] = {}
        self._namespaces: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        """The number of the last change, by namespace, as long as it has pods or selectors."""
        self._changes = 0

    def __len__(self) -> int:
        return len(self._snapshots)

    def on_pod_event(self, delta: Delta[CachedPod]) -> None:
        """Apply an event of the pod cache."""
        if delta.new is not None:
            snapshot = delta.new.facts
            self._snapshots[snapshot.uid] = snapshot
            self._index.set_pod(snapshot.uid, delta.new.namespace, snapshot.labels)
            self._bump(delta.new.namespace)
        elif delta.old is not None:
            self._snapshots.pop(delta.old.uid, None)
            self._index.remove_pod(delta.old.uid)
            self._bump(delta.old.namespace)

    def version(self, namespace: str) -> int:
        """Return a number that is another one after every change of the namespace's pods and selectors."""
        return self._versions.get(namespace, 0)

    def _bump(self, namespace: str) -> None:
        # All namespaces share the count, so that a namespace that comes back does not repeat a number.
        self._changes += 1
        if self._index.has_namespace(namespace):
            self._versions[namespace] = self._changes
        else:
            self._versions.pop(namespace, None)

    def set_selector(self, hpa_uid: str, namespace: str, selector: str) -> None:
        """Index the selector of an HPA, unless it is empty or invalid."""
        if self._selectors.get(hpa_uid) == selector:
            return
        try:
            parsed = Selector.parse(selector)
        except SelectorError:
            parsed = Selector()
        # An empty selector would match every pod, and its HPA would conflict with all HPAs of the namespace.
        if parsed.is_empty:
            self.remove_selector(hpa_uid)
        else:
            self._index.set_selector(hpa_uid, namespace, parsed)
            self._selectors[hpa_uid] = selector
            self._namespaces[hpa_uid] = namespace
            self._bump(namespace)

    def remove_selector(self, hpa_uid: str) -> None:
        """Drop the selector of an HPA."""
        if self._selectors.pop(hpa_uid, None) is not None:
            self._index.remove_selector(hpa_uid)
            self._bump(self._namespaces.pop(hpa_uid))

    def selector_of(self, hpa_uid: str) -> str:
        """Return the indexed selector of an HPA."""
        return self._selectors[hpa_uid]

    def matching(self, hpa_uid: str) -> tuple[PodSnapshot, ...]:
        """Return the pods that an HPA's selector matches, sorted by name."""
        if hpa_uid not in self._selectors:
            return ()
        pods = [self._snapshots[uid] for uid in self._index.pods_of(hpa_uid)]
        pods.sort(key=_name)
        return tuple(pods)

    def also_matched_by(self, hpa_uid: str, pods: Iterable[PodSnapshot]) -> set[str]:
        """Return the uids of other HPAs whose selectors match any of these pods."""
        uids: set[str] = set()
        for pod in pods:
            uids.update(self._index.selectors_of(pod.uid))
        uids.discard(hpa_uid)
        return uids


def _name(pod: PodSnapshot) -> str:
    return pod.name


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
