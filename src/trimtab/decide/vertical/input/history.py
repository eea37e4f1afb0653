"""The past taken into the model: samples in the order in which they happened, each under the labels of its time.

The model is led through the past as if it had watched: at each moment pods get the labels they had then, then the
samples of that moment arrive. So memory windows, roles and everything else come out as they would have.
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
from trimtab.decide.vertical.input.usage import Capacity, add_rows
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.usage_history import ContainerName, Series, UsageHistory

UNKNOWN_PHASE = "Unknown"
_NOWHERE = -1
_BEGINNING = -(2**62)


@dataclass(frozen=True)
class HistoryContext:
    """How the past is judged from the present."""

    attribute: Callable[[str, Mapping[str, str] | None], tuple[Mapping[str, str], Attribution] | None]
    """Who learnt from a pod (by name) while it had these labels (None: not known which); None if nobody can tell."""
    most: Callable[[str], Capacity]
    """The most that a pod's containers could use."""
    since: Callable[[tuple[str, ...], str], int] = lambda _receivers, _container: _BEGINNING
    """The time up to which the VPAs that learn from a container have its samples already, from a checkpoint."""


@dataclass
class Replayed:
    """What became of a namespace's past."""

    samples: int = 0
    containers: int = 0
    left_out: list[str] = field(default_factory=list)
    """Pods of which nobody can tell whose they were."""


@dataclass(frozen=True)
class _Columns:
    """One resource's series as arrays, a row per container."""

    names: tuple[ContainerName, ...]
    amounts: Ints
    is_measured: np.typing.NDArray[np.bool_]
    most: Ints

    @classmethod
    def of(cls, series: Series, unit: float, most: Callable[[str], int]) -> "_Columns":
        names = tuple(sorted(series))
        values: Floats = np.array([series[name] for name in names], dtype=np.float64)
        measured = ~np.isnan(values)
        amounts = amounts_from_floats(np.where(measured, values, 0.0) * unit)
        return cls(names, amounts, measured, np.array([most(name.pod) for name in names], dtype=np.int64))


def add_history(state: ClusterState, history: UsageHistory, past: HistoryContext, now_ns: int) -> Replayed:
    """Lead the model through a namespace's past, and back to the present."""
    done = Replayed()
    present = dict(state.namespace(history.namespace).pods)
    now_and_here = {pod.name: (one.labels, one.phase, one.attribution) for pod, one in present.items()}
    turns = _turns(history, past, done)
    columns = {
        CPU: _Columns.of(history.cpu, 1000.0, lambda pod: past.most(pod).millicores),
        MEMORY: _Columns.of(history.memory, 1.0, lambda pod: past.most(pod).memory_bytes),
    }
    walker = _Walker(state, history.namespace, columns, past.since, now_ns)
    for place, moment in enumerate(history.times_ns):
        walker.turn(turns.get(place, ()))
        done.samples += walker.take(place, moment)
    done.containers = len(set(history.cpu) | set(history.memory))
    for pod in sorted(walker.visited):
        if pod in now_and_here:
            labels, phase, attribution = now_and_here[pod]
            state.add_or_update_pod(PodId(history.namespace, pod), labels, phase, now_ns, attribution)
        else:
            state.delete_pod(PodId(history.namespace, pod))
    return done


def first_samples(history: UsageHistory, past: HistoryContext) -> dict[tuple[str, str], int]:
    """Return the time of the first CPU sample that each VPA would learn from, by `namespace/name` and container."""
    found: dict[tuple[str, str], int] = {}
    receivers: dict[str, set[str]] = {}
    for turns in _turns(history, past, Replayed()).values():
        for pod, belongs in turns:
            if belongs is not None:
                receivers.setdefault(pod, set()).update(belongs[1].receivers)
    for name, values in history.cpu.items():
        measured = np.flatnonzero(~np.isnan(np.asarray(values, dtype=np.float64)))
        if len(measured):
            moment = history.times_ns[int(measured[0])]
            for vpa in receivers.get(name.pod, ()):
                owner = vpa, name.container
                found[owner] = min(moment, found.get(owner, moment))
    return found


def covers(history: UsageHistory, first_ns: int, saved_first_ns: int) -> bool:
    """Return whether a history that begins with a sample reaches back as far as a saved one, or as was asked for.

    A source that lost its past begins later than both. Two steps of its grid are not a loss.
    """
    times = history.times_ns
    step = times[1] - times[0] if len(times) > 1 else 0
    return first_ns <= max(saved_first_ns, times[0] if times else first_ns) + 2 * step


Belonging = tuple[Mapping[str, str], Attribution]
Turn = tuple[str, Belonging | None]


def _turns(history: UsageHistory, past: HistoryContext, done: Replayed) -> dict[int, list[Turn]]:
    """Return, per moment, the pods that came under other labels then; with None, nobody can tell whose they were."""
    found: dict[int, list[Turn]] = {}
    for pod in history.pods:
        seen = history.labels.get(pod)
        belongings = (
            [past.attribute(pod, one.labels) for one in seen] if seen else [past.attribute(pod, None)]
        )
        # Labels hold until others are seen; before the first sight the first ones held.
        since = (0, *(one.since for one in seen[1:])) if seen else (0,)
        for place, belongs in zip(since, belongings, strict=True):
            found.setdefault(place, []).append((pod, belongs))
        if not any(belongings):
            done.left_out.append(pod)
    return found


class _Walker:
    """Leads the model from moment to moment."""

    def __init__(
        self,
        state: ClusterState,
        namespace: str,
        columns: Mapping[str, _Columns],
        since: Callable[[tuple[str, ...], str], int],
        now_ns: int,
    ) -> None:
        self._state = state
        self._since = since
        self._namespace = namespace
        self._columns = columns
        self._now_ns = now_ns
        self._rows = {
            resource: np.full(len(one.names), _NOWHERE, dtype=np.int64) for resource, one in columns.items()
        }
        self._after = {
            resource: np.full(len(one.names), _BEGINNING, dtype=np.int64) for resource, one in columns.items()
        }
        self._places: dict[str, dict[str, list[tuple[int, str]]]] = {CPU: {}, MEMORY: {}}
        for resource, one in columns.items():
            for place, name in enumerate(one.names):
                self._places[resource].setdefault(name.pod, []).append((place, name.container))
        self.visited: set[str] = set()

    def turn(self, turns: Sequence[Turn]) -> None:
        """Give pods the labels of this moment."""
        for name, belongs in turns:
            pod = PodId(self._namespace, name)
            if belongs is not None:
                self.visited.add(name)
                known = self._state.pods.get(pod)
                phase = known.phase if known else UNKNOWN_PHASE
                self._state.add_or_update_pod(pod, belongs[0], phase, self._now_ns, belongs[1])
            self._point(pod, None if belongs is None else belongs[1].receivers)

    def _point(self, pod: PodId, receivers: tuple[str, ...] | None) -> None:
        """Let a pod's samples go to its containers, or nowhere."""
        is_heard = receivers is not None
        for resource, places in self._places.items():
            for place, container in places.get(pod.name, ()):
                key = ContainerId(pod, container)
                if is_heard and key not in self._state.rows:
                    self._state.add_or_update_container(key, 0, 0, self._now_ns)
                self._rows[resource][place] = self._state.rows[key] if is_heard else _NOWHERE
                self._after[resource][place] = self._since(receivers or (), container)

    def take(self, place: int, moment: int) -> int:
        """Add the samples of one moment; return how many were accepted."""
        accepted = 0
        for resource, one in self._columns.items():
            if not one.names:
                continue
            rows = self._rows[resource]
            is_new = self._after[resource] < moment
            chosen = np.flatnonzero((rows != _NOWHERE) & one.is_measured[:, place] & is_new)
            times = np.full(len(chosen), moment, dtype=np.int64)
            usage = UsageRows(rows[chosen], one.amounts[chosen, place], times)
            accepted += add_rows(self._state, resource, usage, one.most[chosen], self._now_ns).accepted
        return accepted
