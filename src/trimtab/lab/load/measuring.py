"""The load of a cluster at run time: what each pod uses now, and the metrics that go with it.

A person can turn any load up or down while it runs (`Load.scale`), or replace it (`Load.set`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trimtab.lab.load.backlog import Backlog
from trimtab.lab.load.curves import Moment
from trimtab.lab.load.noise import noise
from trimtab.lab.load.plan import NO_LOAD, LoadPlan, Queue, Series, WorkloadLoad
from trimtab.lab.load.sharing import LeaseHolder, nobody, weights
from trimtab.lab.metric_values import MetricValues
from trimtab.lab.workloads.kinds import RunPod
from trimtab.lab.workloads.podstate import is_active, is_ready
from trimtab.lab.workloads.templates import HASH_LABEL

#: Seconds for which one drawing of noise holds.
NOISE_SECONDS = 15
HOUR = 3600.0
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Use:
    """What one container uses: millicores, and bytes of memory."""

    cpu_millicores: int
    memory_bytes: int


PodUse = Mapping[str, Use]
_IDLE = WorkloadLoad(name="")


class Load:
    """All loads of a cluster; `measure` says what the pods use at a moment."""

    def __init__(
        self,
        start: datetime,
        values: MetricValues,
        plan: LoadPlan = NO_LOAD,
        *,
        holder: LeaseHolder = nobody,
    ) -> None:
        self._start = start
        self._values = values
        self._seed = plan.seed
        self._loads = {one.name: one for one in plan.workloads}
        self._series = {title_of(one): one for one in plan.series}
        self._factors: dict[str, float] = {}
        self._backlogs: dict[str, Backlog] = {}
        self._ready: dict[tuple[str, str], int] = {}
        self._holder = holder

    @property
    def names(self) -> list[str]:
        """Return the names of all loads and series."""
        return sorted({**self._loads, **self._series})

    def set(self, load: WorkloadLoad | Series) -> None:
        """Add a load or a series, or replace the one of that name; its factor goes back to 1."""
        if isinstance(load, Series):
            self._series[title_of(load)] = load
        else:
            self._loads[load.name] = load
            self._backlogs.pop(load.name, None)
        self._factors.pop(title_of(load), None)

    def get(self, name: str) -> WorkloadLoad | None:
        """Return the load of that name."""
        return self._loads.get(name)

    def remove(self, name: str) -> None:
        """End a load or a series."""
        self._loads.pop(name, None)
        self._series.pop(name, None)
        self._backlogs.pop(name, None)

    def scale(self, name: str, factor: float) -> None:
        """Multiply a load by `factor` from now on, counted from its original size."""
        if name not in self._loads and name not in self._series:
            raise KeyError(f"no load named {name!r}; there are: {', '.join(self.names) or 'none'}")
        if factor < 0:
            raise ValueError(f"load {name}: a factor is not negative, and {factor} is")
        self._factors[name] = factor

    def factor(self, name: str) -> float:
        """Return what a load is multiplied by."""
        return self._factors.get(name, 1.0)

    @property
    def has_queues(self) -> bool:
        """Tell whether it matters when a pod becomes ready: only queues go on between samples."""
        return any(one.queue is not None for one in self._loads.values())

    def backlog(self, name: str) -> float:
        """Return how many items wait in the queue of a load."""
        found = self._backlogs.get(name)
        return found.items if found is not None else 0.0

    def measure(self, pods: Iterable[RunPod], now: datetime) -> dict[str, PodUse]:
        """Return what each running pod uses now, by uid; queues and series move on to now, too."""
        moment = Moment((now - self._start).total_seconds(), now)
        groups: dict[tuple[str, str], list[RunPod]] = {}
        for pod in pods:
            groups.setdefault(workload_of(pod), []).append(pod)
        by_target = {one.target: one for one in self._loads.values()}
        self._advance(groups, moment)
        self._publish(moment)
        found: dict[str, PodUse] = {}
        for target, members in groups.items():
            found.update(self._measure_workload(by_target.get(target, _IDLE), members, moment))
        return found

    def observe(self, pods: Iterable[RunPod], now: datetime) -> None:
        """Take note of who is ready from now on, and let queues catch up with who was until now."""
        moment = Moment((now - self._start).total_seconds(), now)
        groups: dict[tuple[str, str], list[RunPod]] = {}
        for pod in pods:
            groups.setdefault(workload_of(pod), []).append(pod)
        self._advance(groups, moment)

    def _advance(self, groups: Mapping[tuple[str, str], Sequence[RunPod]], moment: Moment) -> None:
        for one in self._loads.values():
            if one.queue is None:
                continue
            backlog = self._backlogs.get(one.name)
            if backlog is None:
                backlog = self._backlogs[one.name] = Backlog(one.queue.backlog, moment.since)
            before = self._ready.get(one.target, 0)
            backlog.advance(moment.since, self._arrivals(one, one.queue), before * one.queue.rate.as_float())
            self._ready[one.target] = sum(map(_serves, groups.get(one.target, ())))

    def _arrivals(self, one: WorkloadLoad, queue: Queue) -> Callable[[float], float]:
        factor, start = self.factor(one.name), self._start

        def at(since: float) -> float:
            return queue.arrivals.at(Moment(since, start + (since * _SECOND))) * factor

        return at

    def _publish(self, moment: Moment) -> None:
        for one in self._loads.values():
            if one.queue is not None:
                queue = one.queue
                self._values.set_external(
                    queue.metric,
                    round(self.backlog(one.name)),
                    moment.now,
                    labels=queue.labels,
                    namespace=one.namespace,
                )
        for title, series in self._series.items():
            value = series.value.at(moment) * self.factor(title)
            value *= 1 + series.noise * self._noise(title, moment)
            self._values.set_series(series, value, moment.now)

    def _measure_workload(
        self, one: WorkloadLoad, pods: Sequence[RunPod], moment: Moment
    ) -> Iterable[tuple[str, PodUse]]:
        serving = [pod for pod in pods if _serves(pod)]
        parts = dict(
            zip((pod.metadata.uid for pod in serving), weights(one.share, serving, self._holder), strict=True)
        )
        total = self._total_cores(one, moment)
        for pod in pods:
            part = parts.get(pod.metadata.uid)
            cores = one.idle_cpu.as_float()
            if part is not None:
                per_pod = (
                    one.cpu_per_pod.at(moment) * self.factor(one.name) if one.cpu_per_pod is not None else 0.0
                )
                cores = max(total * part + per_pod, cores)
                cores *= 1 + one.noise * self._noise(f"{one.name}/{pod.metadata.name}", moment)
            yield pod.metadata.uid, _pod_use(one, pod, cores, part or 0.0, moment)

    def _total_cores(self, one: WorkloadLoad, moment: Moment) -> float:
        total = one.cpu.at(moment) * self.factor(one.name) if one.cpu is not None else 0.0
        backlog = self._backlogs.get(one.name)
        if one.queue is not None and backlog is not None:
            total += backlog.done_per_second * one.queue.cpu_per_item.as_float()
        return total

    def _noise(self, name: str, moment: Moment) -> float:
        return noise(self._seed, name, int(moment.since // NOISE_SECONDS))


def title_of(load: WorkloadLoad | Series) -> str:
    """Return what a person calls a load: its name, and for a series its labels too, as `backlog{queue=mail}`."""
    if isinstance(load, WorkloadLoad) or not load.labels:
        return load.name
    labels = ",".join(f"{key}={value}" for key, value in sorted(load.labels.items()))
    return f"{load.name}{{{labels}}}"


def workload_of(pod: RunPod) -> tuple[str, str]:
    """Return namespace and name of the workload that a pod belongs to; for a ReplicaSet, its Deployment's."""
    owner = next((one for one in pod.metadata.owner_references if one.controller), None)
    if owner is None:
        return (pod.metadata.namespace, pod.metadata.name)
    suffix = pod.metadata.labels.get(HASH_LABEL)
    name = owner.name
    if owner.kind == "ReplicaSet" and suffix:
        name = name.removesuffix(f"-{suffix}")
    return (pod.metadata.namespace, name)


def _serves(pod: RunPod) -> bool:
    return is_ready(pod) and is_active(pod)


def _pod_use(one: WorkloadLoad, pod: RunPod, cores: float, part: float, moment: Moment) -> PodUse:
    used: dict[str, Use] = {}
    for place, status in enumerate(pod.status.container_statuses):
        if status.state.running is None:
            continue
        other = one.others.get(status.name)
        if status.name == one.container or (not one.container and place == 0 and other is None):
            begun = status.state.running.started_at or moment.now
            used[status.name] = Use(round(cores * 1000), _memory(one, cores, part, begun, moment))
        elif other is not None:
            used[status.name] = Use(other.cpu.milli_value(), other.memory.value())
        else:
            used[status.name] = Use(1, one.memory.base.value())
    return used


def _memory(one: WorkloadLoad, cores: float, part: float, begun: datetime, moment: Moment) -> int:
    model = one.memory
    hours = max((moment.now - begun).total_seconds(), 0.0) / HOUR
    shared = model.total.at(moment) * part if model.total is not None else 0.0
    size = (
        model.base.as_float() + model.per_core.as_float() * cores + model.growth_per_hour.as_float() * hours
    )
    return round(size + shared)
