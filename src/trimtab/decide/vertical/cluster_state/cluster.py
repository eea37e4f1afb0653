"""The recommender's model of a cluster: pods and their containers, VPAs, and the aggregates between them.

A container's samples go to the aggregate of its namespace, container name, label set and partition. A VPA uses the
aggregates of the pods it controls, which the `Attribution` of a pod names. Without an attribution, as in upstream, it
uses every aggregate that its selector matches. A pod that changes its labels changes its aggregate, so history stays
with the role.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from trimtab.decide.vertical.cluster_state.aggregates import Aggregate, AggregateTable, AggregationConfig
from trimtab.decide.vertical.cluster_state.containers import DETACHED, ContainerHistory, ContainerTable
from trimtab.decide.vertical.cluster_state.vpa import AggregateKey, VPAState
from trimtab.decide.vertical.control.attribution import Attribution
from trimtab.decide.vertical.histogram.matrix import BLOCK_COLUMNS
from trimtab.decide.vertical.rules import Rules
from trimtab.model.labels.selector import Selector
from trimtab.model.vpa.types import VerticalPodAutoscaler


class PodId(NamedTuple):
    """A pod's namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{{{self.namespace} {self.name}}}"


class ContainerId(NamedTuple):
    """A container of a pod."""

    pod: PodId
    container: str

    def __str__(self) -> str:
        return f"{{{self.pod} {self.container}}}"


class TrackedContainer:
    """A running container: its sample state, its requests and its aggregate."""

    __slots__ = ("history", "is_bound", "key", "request_bytes", "request_millicores")

    def __init__(self, history: ContainerHistory, key: AggregateKey) -> None:
        self.history = history
        self.key = key
        self.request_millicores = 0
        self.request_bytes = 0
        self.is_bound = False
        """Whether a collected aggregate is not replaced (only in upstream's setting)."""


class PodState:
    """A pod in the cluster state."""

    __slots__ = ("attribution", "containers", "id", "label_set", "labels", "phase")

    def __init__(self, pod: PodId) -> None:
        self.id = pod
        self.labels: Mapping[str, str] = {}
        self.label_set: str | None = None
        self.phase = ""
        self.attribution: Attribution | None = None
        self.containers: dict[str, TrackedContainer] = {}

    @property
    def is_active(self) -> bool:
        """Whether the pod has not finished."""
        return self.phase not in {"Succeeded", "Failed"}

    def aggregate_key(self, container: str) -> AggregateKey:
        """Return the key of a container's aggregate."""
        partition = self.attribution.partition if self.attribution else ""
        return AggregateKey(self.id.namespace, container, self.label_set or "", partition)


class NamespaceState:
    """The VPAs, pods and aggregate keys of a namespace."""

    def __init__(self) -> None:
        self.vpas: list[VPAState] = []
        self.pods: dict[PodId, PodState] = {}
        self.keys: set[AggregateKey] = set()

    def add_vpa(self, vpa: VPAState) -> None:
        """Add a VPA and keep the list sorted by name."""
        self.vpas = sorted([*self.vpas, vpa], key=lambda state: state.key)


class ClusterState:
    """The pods, VPAs and aggregates of a cluster."""

    def __init__(
        self,
        config: AggregationConfig | None = None,
        rules: Rules = Rules.TRIMTAB,
        *,
        per_vpa_config: bool = False,
        block_columns: int = BLOCK_COLUMNS,
    ) -> None:
        self.rules = rules
        self.per_vpa_config = per_vpa_config
        self.table = AggregateTable(config, block_columns)
        self.containers = ContainerTable(self.table)
        self.pods: dict[PodId, PodState] = {}
        self.vpas: dict[str, VPAState] = {}
        self.aggregates: dict[AggregateKey, Aggregate] = {}
        self.labels: dict[str, Mapping[str, str]] = {}
        """Label sets by their text. Thousands of pods share a label set."""
        self.rows: dict[ContainerId, int] = {}
        """The row of each running container in the container table."""
        self._container_ids: dict[int, ContainerId] = {}
        self._namespaces: dict[str, NamespaceState] = {}
        self._receivers: dict[AggregateKey, tuple[str, ...]] = {}
        self._retired_history: dict[tuple[str, str], dict[str, Aggregate]] = {}
        """Loaded history by VPA and selector, of VPAs that were deleted or whose selector changed."""
        self._retired_before: set[tuple[str, str]] = set()

    def add_or_update_pod(
        self,
        pod: PodId,
        labels: Mapping[str, str],
        phase: str,
        now_ns: int,
        attribution: Attribution | None = None,
    ) -> None:
        """Apply a pod's labels, phase and attribution, and move its containers to their aggregates."""
        state = self.pods.get(pod)
        if state is None:
            state = self.pods[pod] = self.namespace(pod.namespace).pods[pod] = PodState(pod)
        if not self.rules.ours:
            attribution = None
        state.phase = phase
        label_set = self._intern(labels)
        if (state.label_set, state.attribution) == (label_set, attribution):
            return
        self._count_pod(state, -1)
        state.labels, state.label_set, state.attribution = self.labels[label_set], label_set, attribution
        self._count_pod(state, +1)
        for name, container in state.containers.items():
            self._move(container, state.aggregate_key(name), state, now_ns)

    def _intern(self, labels: Mapping[str, str]) -> str:
        text = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        self.labels.setdefault(text, dict(labels))
        return text

    def _count_pod(self, pod: PodState, change: int) -> None:
        if pod.label_set is None:
            return
        for vpa in self.vpas_of(pod):
            vpa.pod_count += change

    def vpas_of(self, pod: PodState) -> Iterator[VPAState]:
        """Yield the VPAs that match a pod, sorted by name."""
        for vpa in self.vpas_in(pod.id.namespace):
            if self.is_matched(pod, vpa):
                yield vpa

    def is_matched(self, pod: PodState, vpa: VPAState) -> bool:
        """Return whether a VPA matches a pod, whether or not it controls the pod."""
        if pod.attribution is not None:
            return vpa.key in pod.attribution.matched
        return vpa.matches(pod.aggregate_key(""), pod.labels)

    def namespace(self, name: str) -> NamespaceState:
        """Return the state of a namespace."""
        return self._namespaces.setdefault(name, NamespaceState())

    def vpas_in(self, namespace: str) -> list[VPAState]:
        """Return the VPAs of a namespace, sorted by name."""
        return self.namespace(namespace).vpas

    def delete_pod(self, pod: PodId) -> None:
        """Delete a pod. The samples of its containers stay in their aggregates."""
        state = self.pods.pop(pod, None)
        if state is None:
            return
        del self.namespace(pod.namespace).pods[pod]
        self._count_pod(state, -1)
        for name in state.containers:
            row = self.rows.pop(ContainerId(pod, name))
            del self._container_ids[row]
            self.containers.release(row)

    def add_or_update_container(
        self, container: ContainerId, millicores: int, memory_bytes: int, now_ns: int
    ) -> str | None:
        """Apply a container's requests. Return an error if its pod is unknown."""
        pod = self.pods.get(container.pod)
        if pod is None:
            return f"KeyError: {container.pod}"
        tracked = pod.containers.get(container.container)
        if tracked is None:
            tracked = TrackedContainer(
                ContainerHistory(self.containers), pod.aggregate_key(container.container)
            )
            pod.containers[container.container] = tracked
            self.rows[container] = tracked.history.row
            self._container_ids[tracked.history.row] = container
            self._attach(tracked, pod, now_ns)
        tracked.request_millicores, tracked.request_bytes = millicores, memory_bytes
        return None

    def find_container(self, container: ContainerId) -> TrackedContainer | str:
        """Return a container, or an error if it is unknown."""
        pod = self.pods.get(container.pod)
        if pod is None:
            return f"KeyError: {container.pod}"
        return pod.containers.get(container.container) or f"KeyError: {container}"

    def reattach(self, row: int, now_ns: int) -> None:
        """Give a container a new aggregate after its aggregate was collected."""
        container = self._container_ids[row]
        pod = self.pods[container.pod]
        tracked = pod.containers[container.container]
        if not tracked.is_bound:
            self._attach(tracked, pod, now_ns)

    def _attach(self, tracked: TrackedContainer, pod: PodState, now_ns: int) -> None:
        if pod.attribution is not None and pod.attribution.is_undecided:
            tracked.history.aggregate = DETACHED  # no VPA learns from it
            return
        aggregate = self.aggregates.get(tracked.key)
        if aggregate is None:
            aggregate = self.aggregates[tracked.key] = Aggregate(self.table, now_ns)
            self.namespace(tracked.key.namespace).keys.add(tracked.key)
            self._link_by_selector(tracked.key, aggregate, pod)
        if pod.attribution is not None:
            self._link_by_control(tracked.key, aggregate, pod.attribution.receivers)
        tracked.history.aggregate = aggregate.row

    def _move(self, tracked: TrackedContainer, key: AggregateKey, pod: PodState, now_ns: int) -> None:
        has_new_key = key != tracked.key
        tracked.key = key
        self._attach(tracked, pod, now_ns)
        if not has_new_key:
            return
        if self.rules.ours:
            tracked.history.close_window(now_ns)
        tracked.is_bound = not self.rules.ours

    def _link_by_selector(self, key: AggregateKey, aggregate: Aggregate, pod: PodState) -> None:
        if pod.attribution is not None:
            return
        for vpa in self.vpas_in(key.namespace):
            if vpa.matches(key, pod.labels):
                vpa.use(key, aggregate, per_vpa=self.per_vpa_config)

    def _link_by_control(self, key: AggregateKey, aggregate: Aggregate, receivers: tuple[str, ...]) -> None:
        if self._receivers.get(key) == receivers:
            return
        self._receivers[key] = receivers
        for vpa in self.vpas_in(key.namespace):
            vpa.drop(key)
        # The controlling VPA comes first and is applied last, so its policy counts (upstream: the last VPA linked).
        for name in reversed(receivers):
            if name in self.vpas:
                self.vpas[name].use(key, aggregate, per_vpa=self.per_vpa_config)

    def add_or_update_vpa(
        self, vpa: VerticalPodAutoscaler, selector: Selector, unsupported: str | None = None
    ) -> VPAState:
        """Apply a VPA. A changed selector starts a new state, with the history that this selector had before.

        `unsupported` is the message of condition ConfigUnsupported (missing scope, unreadable target).
        """
        state = self.vpas.get(vpa.key)
        if state is not None and str(state.selector) != str(selector):
            self._retire_history(state)
            self.delete_vpa(vpa.key)
            state = None
        if state is None:
            state = self.vpas[vpa.key] = VPAState(vpa, selector)
            self.namespace(vpa.metadata.namespace).add_vpa(state)
            state.initial = self._retired_history.pop((vpa.key, str(selector)), {})
            self._link_vpa(state)
        state.unsupported = unsupported
        state.update(vpa, per_vpa=self.per_vpa_config)
        return state

    def _retire_history(self, state: VPAState) -> None:
        if self.rules.ours and state.initial:
            for other in [key for key in self._retired_history if key[0] == state.key]:
                self._release(self._retired_history.pop(other))
            self._retired_history[state.key, str(state.selector)] = state.initial
            state.initial = {}

    def _link_vpa(self, state: VPAState) -> None:
        here = self.namespace(state.vpa.metadata.namespace)
        for key in sorted(here.keys):
            receivers = self._receivers.get(key)
            if state.matches(key, self.labels[key.labels]) if receivers is None else state.key in receivers:
                state.use(key, self.aggregates[key], per_vpa=self.per_vpa_config)
        state.pod_count = sum(self.is_matched(pod, state) for pod in here.pods.values())

    def delete_vpa(self, key: str) -> str | None:
        """Delete a VPA and its loaded history. Return an error if the VPA is unknown."""
        state = self.vpas.pop(key, None)
        if state is None:
            return f"KeyError: {PodId(*key.split('/', 1))}"
        self.vpas_in(state.vpa.metadata.namespace).remove(state)
        state.drop_all()
        self._release(state.initial)
        return None

    def retire_vpa(self, key: str) -> None:
        """Delete a VPA and keep its loaded history for 1 to 2 hours."""
        state = self.vpas.get(key)
        if state is not None:
            self._retire_history(state)
            self.delete_vpa(key)

    def release_retired_history(self) -> None:
        """Release retired history of VPAs that were missing at the last call, too."""
        missing = {owner for owner in self._retired_history if owner[0] not in self.vpas}
        for owner in missing & self._retired_before:
            self._release(self._retired_history.pop(owner))
        self._retired_before = missing - self._retired_before

    def delete_unused_labels(self) -> None:
        """Delete the label sets that no pod and no aggregate has."""
        used = {key.labels for key in self.aggregates}
        used.update(pod.label_set for pod in self.pods.values() if pod.label_set is not None)
        self.labels = {text: labels for text, labels in self.labels.items() if text in used}

    def delete_empty_namespaces(self) -> None:
        """Delete the states of namespaces without VPAs, pods and aggregates."""
        self._namespaces = {
            name: state for name, state in self._namespaces.items() if state.vpas or state.pods or state.keys
        }

    @staticmethod
    def _release(history: dict[str, Aggregate]) -> None:
        for aggregate in history.values():
            aggregate.release()

    def delete_aggregate(self, key: AggregateKey) -> None:
        """Delete an aggregate. Its containers get a new aggregate with their next sample."""
        aggregate = self.aggregates.pop(key)
        self._receivers.pop(key, None)
        self.namespace(key.namespace).keys.discard(key)
        for vpa in self.vpas_in(key.namespace):
            vpa.drop(key)
        self.containers.aggregate[self.containers.aggregate == aggregate.row] = DETACHED
        aggregate.release()
