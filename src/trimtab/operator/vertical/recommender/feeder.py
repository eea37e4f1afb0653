"""Keeps the recommender's models in step with the cluster: VPAs, pods, containers, and who teaches whom."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from trimtab.decide.vertical.cluster_state.cluster import ClusterState, ContainerId, PodId
from trimtab.decide.vertical.control.attribution import Attribution, attribute
from trimtab.decide.vertical.control.control import ScopeConflict, controlling_vpa
from trimtab.decide.vertical.control.controllers import owner_of
from trimtab.decide.vertical.control.scope import Scope
from trimtab.decide.vertical.control.selector_hash import selector_hash
from trimtab.model.core.pod import CPU, MEMORY, Pod
from trimtab.model.labels.requirement import Requirement
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot, Targeted
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.targets import Unsupported

DEFAULT_RECOMMENDER = "default"
FEW_NUMBERS = 1024


@dataclass(frozen=True)
class UnsupportedConfig:
    """Why a VPA can do nothing, for its condition ConfigUnsupported."""

    reason: str
    message: str


@dataclass(frozen=True)
class LoadResult:
    """What came of following the cluster once."""

    usable: tuple[str, ...]
    """VPAs of ours that can be recommended for."""
    unusable: dict[str, UnsupportedConfig]
    """VPAs of ours that cannot, each with the reason."""
    new: tuple[str, ...]
    """VPAs that the model did not know before: their history has to be loaded."""
    conflicts: tuple[ScopeConflict, ...] = ()
    waiting: frozenset[str] = frozenset()
    """VPAs whose history is on its way; they are not usable yet."""

    @property
    def namespaces(self) -> frozenset[str]:
        """Return the namespaces that have VPAs of ours."""
        return frozenset(vpa.partition("/")[0] for vpa in (*self.usable, *self.unusable, *self.waiting))

    def without(self, namespaces: frozenset[str]) -> "LoadResult":
        """Return the same with the usable VPAs of some namespaces waiting."""
        if not namespaces:
            return self
        waiting = frozenset(vpa for vpa in self.usable if vpa.partition("/")[0] in namespaces)
        usable = tuple(vpa for vpa in self.usable if vpa not in waiting)
        return replace(self, usable=usable, waiting=waiting)


@dataclass(slots=True)
class _Kept:
    """A pod as it was last taken over; the same object with the same attribution needs no work."""

    pod: Pod
    alike: int
    """The number that pods share which differ in nothing that control depends on."""
    shares: tuple[int, ...] = ()
    """The shares whose models have the pod."""
    attribution: Attribution | None = None
    seen: int = 0
    """The last loop that saw the pod."""


@dataclass(frozen=True, slots=True)
class _Attributed:
    """Who learns from pods that are alike, and in which of our models they therefore are."""

    attribution: Attribution
    shares: tuple[int, ...]
    conflicts: tuple[ScopeConflict, ...] = ()


class ClusterStateFeeder:
    """Brings the models up to date, once per loop."""

    def __init__(
        self,
        models: ShardedClusterStates,
        recommender_name: str = DEFAULT_RECOMMENDER,
        ignored_namespaces: frozenset[str] = frozenset(),
        *,
        matched_only: bool = False,
    ) -> None:
        self._models = models
        self._name = recommender_name
        self._ignored = ignored_namespaces
        self._matched_only = matched_only
        self._known: dict[int, ClusterState] = {}
        """The models that have been told of all pods."""
        self._pods: dict[PodId, _Kept] = {}
        self._attributed: dict[int, _Attributed] = {}
        self._numbers: dict[object, int] = {}
        self._by_node: frozenset[str] = frozenset()
        """Namespaces in which a scope selects by nodes."""
        self._loop = 0

    def follow(
        self, view: ClusterView, standings: ControlSnapshot, now_ns: int, victims: Iterable[Pod] = ()
    ) -> LoadResult:
        """Take over everything that changed; pods that are gone stay until `forget_gone`.

        `victims` are pods that ran out of memory. One that came and went since the last loop is in no cache any more.
        """
        models = self._models
        ours = [
            one
            for one in standings.vpas
            if one.vpa.metadata.namespace not in self._ignored
            and is_served_by(one.vpa, self._name)
            and models.holds(one.vpa.key)
        ]
        usable, unusable, new = self._follow_vpas(ours, standings)
        conflicts = self._follow_pods(view.pods, standings, now_ns)
        gone = [pod for pod in victims if view.pods.get(pod.metadata.name, pod.metadata.namespace) is None]
        self._follow_pods_gone(gone, standings, now_ns)
        return LoadResult(tuple(usable), unusable, tuple(new), conflicts)

    def _follow_vpas(
        self, ours: list[Targeted], standings: ControlSnapshot
    ) -> tuple[list[str], dict[str, UnsupportedConfig], list[str]]:
        usable: list[str] = []
        unusable: dict[str, UnsupportedConfig] = {}
        new: list[str] = []
        for one in ours:
            key = one.vpa.key
            found = usable_selector(one, standings)
            model = self._models[self._models.share(key)]
            known = model.vpas.get(key)
            if isinstance(found, UnsupportedConfig):
                unusable[key] = found
                if known is not None:
                    # Its history stays linked to the selector it was made under, and waits.
                    model.add_or_update_vpa(one.vpa, known.selector)
                continue
            usable.append(key)
            if known is None:
                new.append(key)
            model.add_or_update_vpa(one.vpa, found)
            if model.compat.needs_current_recommendation:
                model.vpas[key].selector_hash = selector_hash(standings.claims[key])
        present = {one.vpa.key for one in ours}
        for model in self._models.all():
            for key in [key for key in model.vpas if key not in present]:
                model.retire_vpa(key)
        return usable, unusable, new

    def node_of(self, pod: PodId) -> str:
        """Return the name of the node that a pod runs on; empty if it is not known."""
        kept = self._pods.get(pod)
        return kept.pod.spec.node_name if kept else ""

    def shares_of(self, pod: PodId) -> tuple[int, ...]:
        """Return the shares whose models have a pod."""
        kept = self._pods.get(pod)
        return kept.shares if kept else ()

    def _follow_pods(
        self, pods: Iterable[Pod], standings: ControlSnapshot, now_ns: int
    ) -> tuple[ScopeConflict, ...]:
        self._attributed = {}
        self._loop += 1
        conflicts: list[ScopeConflict] = []
        namespaces = {one.vpa.metadata.namespace for one in standings.vpas}
        self._look_at_nodes(standings)
        fresh = frozenset(
            share for share in self._models if self._known.get(share) is not self._models[share]
        )
        for pod in pods:
            if pod.metadata.namespace not in namespaces or pod.status.phase == "Pending":
                continue  # a pending pod uses nothing yet
            key = PodId(pod.metadata.namespace, pod.metadata.name)
            kept = self._keep(key, pod)
            found = self._attribute(pod, kept.alike, standings)
            if found.conflicts:
                conflicts.extend(found.conflicts)
            self._place(key, kept, found, fresh, now_ns)
        self._known = {share: self._models[share] for share in self._models}
        return tuple(conflicts)

    def _follow_pods_gone(self, pods: Iterable[Pod], standings: ControlSnapshot, now_ns: int) -> None:
        namespaces = {one.vpa.metadata.namespace for one in standings.vpas}
        for pod in pods:
            key = PodId(pod.metadata.namespace, pod.metadata.name)
            if pod.metadata.namespace in namespaces and key not in self._pods:
                kept = self._keep(key, pod)
                kept.seen = self._loop - 1  # forgotten with the others
                self._place(key, kept, self._attribute(pod, kept.alike, standings), (), now_ns)

    def forget_gone(self) -> None:
        """Take the pods out that the last `follow` did not see; their kills and last usage are taken in by now."""
        for key, kept in [(key, kept) for key, kept in self._pods.items() if kept.seen != self._loop]:
            del self._pods[key]
            self._take_out(key, kept.shares)
        if len(self._numbers) > 2 * len(self._pods) + FEW_NUMBERS:
            self._renumber()

    def receivers_of(self, pod: PodId) -> tuple[str, ...]:
        """Return the VPAs that learn from a pod."""
        kept = self._pods.get(pod)
        return kept.attribution.receivers if kept and kept.attribution else ()

    def _keep(self, key: PodId, pod: Pod) -> _Kept:
        kept = self._pods.get(key)
        if kept is None or kept.pod is not pod:
            kept = self._pods[key] = _Kept(pod, self._number_of(pod), kept.shares if kept else ())
        kept.seen = self._loop
        return kept

    def _place(
        self, key: PodId, kept: _Kept, found: _Attributed, fresh: Collection[int], now_ns: int
    ) -> None:
        """Put a pod into the models whose VPAs it concerns, and out of the others."""
        attribution, shares = found.attribution, found.shares
        is_news = kept.attribution is not attribution and kept.attribution != attribution
        if is_news or fresh or kept.shares != shares:
            for share in shares:
                if is_news or share in fresh or share not in kept.shares:
                    _follow_pod(self._models[share], key, kept.pod, attribution, now_ns)
            self._take_out(key, [share for share in kept.shares if share not in shares])
        kept.shares, kept.attribution = shares, attribution

    def _take_out(self, key: PodId, shares: Iterable[int]) -> None:
        for share in shares:
            if share in self._models:
                self._models[share].delete_pod(key)

    def _look_at_nodes(self, standings: ControlSnapshot) -> None:
        """Find out where the node of a pod counts: almost nowhere, and there pods on all nodes are alike."""
        namespaces = frozenset(
            claim.vpa.metadata.namespace
            for claim in standings.claims.values()
            if isinstance(claim.scope, Scope) and claim.scope.nodes is not None
        )
        if namespaces != self._by_node:
            self._by_node = namespaces
            self._renumber()

    def _renumber(self) -> None:
        """Give all pods their numbers anew."""
        self._numbers.clear()
        for kept in self._pods.values():
            kept.alike = self._number_of(kept.pod)

    def _number_of(self, pod: Pod) -> int:
        """Return the number of all pods like this one."""
        owner = owner_of(pod)
        alike = (
            pod.metadata.namespace,
            (owner.kind, owner.name) if owner else None,
            frozenset(pod.metadata.labels.items()),
            pod.spec.node_name if pod.metadata.namespace in self._by_node else None,
        )
        return self._numbers.setdefault(alike, len(self._numbers))

    def _attribute(self, pod: Pod, alike: int, standings: ControlSnapshot) -> _Attributed:
        """Return who learns from a pod; pods that differ in nothing that counts get one answer."""
        found = self._attributed.get(alike)
        if found is not None and not found.conflicts:
            return found
        attribution = attribute(pod, standings.index, standings.owners, standings.nodes)
        conflicts = (
            controlling_vpa(pod, standings.index, standings.owners, standings.nodes).conflicts
            if len(attribution.matched) > 1
            else ()
        )
        shares = self._shares(attribution) if self._is_wanted(pod, attribution, standings) else ()
        found = self._attributed[alike] = _Attributed(attribution, shares, conflicts)
        return found

    def _is_wanted(self, pod: Pod, attribution: Attribution, standings: ControlSnapshot) -> bool:
        """Return whether history of a pod is kept: of every pod, or with --memory-saver of those that a VPA matches."""
        if not self._matched_only or attribution.matched:
            return True
        if all(model.compat.samples_follow_control for model in self._models.all()):
            return False
        meta = pod.metadata
        return any(
            isinstance(one.target, Selector) and one.target.matches(meta.labels)
            for one in standings.vpas
            if one.vpa.metadata.namespace == meta.namespace
        )

    def _shares(self, attribution: Attribution) -> tuple[int, ...]:
        """Return the models that a pod belongs in: those of the VPAs that match it."""
        models = self._models
        held = tuple(models)
        if models.is_whole or not all(model.compat.samples_follow_control for model in models.all()):
            return held  # as upstream, a VPA then learns from all pods with its labels, whoever made them
        concerned = {models.share(vpa) for vpa in attribution.matched}
        return tuple(share for share in held if share in concerned)


def _follow_pod(model: ClusterState, key: PodId, pod: Pod, attribution: Attribution, now_ns: int) -> None:
    model.add_or_update_pod(key, pod.metadata.labels, pod.status.phase, now_ns, attribution)
    for container in pod.spec.containers:
        requests = container.resources.requests
        cpu, memory = requests.get(CPU), requests.get(MEMORY)
        model.add_or_update_container(
            ContainerId(key, container.name),
            cpu.milli_value() if cpu else 0,
            memory.value() if memory else 0,
            now_ns,
        )


def usable_selector(one: Targeted, standings: ControlSnapshot) -> Selector | UnsupportedConfig:
    """Return the selector under which a VPA's history is kept, or why the VPA can do nothing."""
    recommenders = one.vpa.spec.recommenders
    if len(recommenders) > 1:
        message = f"VPA {one.vpa.key} names {len(recommenders)} recommenders; name one"
        return UnsupportedConfig("TooManyRecommenders", message)
    if isinstance(one.target, Unsupported):
        return UnsupportedConfig("TargetUnsupported", one.target.message)
    error = standings.index.errors.get(one.vpa.key)
    if error is not None:
        return UnsupportedConfig(error.reason, error.message)
    return _with_scope(one, standings)


def _with_scope(one: Targeted, standings: ControlSnapshot) -> Selector:
    """Join the target's selector and the scope's, so that a scope that is edited counts as another selector."""
    assert isinstance(one.target, Selector)
    claim = standings.claims.get(one.vpa.key)
    if claim is None or not isinstance(claim.scope, Scope):
        return one.target
    scope = claim.scope
    pods = scope.pods.requirements if scope.pods else ()
    nodes = scope.nodes.requirements if scope.nodes else ()
    # No label key holds a colon, so a requirement on nodes can never be taken for one on pods.
    marked = [Requirement(f"node:{each.key}", each.operator, each.values) for each in nodes]
    return Selector([*one.target.requirements, *pods, *marked])


def is_served_by(vpa: VerticalPodAutoscaler, name: str) -> bool:
    """Return whether a VPA is ours; one that names several recommenders is everybody's, so that somebody says so."""
    wanted = vpa.spec.recommenders
    if not wanted:
        return name == DEFAULT_RECOMMENDER
    return any(one.name == name for one in wanted)
