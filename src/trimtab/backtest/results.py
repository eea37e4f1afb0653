"""Sums up a backtest: replica-hours, scale changes, and time above target."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from trimtab.backtest.backtest import backtest
from trimtab.backtest.model import MetricModel, Model, model_metrics
from trimtab.backtest.production.horizontal import Candidate, SyncStep
from trimtab.backtest.trace import Trace
from trimtab.decide.horizontal import Record

AnyResults = TypeVar("AnyResults")
OnProgress = Callable[[str, float], None]
"""Takes what is in progress, and the share of the whole that is done."""

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
    """The lowest replicas."""
    peak: int = 0
    """The highest replicas."""
    ups: int = 0
    """How often the HPA scaled up."""
    downs: int = 0
    """How often the HPA scaled down."""
    carried: dict[str, LoadFigures] = field(default_factory=dict)
    """By column of the trace."""
    failed_syncs: int = 0
    """Syncs in which a plug-in of the HPA gave no usable answer, so that nothing was lowered."""
    failure: str = ""
    """What the plug-in did wrong first."""

    def rows(self) -> dict[str, str]:
        """Return the figures as text, by their titles."""
        failed = (
            {"syncs without a plug-in's answer": f"{self.failed_syncs:,} of {self.syncs:,}"}
            if self.failed_syncs
            else {}
        )
        rows = failed | {
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

    def add_step(
        self, metrics: tuple[MetricModel, ...], trace: Trace, model: Model
    ) -> Callable[[SyncStep], None]:
        """Return what adds a sync to the figures."""

        def add(step: SyncStep) -> None:
            _count(self, step, model.sync_period)
            for metric in metrics:
                load = trace.at(metric.column, step.at)
                if load is not None:
                    _carry(self.figures.carried[metric.column], metric, load, step.ready, model.sync_period)

        return add

    def finish(self) -> "Results":
        """Turn sums into shares."""
        for carried in self.figures.carried.values():
            carried.above_target /= max(self.figures.syncs, 1)
        return self


def new_results(candidate: Candidate, metrics: tuple[MetricModel, ...]) -> Results:
    """Return the results of an HPA before its first sync."""
    return Results(Figures(candidate.name, carried={metric.column: _initial(metric) for metric in metrics}))


def run_with_progress(candidate: Candidate, trace: Trace, model: Model) -> Iterator[tuple[float, Results]]:
    """Run a candidate. Yield the share done and the results so far.

    The last results are complete.
    """
    metrics = model_metrics(candidate.hpa, trace, model)
    result = new_results(candidate, metrics)
    add = result.add_step(metrics, trace, model)
    whole = max(trace.end - trace.start, model.sync_period)
    for step in backtest(candidate, trace, model):
        add(step)
        if result.figures.syncs % 1000 == 0:
            yield (step.at - trace.start) / whole, result
    yield 1.0, result.finish()


def run(candidate: Candidate, trace: Trace, model: Model) -> Results:
    """Run a candidate to the end and return its results."""
    *_, (_, results) = run_with_progress(candidate, trace, model)
    return results


def run_all(
    candidates: Sequence[Candidate], trace: Trace, model: Model, on_progress: OnProgress
) -> list[Results]:
    """Run the candidates in turn, with progress."""
    runs = [(candidate.name, run_with_progress(candidate, trace, model)) for candidate in candidates]
    return finish(runs, on_progress)


def finish(
    runs: Sequence[tuple[str, Iterator[tuple[float, AnyResults]]]], on_progress: OnProgress
) -> list[AnyResults]:
    """Finish runs in turn. Report the name of each and the share of the whole that is done."""
    results = []
    for finished, (name, run_to_finish) in enumerate(runs):
        for share, so_far in run_to_finish:
            on_progress(name, (finished + share) / len(runs))
            result = so_far
        results.append(result)
    return results


class FiguresColumn(Protocol):
    """Figures that have a name and rows of text."""

    @property
    def name(self) -> str:
        """Return the name of the candidate."""

    def rows(self) -> dict[str, str]:
        """Return the figures as text, by their titles."""


def table_of(figures: Sequence[FiguresColumn]) -> list[tuple[str, ...]]:
    """Return a table with the figures as rows and the candidates as columns, below a header."""
    columns = [column.rows() for column in figures]
    titles = dict.fromkeys(title for column in columns for title in column)
    return [
        ("", *(column.name for column in figures)),
        *((title, *(column.get(title, "") for column in columns)) for title in titles),
    ]


def _initial(metric: MetricModel) -> LoadFigures:
    return LoadFigures() if metric.capacity is None else LoadFigures(short=0.0, idle=0.0)


def _count(result: Results, step: SyncStep, period: float) -> None:
    figures = result.figures
    figures.lowest = step.replicas if not figures.syncs else min(figures.lowest, step.replicas)
    figures.peak = max(figures.peak, step.replicas)
    figures.syncs += 1
    if step.failure:
        figures.failed_syncs += 1
        figures.failure = figures.failure or step.failure
    figures.replica_hours += step.replicas * period / HOUR
    if not result.replicas or result.replicas[-1][1] != step.replicas:
        result.replicas.append((step.at, step.replicas))
    if step.change is not None:
        result.changes.append(step.change)
        if step.change.decision.action == "scale_up":
            figures.ups += 1
        else:
            figures.downs += 1


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
