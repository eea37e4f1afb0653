"""Backtests autoscalers on recorded load, with results that a notebook shows."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING, Any

from trimtab.decide.horizontal import Record
from trimtab.library.candidates import Autoscalers, candidates_of, require
from trimtab.library.frames import dataframe
from trimtab.library.progress import progress_line
from trimtab.library.simulator import Candidate, Figures, Model, ModelError, Results
from trimtab.library.simulator.chart import render_chart, render_sizes
from trimtab.library.simulator.life import Outcomes
from trimtab.library.simulator.sizes import AMOUNTS, AnyResults, Size, SizeResults, play
from trimtab.library.trace import Trace
from trimtab.model.core.pod import CPU, MEMORY
from trimtab.model.feature_gates import with_own_features
from trimtab.model.quantity import QuantityError, milli_value_of
from trimtab.operator.settings.settings import Settings
from trimtab.plugins.registry import PluginError, Plugins, load_plugins

if TYPE_CHECKING:
    import pandas as pd

Amounts = Mapping[str, str | float]
"""Quantities by resource or metric, as text such as `500m` or as numbers."""

HPA_PERIOD, VPA_PERIOD = 15.0, 60.0
"""Seconds between two syncs of the operator with its default settings."""


@dataclass(frozen=True, slots=True, repr=False)
class Simulation:
    """What each autoscaler would have done. A notebook shows it as pictures and a table."""

    trace: Trace
    """The load that was played back."""
    _model: Model
    _first: Candidate | None
    """The HPA whose needed replicas are drawn."""
    _results: tuple[AnyResults, ...]

    @property
    def _sizes(self) -> list[SizeResults]:
        return [result for result in self._results if isinstance(result, SizeResults)]

    @property
    def _alone(self) -> list[Results]:
        return [result for result in self._results if isinstance(result, Results)]

    @property
    def _replicas(self) -> list[Results]:
        """Return the results of HPAs: those alone, then those beside VPAs."""
        return [result.hpa for result in self._results if result.hpa is not None]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the autoscalers, HPAs first."""
        return tuple(result.name for result in self._results)

    @property
    def figures(self) -> dict[str, Figures]:
        """Return the figures of each HPA: replica-hours, changes, and how well the load was carried."""
        return {result.name: result.figures for result in self._replicas}

    @property
    def changes(self) -> dict[str, list[Record]]:
        """Return the record of every change of the scale, by HPA, for `explain` and `replay`."""
        return {result.name: result.changes for result in self._replicas}

    @property
    def sizes(self) -> dict[str, dict[str, Size]]:
        """Return the targets of VPAs by resource, `CONTAINER/RESOURCE` or `VPA RESOURCE`, in thousandths."""
        return {result.name: result.figures.sizes for result in self._sizes}

    @property
    def outcomes(self) -> dict[str, Outcomes]:
        """Return what VPAs did to their pods, and what came of it: resource-hours, kills, resizes, evictions."""
        return {result.name: result.figures.outcomes for result in self._sizes}

    def svg(self) -> str:
        """Return the picture of replicas that `trimtab simulate --svg` draws. Raise ModelError without an HPA."""
        if self._first is None:
            raise ModelError("there is no HPA whose replicas could be drawn; use size_svg")
        return render_chart(self._first, self._alone, self.trace, self._model)

    def size_svg(self, column: str) -> str:
        """Return a picture of what the pods of VPAs requested and used of a resource, `cpu` or `memory`."""
        sized = [result for result in self._sizes if result.uses(column)]
        if not sized:
            raise ModelError(f"no VPA has usage of {column!r}")
        return render_sizes(sized, (column,), self.trace)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the figures as a dataframe with a row per autoscaler. Needs `trimtab[notebook]`."""
        rows = [*map(_replica_row, self._alone), *map(_size_row, self._sizes)]
        titles = dict.fromkeys(title for row in rows for title in row)
        return dataframe({title: [row.get(title) for row in rows] for title in titles}, index="name")

    def replicas_to_pandas(self) -> "pd.DataFrame":
        """Return the replicas as a dataframe with a row per change and a column per HPA."""
        return _steps({result.name: result.replicas for result in self._replicas})

    def sizes_to_pandas(self) -> "pd.DataFrame":
        """Return the targets as a dataframe with a row per change, in cores and bytes.

        Its columns are named after the candidate and the size.
        """
        return _steps(
            {
                f"{result.name} {column}": [(at, amount / 1000) for at, amount in points]
                for result in self._sizes
                for column, points in result.targets.items()
                if points
            }
        )

    def __str__(self) -> str:
        table = table_of(self._results)
        first, *widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join("  ".join([row[0].ljust(first), *map(str.rjust, row[1:], widths)]) for row in table)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        (_, *names), *rows = table_of(self._results)
        header = "".join(f"<th>{escape(name)}</th>" for name in ("", *names))
        body = "".join(
            f"<tr><th>{escape(title)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
            for title, *cells in rows
        )
        used = [name for name in (CPU, MEMORY) if any(result.uses(name) for result in self._sizes)]
        drawn = [*([] if self._first is None else [self.svg()]), *map(self.size_svg, used)]
        pictures = "".join(map(_image, drawn))
        return f"{pictures}<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def table_of(results: Sequence[AnyResults]) -> list[tuple[str, ...]]:
    """Return a table with the figures as rows and the candidates as columns, below a header."""
    columns = [result.rows() for result in results]
    titles = dict.fromkeys(title for column in columns for title in column)
    return [
        ("", *(result.name for result in results)),
        *((title, *(column.get(title, "") for column in columns)) for title in titles),
    ]


def simulate(  # noqa: PLR0913 - one parameter per assumption, all but two of them by name
    autoscalers: Autoscalers,
    trace: Trace,
    *,
    requests: Amounts | None = None,
    capacity: Amounts | None = None,
    replicas: int | None = None,
    start_seconds: float = 30.0,
    metrics_period: float = 15.0,
    metrics_delay: float = 15.0,
    sync_period: float | None = None,
    feature_gates: str = "",
    compat: str = "",
    plugins: Sequence[str] = (),
    limits: Amounts | None = None,
    prices: Mapping[str, float] | None = None,
    compare: str = "",
) -> Simulation:
    """Backtest autoscalers on recorded load, with the code that decides in production.

    `autoscalers` is an HPA or VPA, several to compare, or a mapping from names to them. Those of a list within, VPAs with an
    HPA, are tried together on one workload. A VPA brings the VPAScope of its file. `replicas` are those at the start; the
    pods of a VPA are as many as the trace has, or 1. An HPA on utilization needs `requests`, what a pod requests
    by resource, or a container by `CONTAINER/RESOURCE`; `limits` are the same of limits, with which pods of a VPA are throttled and
    killed. `capacity` is the most that a pod can carry by metric; of a resource its request, unless given. A new pod
    is ready after `start_seconds`. Usage is measured every `metrics_period` seconds, for VPAs at most every 60, and arrives
    `metrics_delay` later. An HPA is decided every `sync_period`, 15 if not given. A VPA takes a sample and recommends
    every `sync_period`, 60 if not given. `feature_gates` and `compat` are texts as for `trimtab simulate`. `plugins` are the names
    of installed plug-ins that the autoscalers may use. `prices` are those of a core-hour (`cpu`) and of a GiB-hour (`memory`).
    `compare="upstream"` plays each candidate by upstream's rules as well. Raise ModelError if the autoscalers, the trace
    and the assumptions do not fit together.
    """
    require(Trace, "trace", trace)
    settings = Settings.of(feature_gates=with_own_features(feature_gates)).replace(compat=compat)
    model = Model(
        requests=_thousandths("requests", requests or {}),
        limits=_thousandths("limits", limits or {}),
        capacity=_thousandths("capacity", capacity or {}),
        prices=prices or {},
        replicas=replicas,
        start_seconds=start_seconds,
        metrics_period=metrics_period,
        metrics_delay=metrics_delay,
        sync_period=HPA_PERIOD if sync_period is None else sync_period,
    )
    if sync_period is not None:
        settings = settings.replace(recommender_interval=timedelta(seconds=sync_period))
    candidates = candidates_of(autoscalers, settings, _load(plugins), compare)
    with progress_line() as on_progress:
        results = play(candidates, trace, model, on_progress)
    first = candidates[0] if isinstance(candidates[0], Candidate) else None
    return Simulation(trace, model, first, tuple(results))


def _load(names: Sequence[str]) -> Plugins:
    try:
        return load_plugins([names] if isinstance(names, str) else names)
    except PluginError as error:
        raise ModelError(f"plugins: {error}") from error


def _thousandths(argument: str, amounts: Amounts) -> dict[str, int]:
    try:
        return {
            name: milli_value_of(amount) if isinstance(amount, str) else round(amount * 1000)
            for name, amount in amounts.items()
        }
    except (QuantityError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{argument}: {error}") from error


def _replica_row(result: Results) -> dict[str, Any]:
    figures = result.figures
    names = ("name", "replica_hours", "lowest", "peak", "ups", "downs")
    row: dict[str, Any] = {name: getattr(figures, name) for name in names}
    for column, carried in figures.carried.items():
        row[f"{column}_above_target"] = carried.above_target
        if carried.short is not None:
            row[f"{column}_short"], row[f"{column}_idle"] = carried.short, carried.idle
    return row


def _size_row(result: SizeResults) -> dict[str, Any]:
    figures, outcomes = result.figures, result.figures.outcomes
    row = {} if result.hpa is None else _replica_row(result.hpa)
    row["name"] = figures.name
    for title, size in figures.sizes.items():
        row[f"{title}_target"] = None if size.target is None else size.target / 1000
    for resource in filter(result.uses, (CPU, MEMORY)):
        row |= {f"{resource}_{what}": getattr(outcomes, what)[resource] for what in AMOUNTS}
    names = ("oom_kills", "throttled_minutes", "resizes", "evictions", "unavailable_pod_minutes")
    return row | {name: getattr(outcomes, name) for name in names} | {"cost": figures.cost}


def _steps(lines: Mapping[str, Sequence[tuple[float, float]]]) -> "pd.DataFrame":
    """Return lines of steps as a dataframe with a row for each time at which any of them changes."""
    times = sorted({at for points in lines.values() for at, _ in points})
    columns = {name: list(_held(points, times)) for name, points in lines.items()}
    return dataframe({"time": times, **columns}, index="time")


def _held(points: Sequence[tuple[float, float]], times: Sequence[float]) -> Iterator[float | None]:
    """Yield the value at each time, which holds until the next change; None before the first."""
    changes, held = dict(points), None
    for time in times:
        held = changes.get(time, held)
        yield held


def _image(picture: str) -> str:
    # As an image, the picture keeps its styles to itself.
    data = b64encode(picture.encode()).decode()
    return f'<img alt="What each autoscaler did over time" src="data:image/svg+xml;base64,{data}"/>'
