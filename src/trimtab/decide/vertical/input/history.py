"""Replays historical samples in time order, with the labels pods had then.

At each moment pods get the labels they had then, and the samples of that moment are added. So memory windows and roles
come out as if the recommender had been running.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trimtab.decide.vertical.cluster_state.amounts import amounts_from_floats
from trimtab.decide.vertical.cluster_state.cluster import ClusterState, ContainerId, PodId
from trimtab.decide.vertical.cluster_state.containers import UsageRows
from trimtab.decide.vertical.control.attribution import Attribution
from trimtab.decide.vertical.histogram.buckets import Ints
from trimtab.decide.vertical.histogram.go_math import Floats
from trimtab.decide.vertical.input.history_pods import AttributedLabels
from trimtab.decide.vertical.input.usage import Capacity, add_rows
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.usage_history import ContainerName, Series, UsageHistory

UNKNOWN_PHASE = "Unknown"
_NO_ROW = -1
_BEGINNING = -(2**62)


@dataclass(frozen=True)
class HistoryContext:
    """The present state that a replay depends on."""

    attribute: Callable[[str, Mapping[str, str] | None], AttributedLabels | None]
    """Returns the labels and the VPAs of a pod (by name) while it had some labels. See `HistoricalPods.attribute`."""
    capacity: Callable[[str], Capacity]
    """Returns the capacity of a pod's node."""
    checkpointed_until: Callable[[tuple[str, ...], str], int] = lambda _receivers, _container: _BEGINNING
    """Returns the time up to which VPAs have a container's samples from a checkpoint. Older samples are skipped."""


@dataclass
class ReplayReport:
    """The result of replaying a namespace's history."""

    samples: int = 0
    containers: int = 0
    skipped_pods: list[str] = field(default_factory=list)
    """Pods that cannot be assigned to one VPA."""


LabelChange = tuple[str, AttributedLabels | None]
"""A pod and its labels from a moment on, or None if its samples cannot be assigned to a VPA."""


def add_history(
    state: ClusterState, history: UsageHistory, context: HistoryContext, now_ns: int
) -> ReplayReport:
    """Replay the history of a namespace, then restore its present pods."""
    report = ReplayReport()
    present = {
        pod.name: (pod_state.labels, pod_state.phase, pod_state.attribution)
        for pod, pod_state in state.namespace(history.namespace).pods.items()
    }
    changes = _label_changes(history, context, report)
    columns = {
        CPU: _Columns.from_series(history.cpu, 1000.0, lambda pod: context.capacity(pod).millicores),
        MEMORY: _Columns.from_series(history.memory, 1.0, lambda pod: context.capacity(pod).memory_bytes),
    }
    replayer = _HistoryReplayer(state, history.namespace, columns, context, now_ns)
    for index, moment in enumerate(history.times_ns):
        replayer.apply_labels(changes.get(index, ()))
        report.samples += replayer.add_samples(index, moment)
    report.containers = len(set(history.cpu) | set(history.memory))
    for pod in sorted(replayer.visited):
        if pod in present:
            labels, phase, attribution = present[pod]
            state.add_or_update_pod(PodId(history.namespace, pod), labels, phase, now_ns, attribution)
        else:
            state.delete_pod(PodId(history.namespace, pod))
    return report


def first_samples(history: UsageHistory, context: HistoryContext) -> dict[tuple[str, str], int]:
    """Return the time of the first CPU sample per VPA (by `namespace/name`) and container."""
    receivers: dict[str, set[str]] = {}
    for changes in _label_changes(history, context, ReplayReport()).values():
        for pod, attributed in changes:
            if attributed is not None:
                receivers.setdefault(pod, set()).update(attributed[1].receivers)
    firsts: dict[tuple[str, str], int] = {}
    for name, values in history.cpu.items():
        measured = np.flatnonzero(~np.isnan(np.asarray(values, dtype=np.float64)))
        if len(measured):
            moment = history.times_ns[int(measured[0])]
            for vpa in receivers.get(name.pod, ()):
                owner = vpa, name.container
                firsts[owner] = min(moment, firsts.get(owner, moment))
    return firsts


def covers(history: UsageHistory, first_ns: int, saved_first_ns: int) -> bool:
    """Return whether a history reaches back to the first saved sample, or to its own first moment.

    A source that lost data begins later than both. Two steps of its grid are tolerated.
    """
    times = history.times_ns
    step = times[1] - times[0] if len(times) > 1 else 0
    return first_ns <= max(saved_first_ns, times[0] if times else first_ns) + 2 * step


def _label_changes(
    history: UsageHistory, context: HistoryContext, report: ReplayReport
) -> dict[int, list[LabelChange]]:
    """Return the pods whose labels change, by index of the moment."""
    changes: dict[int, list[LabelChange]] = {}
    for pod in history.pods:
        intervals = history.labels.get(pod)
        attributed = (
            [context.attribute(pod, interval.labels) for interval in intervals]
            if intervals
            else [context.attribute(pod, None)]
        )
        # Labels hold until others are recorded. Before the first record the first labels held.
        starts = (0, *(interval.since for interval in intervals[1:])) if intervals else (0,)
        for start, change in zip(starts, attributed, strict=True):
            changes.setdefault(start, []).append((pod, change))
        if not any(attributed):
            report.skipped_pods.append(pod)
    return changes


@dataclass(frozen=True)
class _Columns:
    """The series of a resource as arrays, a row per container."""

    names: tuple[ContainerName, ...]
    amounts: Ints
    is_measured: np.typing.NDArray[np.bool_]
    capacities: Ints

    @classmethod
    def from_series(cls, series: Series, unit: float, capacity: Callable[[str], int]) -> "_Columns":
        names = tuple(sorted(series))
        values: Floats = np.array([series[name] for name in names], dtype=np.float64)
        measured = ~np.isnan(values)
        amounts = amounts_from_floats(np.where(measured, values, 0.0) * unit)
        capacities = np.array([capacity(name.pod) for name in names], dtype=np.int64)
        return cls(names, amounts, measured, capacities)


class _HistoryReplayer:
    """Moves the cluster state from moment to moment."""

    def __init__(
        self,
        state: ClusterState,
        namespace: str,
        columns: Mapping[str, _Columns],
        context: HistoryContext,
        now_ns: int,
    ) -> None:
        self._state = state
        self._checkpointed_until = context.checkpointed_until
        self._namespace = namespace
        self._columns = columns
        self._now_ns = now_ns
        self._rows: dict[str, Ints] = {}
        """Per resource and series the row of its container, or _NO_ROW while samples are skipped."""
        self._after: dict[str, Ints] = {}
        """Per resource and series the time up to which samples are skipped."""
        self._series: dict[str, dict[str, list[tuple[int, str]]]] = {CPU: {}, MEMORY: {}}
        """Per resource and pod the indices of its series and their containers."""
        for resource, column in columns.items():
            self._rows[resource] = np.full(len(column.names), _NO_ROW, dtype=np.int64)
            self._after[resource] = np.full(len(column.names), _BEGINNING, dtype=np.int64)
            for index, name in enumerate(column.names):
                self._series[resource].setdefault(name.pod, []).append((index, name.container))
        self.visited: set[str] = set()

    def apply_labels(self, changes: Sequence[LabelChange]) -> None:
        """Give pods the labels of a moment."""
        for name, attributed in changes:
            pod = PodId(self._namespace, name)
            if attributed is None:
                self._attach_series(pod, None)
                continue
            labels, attribution = attributed
            self.visited.add(name)
            known = self._state.pods.get(pod)
            phase = known.phase if known else UNKNOWN_PHASE
            self._state.add_or_update_pod(pod, labels, phase, self._now_ns, attribution)
            self._attach_series(pod, attribution)

    def _attach_series(self, pod: PodId, attribution: Attribution | None) -> None:
        """Send a pod's samples to its containers, or skip them without an attribution."""
        receivers = attribution.receivers if attribution is not None else ()
        for resource, series in self._series.items():
            for index, container in series.get(pod.name, ()):
                key = ContainerId(pod, container)
                if attribution is not None and key not in self._state.rows:
                    self._state.add_or_update_container(key, 0, 0, self._now_ns)
                self._rows[resource][index] = self._state.rows[key] if attribution is not None else _NO_ROW
                self._after[resource][index] = self._checkpointed_until(receivers, container)

    def add_samples(self, index: int, moment: int) -> int:
        """Add the samples of a moment and return how many were accepted."""
        accepted = 0
        for resource, column in self._columns.items():
            if not column.names:
                continue
            rows = self._rows[resource]
            is_new = self._after[resource] < moment
            chosen = np.flatnonzero((rows != _NO_ROW) & column.is_measured[:, index] & is_new)
            times = np.full(len(chosen), moment, dtype=np.int64)
            usage = UsageRows(rows[chosen], column.amounts[chosen, index], times)
            report = add_rows(self._state, resource, usage, column.capacities[chosen], self._now_ns)
            accepted += report.accepted
        return accepted
