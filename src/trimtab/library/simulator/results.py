"""Backtests HPAs on recorded load, and sums up replica-hours, scale changes, and time above target."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trimtab.decide.horizontal import Record
from trimtab.library.simulator.hpa_runs import Candidate, HpaLoop, SyncStep
from trimtab.library.simulator.life import Life
from trimtab.library.simulator.load import RecordedLoad
from trimtab.library.simulator.model import MetricModel, Model, ModelError, model_metrics, replicas_for
from trimtab.library.simulator.workload import Behaviour, SimulatedNode, Workload
from trimtab.library.trace import Trace
from trimtab.model.hpa.metric_kinds import measured_by
from trimtab.model.hpa.types import HorizontalPodAutoscalerSpec
from trimtab.model.quantity import Quantity

HOUR = 3600.0
MILLI = 1000.0


@dataclass(slots=True)
class LoadFigures:
    """How well the ready pods carried the load of one metric."""

    above_target: float = 0.0
    """Share of the time in which ready pods had more than their target."""
    short: float | None = None
    """Load beyond the capacity of the ready pods, in unit-hours. None without a known capacity."""
    idle: float | None = None
    """Unused capacity of the ready pods, in unit-hours."""


@dataclass(slots=True)
class Figures:
    """The result of one candidate."""

    name: str
    syncs: int = 0
    """How often the HPA decided."""
    replica_hours: float = 0.0
    """Replicas times hours, starting pods included."""
    lowest: int = 0
    peak: int = 0
    ups: int = 0
    downs: int = 0
    carried: dict[str, LoadFigures] = field(default_factory=dict)
    """By column of the trace."""
    failed_syncs: int = 0
    """Syncs in which a plug-in of the HPA gave no usable answer, so that nothing was lowered."""
    failure: str = ""
    """What the plug-in did wrong first."""

    def rows(self) -> dict[str, str]:
        """Return the figures as text, by their titles."""
        rows = {}
        if self.failed_syncs:
            rows["syncs without a plug-in's answer"] = f"{self.failed_syncs:,} of {self.syncs:,}"
        rows |= {
            "replica-hours": f"{self.replica_hours:,.1f}",
            "lowest and highest replicas": f"{self.lowest} - {self.peak}",
            "scaled up, down": f"{self.ups}, {self.downs}",
        }
        for column, carried in self.carried.items():
            rows[f"{column}: time above target"] = f"{carried.above_target:.1%}"
            if carried.short is not None and carried.idle is not None:
                rows[f"{column}: short of capacity"] = f"{carried.short:,.1f} unit-hours"
                rows[f"{column}: idle capacity"] = f"{carried.idle:,.1f} unit-hours"
        return rows


@dataclass(slots=True)
class Results:
    """The figures of a candidate, its replicas at each change, and the records of the changes."""

    figures: Figures
    replicas: list[tuple[float, int]] = field(default_factory=list)
    changes: list[Record] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.figures.name

    @property
    def hpa(self) -> "Results":
        return self

    def rows(self) -> dict[str, str]:
        return self.figures.rows()

    def add(self, step: SyncStep, metrics: tuple[MetricModel, ...], trace: Trace, model: Model) -> None:
        """Add a sync to the figures."""
        figures, period = self.figures, model.sync_period
        figures.lowest = step.replicas if not figures.syncs else min(figures.lowest, step.replicas)
        figures.peak = max(figures.peak, step.replicas)
        figures.syncs += 1
        if step.failure:
            figures.failed_syncs += 1
            figures.failure = figures.failure or step.failure
        figures.replica_hours += step.replicas * period / HOUR
        if not self.replicas or self.replicas[-1][1] != step.replicas:
            self.replicas.append((step.at, step.replicas))
        if step.change is not None:
            self.changes.append(step.change)
            if step.change.decision.action == "scale_up":
                figures.ups += 1
            else:
                figures.downs += 1
        for metric in metrics:
            load = trace.at(metric.column, step.at)
            if load is not None:
                _carry(figures.carried[metric.column], metric, load, step.ready, period)

    def finish(self) -> None:
        """Turn sums into shares."""
        for carried in self.figures.carried.values():
            carried.above_target /= max(self.figures.syncs, 1)


def new_results(candidate: Candidate, metrics: tuple[MetricModel, ...]) -> Results:
    """Return the results of an HPA before its first sync."""
    known = {metric.column: None if metric.capacity is None else 0.0 for metric in metrics}
    carried = {column: LoadFigures(short=amount, idle=amount) for column, amount in known.items()}
    return Results(Figures(candidate.name, carried=carried))


def _carry(carried: LoadFigures, metric: MetricModel, load: int, ready: int, period: float) -> None:
    if metric.target is not None and load > ready * metric.target:
        carried.above_target += 1
    if metric.capacity is not None and carried.short is not None and carried.idle is not None:
        room = ready * metric.capacity - load
        amount = abs(room) / MILLI * period / HOUR
        if room < 0:
            carried.short += amount
        else:
            carried.idle += amount


def backtest(candidate: Candidate, trace: Trace, model: Model) -> Iterator[SyncStep]:
    """Yield one step per sync from the first row of the trace to the last.

    Raise ModelError if they do not fit.
    """
    metrics = model_metrics(candidate.hpa, trace, model)
    first = first_replicas(candidate, metrics, trace, model)
    spec, namespace = candidate.hpa.spec, candidate.hpa.metadata.namespace
    pod = _pod_of(spec, model)
    workload = workload_of(spec.scale_target_ref.name, namespace, pod, first, model, trace.start)
    life = Life(workload, RecordedLoad(trace, workload), start=trace.start)
    loop = HpaLoop(life, candidate if first else candidate.at_zero(trace.start), metrics, model, trace.at)
    for number in range(int((trace.end - trace.start) // model.sync_period) + 1):
        life.run(number * model.sync_period)
        yield loop.last


def first_replicas(candidate: Candidate, metrics: tuple[MetricModel, ...], trace: Trace, model: Model) -> int:
    """Return the initial replicas. They are 0 only if the HPA itself can scale to zero."""
    spec = candidate.hpa.spec
    if model.replicas == 0 and not candidate.goes_to_zero:
        raise ModelError(
            f"{candidate.hpa.key}: a workload that starts at zero stays paused: start with 1 replica or more, "
            "or set minReplicas to 0 with an Object or External metric and the feature gate HPAScaleToZero"
        )
    if model.replicas is not None:
        return model.replicas
    lowest = 0 if candidate.goes_to_zero else max(spec.min_replicas or 1, 1)
    return min(max(replicas_for(metrics, trace, trace.start), lowest), spec.max_replicas)


def _pod_of(spec: HorizontalPodAutoscalerSpec, model: Model) -> dict[str, Any]:
    """Return a pod of the target of an HPA. Each container that it names requests as much as the pod."""
    named = {container for metric in spec.metrics if (container := measured_by(metric).container)}
    requests = {name: str(Quantity.from_milli(amount)) for name, amount in model.requests.items()}
    names = sorted(named) or ["main"]
    pod: dict[str, Any] = {
        "containers": [{"name": name, "resources": {"requests": requests}} for name in names]
    }
    return pod | ({"resources": {"requests": requests}} if len(names) > 1 else {})


def workload_of(  # noqa: PLR0913 - what a Workload needs
    name: str,
    namespace: str,
    pod: Mapping[str, Any],
    replicas: int,
    model: Model,
    now: float,
    *,
    kind: str = "Deployment",
    nodes: tuple[SimulatedNode, ...] = (),
) -> Workload:
    """Return the target of autoscalers."""
    return Workload(
        name,
        {"metadata": {"labels": {"simulated": name}}, "spec": pod},
        namespace=namespace,
        kind=kind,
        replicas=replicas,
        nodes=nodes,
        behaviour=Behaviour(start_seconds=model.start_seconds),
        now=now,
    )


def run_with_progress(candidate: Candidate, trace: Trace, model: Model) -> Iterator[tuple[float, Results]]:
    """Run a candidate. Yield the share done and the results so far.

    The last results are complete.
    """
    metrics = model_metrics(candidate.hpa, trace, model)
    result = new_results(candidate, metrics)
    whole = max(trace.end - trace.start, model.sync_period)
    for step in backtest(candidate, trace, model):
        result.add(step, metrics, trace, model)
        if result.figures.syncs % 1000 == 0:
            yield (step.at - trace.start) / whole, result
    result.finish()
    yield 1.0, result


def run(candidate: Candidate, trace: Trace, model: Model) -> Results:
    """Run a candidate to the end and return its results."""
    *_, (_, results) = run_with_progress(candidate, trace, model)
    return results
