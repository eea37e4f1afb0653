"""The load of a cluster at run time: what each pod uses now, and the metrics that go with it.

A person can turn any load up or down while it runs (`Load.scale`), or replace it (`Load.set`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from zlib import crc32

from trimtab.lab.load.curves import Moment
from trimtab.lab.load.plan import (
    NO_LOAD,
    Election,
    LoadPlan,
    MetricCurve,
    Queue,
    WorkloadLoad,
)
from trimtab.lab.load.pods import Member
from trimtab.lab.load.usage import (
    NOISE_SECONDS,
    Arithmetic,
    Backlog,
    LeaseHolder,
    PodUse,
    nobody,
    noise,
    weights,
)
from trimtab.lab.metrics.values import MetricValues


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
        self._loads = {one.name: Arithmetic(one, plan.seed) for one in plan.workloads}
        self._idle = Arithmetic(WorkloadLoad(name=""), plan.seed)
        self._series = {title_of(one): one for one in plan.series}
        self._factors: dict[str, float] = {}
        self._backlogs: dict[str, Backlog] = {}
        self._ready: dict[tuple[str, str], int] = {}
        self._holder = holder

    @property
    def names(self) -> list[str]:
        """Return the names of all loads and series."""
        return sorted({**self._loads, **self._series})

    def set(self, load: WorkloadLoad | MetricCurve) -> None:
        """Add a load or a series, or replace the one of that name; its factor goes back to 1."""
        if isinstance(load, MetricCurve):
            self._series[title_of(load)] = load
        else:
            self._loads[load.name] = Arithmetic(load, self._seed)
            self._backlogs.pop(load.name, None)
        self._factors.pop(title_of(load), None)

    def get(self, name: str) -> WorkloadLoad | None:
        """Return the load of that name."""
        found = self._loads.get(name)
        return found.load if found is not None else None

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

    def election_of(self, target: tuple[str, str]) -> Election | None:
        """Return how a workload's leader is chosen, by namespace and name; None if it has none."""
        return next((one.load.election for one in self._loads.values() if one.load.target == target), None)

    @property
    def has_queues(self) -> bool:
        """Tell whether it matters when a pod becomes ready: only queues go on between samples."""
        return any(one.load.queue is not None for one in self._loads.values())

    def backlog(self, name: str) -> float:
        """Return how many items wait in the queue of a load."""
        found = self._backlogs.get(name)
        return found.items if found is not None else 0.0

    def measure(self, members: Sequence[Member], now: datetime) -> dict[str, PodUse]:
        """Return what each running pod uses now, by uid; queues and series move on to now, too."""
        moment = Moment((now - self._start).total_seconds(), now)
        groups = _by_workload(members)
        self._advance(groups, moment)
        self._publish(moment)
        by_target = {one.load.target: one for one in self._loads.values()}
        found: dict[str, PodUse] = {}
        for target, group in groups.items():
            found.update(self._measure_workload(by_target.get(target, self._idle), group, moment))
        return found

    def observe(self, members: Sequence[Member], now: datetime) -> None:
        """Take note of who is ready from now on, and let queues catch up with who was until now."""
        self._advance(_by_workload(members), Moment((now - self._start).total_seconds(), now))

    def _advance(self, groups: Mapping[tuple[str, str], Sequence[Member]], moment: Moment) -> None:
        for name, running in self._loads.items():
            one = running.load
            if one.queue is None:
                continue
            backlog = self._backlogs.get(name)
            if backlog is None:
                backlog = self._backlogs[name] = Backlog(one.queue.backlog, moment.since)
            before = self._ready.get(one.target, 0)
            backlog.advance(moment.since, self._arrivals(name, one.queue), before * one.queue.rate.as_float())
            self._ready[one.target] = sum(member.serves for member in groups.get(one.target, ()))

    def _arrivals(self, name: str, queue: Queue) -> Callable[[float], float]:
        factor, start = self.factor(name), self._start

        def at(since: float) -> float:
            return queue.arrivals.at(Moment(since, start + timedelta(seconds=since))) * factor

        return at

    def _publish(self, moment: Moment) -> None:
        for name, running in self._loads.items():
            queue = running.load.queue
            if queue is not None:
                self._values.set_external(
                    queue.metric,
                    round(self.backlog(name)),
                    moment.now,
                    labels=queue.labels,
                    namespace=running.load.namespace,
                )
        tick = int(moment.since // NOISE_SECONDS)
        for title, series in self._series.items():
            value = series.value.at(moment) * self.factor(title)
            value *= 1 + series.noise * noise(self._seed, crc32(title.encode()), tick)
            self._values.set_series(series, value, moment.now)

    def _measure_workload(
        self, running: Arithmetic, members: Sequence[Member], moment: Moment
    ) -> Iterable[tuple[str, PodUse]]:
        one = running.load
        serving = [member for member in members if member.serves]
        shares = weights(one.share, [member.pod for member in serving], self._holder)
        parts = {member.uid: share for member, share in zip(serving, shares, strict=True)}
        factor = self.factor(one.name)
        each = one.cpu_per_pod.at(moment) * factor if one.cpu_per_pod is not None else 0.0
        return running.uses(members, parts, self._total_cores(one, factor, moment), each, moment)

    def _total_cores(self, one: WorkloadLoad, factor: float, moment: Moment) -> float:
        total = one.cpu.at(moment) * factor if one.cpu is not None else 0.0
        backlog = self._backlogs.get(one.name)
        if one.queue is not None and backlog is not None:
            total += backlog.done_per_second * one.queue.cpu_per_item.as_float()
        return total


def title_of(load: WorkloadLoad | MetricCurve) -> str:
    """Return what a person calls a load: its name, and for a series its labels too, as `backlog{queue=mail}`."""
    if isinstance(load, WorkloadLoad) or not load.labels:
        return load.name
    labels = ",".join(f"{key}={value}" for key, value in sorted(load.labels.items()))
    return f"{load.name}{{{labels}}}"


def _by_workload(members: Iterable[Member]) -> dict[tuple[str, str], list[Member]]:
    groups: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        groups.setdefault(member.workload, []).append(member)
    return groups
