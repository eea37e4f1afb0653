"""All loads of a cluster at run time: what each pod uses now, and the metrics that result.

Users can scale a load while it runs (`Load.scale`) or replace it (`Load.set`).
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from zlib import crc32

from trimtab_lab.load.curves import Moment, constant
from trimtab_lab.load.plan import (
    NO_LOAD,
    Election,
    LoadPlan,
    MetricCurve,
    Queue,
    WorkloadLoad,
)
from trimtab_lab.load.usage import (
    NOISE_SECONDS,
    Backlog,
    LeaseHolder,
    RunningPod,
    UsageByContainer,
    UsageModel,
    load_shares,
    no_lease_holder,
    noise,
)
from trimtab_lab.metrics.values import MetricValues

log = logging.getLogger("trimtab.lab.load.load")
CPU_ANNOTATION = "lab.trimtab.dev/cpu"
"""On the pods of a workload that no plan names: the CPU that its work takes, divided over its ready pods."""


class Load:
    """All loads of a cluster. `measure` returns what the pods use at a time."""

    def __init__(
        self,
        start: datetime,
        values: MetricValues,
        plan: LoadPlan = NO_LOAD,
        *,
        holder: LeaseHolder = no_lease_holder,
    ) -> None:
        self._start = start
        self._values = values
        self._seed = plan.seed
        self._models = {load.name: UsageModel(load, plan.seed) for load in plan.workloads}
        self._idle = UsageModel(WorkloadLoad(name=""), plan.seed)
        self._series = {load_title(curve): curve for curve in plan.series}
        self._factors: dict[str, float] = {}
        self._backlogs: dict[str, Backlog] = {}
        self._serving: dict[tuple[str, str], int] = {}
        self._holder = holder
        self._annotated: dict[tuple[str, str], str] = {}
        """The annotation that a workload's load was last set from."""

    @property
    def names(self) -> list[str]:
        return sorted({**self._models, **self._series})

    def set(self, load: WorkloadLoad | MetricCurve) -> None:
        """Add or replace a load or a series, with factor 1."""
        if isinstance(load, MetricCurve):
            self._series[load_title(load)] = load
        else:
            self._models[load.name] = UsageModel(load, self._seed)
            self._backlogs.pop(load.name, None)
        self._factors.pop(load_title(load), None)

    def get(self, name: str) -> WorkloadLoad | None:
        model = self._models.get(name)
        return model.load if model is not None else None

    def remove(self, name: str) -> None:
        """Remove a load or a series, with the metric values that it set."""
        model, series = self._models.pop(name, None), self._series.pop(name, None)
        self._backlogs.pop(name, None)
        self._factors.pop(name, None)
        queue = model.load.queue if model is not None else None
        if queue is not None:
            self._values.remove(queue.metric, queue.labels)
        for metric in model.load.metrics if model is not None else ():
            self._values.remove(metric)
        if series is not None:
            self._values.remove(series.name, series.labels)

    def scale(self, name: str, factor: float) -> None:
        """Multiply a load by `factor` from now on. Factors do not add up."""
        if name not in self._models and name not in self._series:
            raise KeyError(f"no load named {name!r}; there are: {', '.join(self.names) or 'none'}")
        if factor < 0:
            raise ValueError(f"load {name}: a factor is not negative, and {factor} is")
        self._factors[name] = factor

    def factor(self, name: str) -> float:
        return self._factors.get(name, 1.0)

    def election(self, target: tuple[str, str]) -> Election | None:
        """Return the election of a workload, by namespace and name."""
        loads = (model.load for model in self._models.values())
        return next((load.election for load in loads if load.target == target), None)

    @property
    def has_queues(self) -> bool:
        """Return whether a load has a queue. Queues depend on ready pods between samples."""
        return any(model.load.queue is not None for model in self._models.values())

    def backlog(self, name: str) -> float:
        """Return how many items wait in the queue of a load."""
        backlog = self._backlogs.get(name)
        return backlog.items if backlog is not None else 0.0

    def measure(self, pods: Sequence[RunningPod], now: datetime) -> dict[str, UsageByContainer]:
        """Return the usage of each running pod by uid. Queues and series advance, too."""
        moment = self._moment(now)
        groups = _by_workload(pods)
        self._follow_annotations(groups)
        self._advance_queues(groups, moment)
        self._publish(moment)
        by_target = {model.load.target: model for model in self._models.values()}
        usage: dict[str, UsageByContainer] = {}
        for target, group in groups.items():
            usage.update(self._workload_usage(by_target.get(target, self._idle), group, moment))
        return usage

    def _follow_annotations(self, groups: Mapping[tuple[str, str], Sequence[RunningPod]]) -> None:
        """Set the loads of workloads that no plan names, from annotations of their pods."""
        planned = {model.load.target for model in self._models.values()}
        for target, pods in groups.items():
            known = self._annotated.get(target)
            if known is None and target in planned:
                continue
            text = pods[-1].pod.metadata.annotations.get(CPU_ANNOTATION)
            if text != known and text is not None:
                self._annotated[target] = text
                self._set_annotated(target, text)

    def _set_annotated(self, target: tuple[str, str], text: str) -> None:
        namespace, workload = target
        name = "/".join(target)
        try:
            cpu = constant(text)
        except ValueError as error:
            log.warning("the load of %s is not changed: %s: %s", name, CPU_ANNOTATION, error)
            return
        self.set(WorkloadLoad(name=name, namespace=namespace, workload=workload, cpu=cpu))

    def observe(self, pods: Sequence[RunningPod], now: datetime) -> None:
        """Advance queues with the pods that were ready so far, then count those that are ready now."""
        self._advance_queues(_by_workload(pods), self._moment(now))

    def _moment(self, now: datetime) -> Moment:
        return Moment((now - self._start).total_seconds(), now)

    def _advance_queues(self, groups: Mapping[tuple[str, str], Sequence[RunningPod]], moment: Moment) -> None:
        for name, model in self._models.items():
            queue, target = model.load.queue, model.load.target
            if queue is None:
                continue
            backlog = self._backlogs.get(name)
            if backlog is None:
                backlog = self._backlogs[name] = Backlog(queue.backlog, moment.since)
            capacity = self._serving.get(target, 0) * queue.rate.as_float()
            backlog.advance(moment.since, self._arrivals(name, queue), capacity)
            self._serving[target] = sum(pod.is_serving for pod in groups.get(target, ()))

    def _arrivals(self, name: str, queue: Queue) -> Callable[[float], float]:
        factor, start = self.factor(name), self._start

        def at(since: float) -> float:
            return queue.arrivals.at(Moment(since, start + timedelta(seconds=since))) * factor

        return at

    def _publish(self, moment: Moment) -> None:
        """Set the external metrics of queues, and the series."""
        for name, model in self._models.items():
            queue = model.load.queue
            if queue is not None:
                self._values.set_external(
                    queue.metric,
                    round(self.backlog(name)),
                    moment.now,
                    labels=queue.labels,
                    namespace=model.load.namespace,
                )
        tick = int(moment.since // NOISE_SECONDS)
        for title, series in self._series.items():
            value = series.value.at(moment) * self.factor(title)
            value *= 1 + series.noise * noise(self._seed, crc32(title.encode()), tick)
            self._values.set_series(series, value, moment.now)

    def _workload_usage(
        self, model: UsageModel, pods: Sequence[RunningPod], moment: Moment
    ) -> Iterable[tuple[str, UsageByContainer]]:
        load = model.load
        serving = [pod for pod in pods if pod.is_serving]
        shares = load_shares(load.share, [pod.pod for pod in serving], self._holder)
        by_uid = {pod.uid: share for pod, share in zip(serving, shares, strict=True)}
        factor = self.factor(load.name)
        for metric, curve in load.metrics.items():
            total = curve.at(moment) * factor
            each = {pod.pod.metadata.name: total * by_uid[pod.uid] for pod in serving}
            self._values.set_of_pods(metric, load.target, each, moment.now)
        cores = load.cpu.at(moment) * factor if load.cpu is not None else 0.0
        backlog = self._backlogs.get(load.name)
        if load.queue is not None and backlog is not None:
            cores += backlog.done_per_second * load.queue.cpu_per_item.as_float()
        per_pod = load.cpu_per_pod.at(moment) * factor if load.cpu_per_pod is not None else 0.0
        return model.usage(pods, by_uid, cores, per_pod, moment)


def load_title(load: WorkloadLoad | MetricCurve) -> str:
    """Return the name of a load. A series with labels is called `backlog{queue=mail}`."""
    if isinstance(load, WorkloadLoad) or not load.labels:
        return load.name
    labels = ",".join(f"{key}={value}" for key, value in sorted(load.labels.items()))
    return f"{load.name}{{{labels}}}"


def _by_workload(pods: Iterable[RunningPod]) -> dict[tuple[str, str], list[RunningPod]]:
    groups: dict[tuple[str, str], list[RunningPod]] = {}
    for pod in pods:
        groups.setdefault(pod.workload, []).append(pod)
    return groups
