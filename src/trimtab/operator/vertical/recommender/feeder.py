"""Loads VPAs, pods and containers from the caches into the cluster states."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from trimtab.decide.vertical.cluster_state.cluster import ClusterState, ContainerId, PodId
from trimtab.decide.vertical.control.attribution import Attribution, attribution_of
from trimtab.decide.vertical.control.claims import Trust
from trimtab.decide.vertical.control.control import ScopeConflict, control_of
from trimtab.decide.vertical.control.controllers import owner_of
from trimtab.decide.vertical.control.scope import Scope
from trimtab.model.core.meta import NamespacedName
from trimtab.model.core.pod import CPU, MEMORY, Pod
from trimtab.model.labels.requirement import Requirement
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import VerticalPodAutoscaler
from trimtab.operator.vertical.cluster_view import ClusterView, ControlSnapshot, Targeted
from trimtab.operator.vertical.recommender.cluster_states import ShardedClusterStates
from trimtab.operator.vertical.targets import Unsupported

DEFAULT_RECOMMENDER = "default"


@dataclass(frozen=True)
class UnsupportedConfig:
    """Why a VPA gets no recommendation, for its condition ConfigUnsupported."""

    reason: str
    message: str


@dataclass(frozen=True)
class LoadResult:
    """The VPAs of this replica after one load."""

    usable: tuple[NamespacedName, ...]
    """VPAs that can get a recommendation."""
    unusable: dict[NamespacedName, UnsupportedConfig]
    """VPAs that cannot, each with the reason."""
    new: tuple[NamespacedName, ...]
    """VPAs that the cluster state lacked: their history has to be loaded."""
    conflicts: tuple[ScopeConflict, ...] = ()
    gained: tuple[Pod, ...] = ()
    """Pods of shards that this replica just gained."""
    waiting: dict[NamespacedName, str] = field(default_factory=dict)
    """VPAs without their history, each with the reason if it may not be read. They are not usable yet."""

    @property
    def namespaces(self) -> frozenset[str]:
        """Return the namespaces of all these VPAs."""
        return frozenset(vpa.namespace for vpa in (*self.usable, *self.unusable, *self.waiting))

    def without(self, namespaces: frozenset[str], refused: Mapping[str, str]) -> "LoadResult":
        """Return the same result with the usable VPAs of some namespaces waiting."""
        if not namespaces:
            return self
        waiting = {vpa: refused.get(vpa.namespace, "") for vpa in self.usable if vpa.namespace in namespaces}
        usable = tuple(vpa for vpa in self.usable if vpa not in waiting)
        return replace(self, usable=usable, waiting=waiting)


@dataclass(slots=True)
class _LoadedPod:
    """A pod as last loaded. The same object with the same attribution needs no work."""

    pod: Pod
    group: int
    """Pods of one group have equal namespace, owner, labels and, where that matters, node."""
    states: tuple[ClusterState, ...] = ()
    """The cluster states that have the pod."""
    attribution: Attribution | None = None
    loaded_in: int = 0
    """The number of the last load that saw the pod."""


@dataclass(frozen=True, slots=True)
class _GroupControl:
    """Which VPAs the pods of a group feed, and which of our states therefore have them."""

    attribution: Attribution
    states: tuple[ClusterState, ...]
    conflicts: tuple[ScopeConflict, ...] = ()


class ClusterStateFeeder:
    """Brings the cluster states up to date, once per step."""

    def __init__(
        self,
        states: ShardedClusterStates,
        served: frozenset[str] = frozenset({DEFAULT_RECOMMENDER}),
        ignored_namespaces: frozenset[str] = frozenset(),
        *,
        matched_only: bool = False,
    ) -> None:
        self._states = states
        self._served = served
        """The names of recommenders in VPAs that this recommender serves: its own, and its estimators."""
        self._ignored = ignored_namespaces
        self._matched_only = matched_only
        self._complete: frozenset[ClusterState] = frozenset()
        """The states that have all pods of the last load."""
        self._pods: dict[PodId, _LoadedPod] = {}
        self._controls: dict[int, _GroupControl] = {}
        self._groups: dict[object, int] = {}
        """The groups of the loaded pods. A group has the labels of its pods, so unused groups are dropped."""
        self._last_group = 0
        self._by_node: frozenset[str] = frozenset()
        """Namespaces in which a scope selects by nodes."""
        self._number = 0

    def load(
        self, view: ClusterView, control: ControlSnapshot, now_ns: int, victims: Iterable[Pod] = ()
    ) -> LoadResult:
        """Load everything that changed, and keep deleted pods until `forget_gone`.

        `victims` are pods that ran out of memory. The caches lack those that came and went since the last load.
        """
        ours = [
            targeted
            for targeted in control.vpas
            if targeted.vpa.metadata.namespace not in self._ignored
            and is_served_by(targeted.vpa, self._served)
            and self._states.holds(targeted.name)
        ]
        loaded = self._load_vpas(ours, control)
        conflicts, gained = self._load_pods(view.pods, control, now_ns)
        gone = [pod for pod in victims if view.pods.get(pod.metadata.name, pod.metadata.namespace) is None]
        self._load_gone_pods(gone, control, now_ns)
        return replace(loaded, conflicts=conflicts, gained=gained)

    def _load_vpas(self, ours: list[Targeted], control: ControlSnapshot) -> LoadResult:
        usable: list[NamespacedName] = []
        unusable: dict[NamespacedName, UnsupportedConfig] = {}
        new: list[NamespacedName] = []
        for targeted in ours:
            name, key = targeted.name, targeted.vpa.key
            selector = usable_selector(targeted, control)
            state = self._states.get(name)
            assert state is not None, "`load` passes only VPAs of our shards"
            known = state.vpas.get(key)
            if isinstance(selector, UnsupportedConfig):
                unusable[name] = selector
                if known is not None:
                    # Its history stays linked to the selector that it was collected under.
                    state.add_or_update_vpa(targeted.vpa, known.selector)
                continue
            usable.append(name)
            if known is None:
                new.append(name)
            state.add_or_update_vpa(targeted.vpa, selector)
            if state.rules.ours:
                claim = control.claims[key]
                state.vpas[key].computed_for = claim.computed_for, claim.described
                state.vpas[key].keeps_amounts = claim.trust is Trust.ALL
        present = {targeted.vpa.key for targeted in ours}
        for state in self._states:
            for key in [key for key in state.vpas if key not in present]:
                state.retire_vpa(key)
        return LoadResult(tuple(usable), unusable, tuple(new))

    def node_of(self, pod: PodId) -> str:
        """Return the name of a pod's node, or an empty string if the pod is unknown."""
        loaded = self._pods.get(pod)
        return loaded.pod.spec.node_name if loaded else ""

    def states_of(self, pod: PodId) -> tuple[ClusterState, ...]:
        """Return the cluster states that have a pod."""
        loaded = self._pods.get(pod)
        return loaded.states if loaded else ()

    def receivers_of(self, pod: PodId) -> tuple[str, ...]:
        """Return the VPAs that a pod feeds, by `namespace/name`."""
        loaded = self._pods.get(pod)
        return loaded.attribution.receivers if loaded and loaded.attribution else ()

    def _load_pods(
        self, pods: Iterable[Pod], control: ControlSnapshot, now_ns: int
    ) -> tuple[tuple[ScopeConflict, ...], tuple[Pod, ...]]:
        """Load pods, and return conflicts of scopes and the pods of new shards."""
        before, self._controls = self._controls, {}
        self._number += 1
        conflicts: list[ScopeConflict] = []
        gained: list[Pod] = []
        namespaces = {targeted.vpa.metadata.namespace for targeted in control.vpas}
        self._update_node_namespaces(control)
        states = frozenset(self._states)
        fresh = states - self._complete
        for pod in pods:
            if pod.metadata.namespace not in namespaces or pod.status.phase == "Pending":
                continue  # a pending pod uses nothing yet
            key = PodId(pod.metadata.namespace, pod.metadata.name)
            loaded = self._remember(key, pod)
            group = self._control_of(pod, loaded.group, control, before.get(loaded.group))
            if group.conflicts:
                conflicts.extend(group.conflicts)
            if fresh and not self._states.is_whole and not fresh.isdisjoint(group.states):
                gained.append(pod)
            self._place(key, loaded, group, fresh, now_ns)
        self._complete = states
        return tuple(conflicts), tuple(gained)

    def _load_gone_pods(self, pods: Iterable[Pod], control: ControlSnapshot, now_ns: int) -> None:
        namespaces = {targeted.vpa.metadata.namespace for targeted in control.vpas}
        for pod in pods:
            key = PodId(pod.metadata.namespace, pod.metadata.name)
            if pod.metadata.namespace in namespaces and key not in self._pods:
                loaded = self._remember(key, pod)
                loaded.loaded_in = self._number - 1  # `forget_gone` removes it
                self._place(key, loaded, self._control_of(pod, loaded.group, control), (), now_ns)

    def forget_gone(self) -> None:
        """Remove the pods that the last load did not see, after their last samples were added."""
        for key, loaded in [
            (key, loaded) for key, loaded in self._pods.items() if loaded.loaded_in != self._number
        ]:
            del self._pods[key]
            self._delete(key, loaded.states)
        used = {loaded.group for loaded in self._pods.values()}
        if len(used) < len(self._groups):
            self._groups = {identity: group for identity, group in self._groups.items() if group in used}

    def _remember(self, key: PodId, pod: Pod) -> _LoadedPod:
        loaded = self._pods.get(key)
        if loaded is None or loaded.pod is not pod:
            states = loaded.states if loaded else ()
            loaded = self._pods[key] = _LoadedPod(pod, self._group_of(pod), states)
        loaded.loaded_in = self._number
        return loaded

    def _place(
        self,
        key: PodId,
        loaded: _LoadedPod,
        group: _GroupControl,
        fresh: Collection[ClusterState],
        now_ns: int,
    ) -> None:
        """Add a pod to the states whose VPAs match it, and delete it from all others."""
        attribution, states = group.attribution, group.states
        is_changed = loaded.attribution is not attribution and loaded.attribution != attribution
        if is_changed or fresh or loaded.states != states:
            for state in states:
                if is_changed or state in fresh or state not in loaded.states:
                    _load_pod(state, key, loaded.pod, attribution, now_ns)
            self._delete(key, [state for state in loaded.states if state not in states])
        loaded.states, loaded.attribution = states, attribution

    def _delete(self, key: PodId, states: Iterable[ClusterState]) -> None:
        for state in states:
            if any(state is held for held in self._states):
                state.delete_pod(key)

    def _update_node_namespaces(self, control: ControlSnapshot) -> None:
        """Find the namespaces where a pod's node decides its control. Elsewhere nodes do not split groups."""
        namespaces = frozenset(
            claim.vpa.metadata.namespace
            for claim in control.claims.values()
            if isinstance(claim.scope, Scope) and claim.scope.nodes is not None
        )
        if namespaces != self._by_node:
            self._by_node = namespaces
            self._regroup()

    def _regroup(self) -> None:
        self._groups.clear()
        for loaded in self._pods.values():
            loaded.group = self._group_of(loaded.pod)

    def _group_of(self, pod: Pod) -> int:
        owner = owner_of(pod)
        identity = (
            pod.metadata.namespace,
            (owner.kind, owner.name) if owner else None,
            frozenset(pod.metadata.labels.items()),
            pod.spec.node_name if pod.metadata.namespace in self._by_node else None,
        )
        group = self._groups.get(identity)
        if group is None:
            self._last_group += 1
            group = self._groups[identity] = self._last_group
        return group

    def _control_of(
        self, pod: Pod, group: int, control: ControlSnapshot, before: _GroupControl | None = None
    ) -> _GroupControl:
        """Return which VPAs a pod feeds, resolved once per group unless there is a conflict.

        An attribution equal to that of the last load is the same object, so that its pods need no comparison.
        """
        found = self._controls.get(group)
        if found is not None and not found.conflicts:
            return found
        decided = control_of(pod, control.index, control.owners, control.nodes)
        attribution = attribution_of(decided)
        if before is not None and before.attribution == attribution:
            attribution = before.attribution
        states = self._states_for(attribution) if self._is_wanted(pod, attribution, control) else ()
        found = self._controls[group] = _GroupControl(attribution, states, decided.conflicts)
        return found

    def _is_wanted(self, pod: Pod, attribution: Attribution, control: ControlSnapshot) -> bool:
        """Return whether samples of a pod are kept. With --memory-saver a VPA must match the pod."""
        if not self._matched_only or attribution.matched:
            return True
        if self._samples_follow_control:
            return False
        meta = pod.metadata
        return any(
            isinstance(targeted.target, Selector) and targeted.target.matches(meta.labels)
            for targeted in control.vpas
            if targeted.vpa.metadata.namespace == meta.namespace
        )

    def _states_for(self, attribution: Attribution) -> tuple[ClusterState, ...]:
        if self._states.is_whole or not self._samples_follow_control:
            return tuple(
                self._states
            )  # as upstream: VPAs also receive samples of pods that only have their labels
        return self._states.matching(attribution.matched)

    @property
    def _samples_follow_control(self) -> bool:
        return all(state.rules.ours for state in self._states)


def _load_pod(state: ClusterState, key: PodId, pod: Pod, attribution: Attribution, now_ns: int) -> None:
    state.add_or_update_pod(key, pod.metadata.labels, pod.status.phase, now_ns, attribution)
    for container in pod.spec.containers:
        requests = container.resources.requests
        cpu, memory = requests.get(CPU), requests.get(MEMORY)
        state.add_or_update_container(
            ContainerId(key, container.name),
            cpu.milli_value() if cpu else 0,
            memory.value() if memory else 0,
            now_ns,
        )


def usable_selector(targeted: Targeted, control: ControlSnapshot) -> Selector | UnsupportedConfig:
    """Return the selector that a VPA's history belongs to, or why the VPA is unsupported."""
    vpa, target = targeted.vpa, targeted.target
    if len(vpa.spec.recommenders) > 1:
        message = f"VPA {vpa.key} names {len(vpa.spec.recommenders)} recommenders; name one"
        return UnsupportedConfig("TooManyRecommenders", message)
    if isinstance(target, Unsupported):
        return UnsupportedConfig("TargetUnsupported", target.message)
    error = control.index.errors.get(vpa.key)
    if error is not None:
        return UnsupportedConfig(error.reason, error.message)
    claim = control.claims.get(vpa.key)
    return _join(target, claim.scope) if claim is not None and isinstance(claim.scope, Scope) else target


def _join(target: Selector, scope: Scope) -> Selector:
    """Return the target's selector with the scope's, so that an edited scope is another selector."""
    pods = scope.pods.requirements if scope.pods else ()
    nodes = scope.nodes.requirements if scope.nodes else ()
    # No label key has a colon, so requirements on nodes and on pods cannot collide.
    marked = [Requirement(f"node:{node.key}", node.operator, node.values) for node in nodes]
    return Selector([*target.requirements, *pods, *marked])


def is_served_by(vpa: VerticalPodAutoscaler, served: Collection[str]) -> bool:
    """Return whether a recommender of one of these names handles a VPA.

    A VPA that names several recommenders is handled by all of them, so that the error is reported.
    """
    recommenders = vpa.spec.recommenders
    if not recommenders:
        return DEFAULT_RECOMMENDER in served
    return any(recommender.name in served for recommender in recommenders)
