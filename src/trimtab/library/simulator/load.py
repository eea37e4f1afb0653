"""What pods use: by a function of time, or as it was recorded."""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from trimtab.library.simulator.model import ModelError
from trimtab.library.simulator.workload import NEVER, SimulatedPod, Used, Workload
from trimtab.library.trace import Trace
from trimtab.model.core.pod import CPU, MEMORY

NOTHING: Used = {}
NO_LABELS: Mapping[str, str | None] = {}


class Load:
    """What running pods use."""

    is_per_pod = True
    """Whether pods have usage of their own, not shares of a total."""

    used: Callable[[SimulatedPod, float], Used]
    """What a running pod uses, by container."""

    def key(self, pod: SimulatedPod) -> Hashable:
        """Return what distinguishes the usage of a pod. Pods with equal keys use the same."""
        return pod.name

    def labels(self, pod: SimulatedPod, now: float) -> Mapping[str, str | None]:
        """Return the labels that the pod has to have now. None removes one."""
        return NO_LABELS

    def next_change(self, now: float) -> float:
        """Return when usage or labels may next be others, if no pod changes."""
        raise NotImplementedError


class LoadByFunction(Load):
    """Usage by a function of the pod and the time, taken every `step` seconds. Happenings set labels."""

    def __init__(self, used: Callable[[SimulatedPod, float], Used], step: float = 60.0) -> None:
        self.used = used
        self._step = step

    def next_change(self, now: float) -> float:
        return (now // self._step + 1) * self._step


class UsageColumn(NamedTuple):
    """What a column of a trace is the usage of. A total has no pod."""

    pod: str
    container: str
    resource: str


def usage_columns(trace: Trace, main: str = "main") -> dict[str, UsageColumn]:
    """Return the columns with usage. A column that names no container is of the `main` one."""
    found = {}
    for column in trace.columns:
        *owner, resource = column.split("/")
        if resource in (CPU, MEMORY) and len(owner) <= 2:
            pod, container = ["", *(owner or [main])][-2:]
            found[column] = UsageColumn(pod, container, resource)
    return found


class RecordedLoad(Load):
    """Usage from a trace.

    The columns `cpu`, `memory` and `CONTAINER/cpu` are totals that all ready pods share. `POD/CONTAINER/cpu` is the usage of one
    pod, and `POD/label/KEY` are the values of its label. A pod of a StatefulSet has the columns of its name. Another pod has those
    of the first recorded pod that no other pod stands for.
    """

    def __init__(self, trace: Trace, workload: Workload) -> None:
        self._trace, self._workload = trace, workload
        containers = [container["name"] for container in workload.template["spec"]["containers"]]
        self._own: dict[str, dict[tuple[str, str], str]] = {}
        """The column of each container and resource, by recorded pod."""
        main = "main" if "main" in containers else containers[0]
        for column, (pod, container, resource) in usage_columns(trace, main).items():
            self._own.setdefault(pod, {}).setdefault((container, resource), column)
        self._totals = self._own.pop("", {})
        if self._totals and self._own:
            raise ModelError("the trace has usage in total and usage per pod; keep one of them")
        self.is_per_pod = bool(self._own)
        self._labels: dict[str, dict[str, Sequence[str]]] = {}
        """Values of labels, by recorded pod and key."""
        for column, values in trace.labels.items():
            name, _, key = column.partition("/label/")
            self._labels.setdefault(name, {})[key] = values
        self.pods = sorted({*self._own, *self._labels})
        """The names of the recorded pods."""
        self._recorded: dict[str, str] = {}
        """The recorded pod that each pod stands for."""

    def recorded(self, pod: SimulatedPod) -> str:
        """Return the recorded pod that a pod stands for, or an empty text if there are more pods than recorded."""
        if pod.name in self.pods:
            return pod.name
        if pod.name not in self._recorded:
            present = {other.name for other in self._workload.pods}
            self._recorded = {name: to for name, to in self._recorded.items() if name in present}
            taken = {*self._recorded.values(), *present}
            self._recorded[pod.name] = next((name for name in self.pods if name not in taken), "")
        return self._recorded[pod.name]

    def _row(self, now: float) -> int:
        return max(bisect_right(self._trace.times, now) - 1, 0)

    def used(self, pod: SimulatedPod, now: float) -> Used:
        """Return the usage of a pod. Pods that are not ready carry no part of a total."""
        row = self._row(now)
        if self._own:
            columns, share = self._own.get(self.recorded(pod), {}), 1
        elif pod.is_ready:
            columns, share = self._totals, len(self._workload.ready)
        else:
            return NOTHING
        found: dict[str, tuple[int | None, int | None]] = {}
        for (container, resource), column in columns.items():
            amount = self._trace.columns[column][row]
            if amount is not None:
                cpu, memory = found.get(container, (None, None))
                is_cpu = resource == CPU
                found[container] = (amount // share, memory) if is_cpu else (cpu, amount // share // 1000)
        return found

    def labels(self, pod: SimulatedPod, now: float) -> Mapping[str, str | None]:
        if not self._labels:
            return NO_LABELS
        row, columns = self._row(now), self._labels.get(self.recorded(pod), {})
        return {key: values[row] or None for key, values in columns.items()}

    def key(self, pod: SimulatedPod) -> Hashable:
        return self.recorded(pod) if self._own else None

    def next_change(self, now: float) -> float:
        following = bisect_right(self._trace.times, now)
        return self._trace.times[following] if following < len(self._trace.times) else NEVER
