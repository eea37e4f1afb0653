"""Backtests autoscalers on recorded load, with results that a notebook shows."""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from trimtab import backtest
from trimtab.backtest import Candidate, Figures, Model, ModelError, Results, run_all
from trimtab.backtest.candidates import CandidateError, candidate_hpa
from trimtab.backtest.chart import render_chart
from trimtab.backtest.results import table_of
from trimtab.decide.horizontal import Record
from trimtab.library.autoscalers import Autoscaler
from trimtab.library.frames import dataframe
from trimtab.library.progress import progress_line
from trimtab.model.feature_gates import with_own_features
from trimtab.model.quantity import QuantityError, milli_value_of
from trimtab.operator.horizontal.config import DecisionConfig, decision_config
from trimtab.operator.settings.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

Autoscalers = Autoscaler | Sequence[Autoscaler] | Mapping[str, Autoscaler]
"""One or more autoscalers to compare, or each under its own name."""

Amounts = Mapping[str, str | float]
"""Quantities by resource or metric, as text such as `500m` or as numbers."""


@dataclass(frozen=True, slots=True, repr=False)
class Simulation:
    """What each autoscaler would have done. A notebook shows it as a picture and a table."""

    trace: backtest.Trace
    """The load that was played back."""
    _model: Model
    _candidates: tuple[Candidate, ...]
    _results: tuple[Results, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the autoscalers, in their order."""
        return tuple(candidate.name for candidate in self._candidates)

    @property
    def figures(self) -> dict[str, Figures]:
        """Return the figures of each autoscaler: replica-hours, changes, and how well the load was carried."""
        return {result.figures.name: result.figures for result in self._results}

    @property
    def changes(self) -> dict[str, list[Record]]:
        """Return the record of every change of the scale, by autoscaler, for `explain` and `replay`."""
        return {result.figures.name: result.changes for result in self._results}

    def svg(self) -> str:
        """Return the picture that `trimtab simulate --svg` draws."""
        return render_chart(self._candidates, self._results, self.trace, self._model)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the figures as a dataframe with a row per autoscaler. Needs `trimtab[notebook]`."""
        rows = [_row(result.figures) for result in self._results]
        titles = dict.fromkeys(title for row in rows for title in row)
        return dataframe({title: [row.get(title) for row in rows] for title in titles}, index="name")

    def replicas_to_pandas(self) -> "pd.DataFrame":
        """Return the replicas as a dataframe with a row per change and a column per autoscaler."""
        times = sorted({at for result in self._results for at, _ in result.replicas})
        columns = {result.figures.name: list(_held(result.replicas, times)) for result in self._results}
        return dataframe({"time": times, **columns}, index="time")

    def __str__(self) -> str:
        table = table_of(self._results)
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in table
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        (_, *names), *rows = table_of(self._results)
        header = "".join(f"<th>{escape(name)}</th>" for name in ("", *names))
        body = "".join(
            f"<tr><th>{escape(title)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
            for title, *cells in rows
        )
        table = f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
        # As an image, the picture keeps its styles to itself.
        picture = b64encode(self.svg().encode()).decode()
        return f'<img alt="Replicas over time" src="data:image/svg+xml;base64,{picture}"/>{table}'


def simulate(  # noqa: PLR0913 - one parameter per assumption, all but two of them by name
    autoscalers: Autoscalers,
    trace: backtest.Trace,
    *,
    requests: Amounts | None = None,
    capacity: Amounts | None = None,
    replicas: int | None = None,
    start_seconds: float = 30.0,
    metrics_period: float = 15.0,
    metrics_delay: float = 15.0,
    sync_period: float = 15.0,
    feature_gates: str = "",
    compat: str = "",
) -> Simulation:
    """Backtest HPAs on recorded load, with the code that decides in production.

    `autoscalers` is an HPA, several to compare, or a mapping from names to HPAs; VPAs cannot be simulated yet. `requests` is what a pod requests, by
    resource, and `capacity` the most that it can carry, by metric; of a resource its request, unless given. `replicas` are
    those at the start. A new pod is ready after `start_seconds`. Usage is measured every `metrics_period` seconds and
    arrives `metrics_delay` later, and the HPA is decided every `sync_period`. `feature_gates` and `compat` are texts
    as for `trimtab simulate`. Raise ModelError if the HPA, the trace and the assumptions do not fit together.
    """
    model = Model(
        requests=_thousandths("requests", requests or {}),
        capacity=_thousandths("capacity", capacity or {}),
        replicas=replicas,
        start_seconds=start_seconds,
        metrics_period=metrics_period,
        metrics_delay=metrics_delay,
        sync_period=sync_period,
    )
    candidates = tuple(_candidates(_named(autoscalers), _config(feature_gates, compat)))
    with progress_line() as on_progress:
        results = run_all(candidates, trace, model, on_progress)
    return Simulation(trace, model, candidates, tuple(results))


def _thousandths(argument: str, amounts: Amounts) -> dict[str, int]:
    try:
        return {
            name: milli_value_of(amount) if isinstance(amount, str) else round(amount * 1000)
            for name, amount in amounts.items()
        }
    except (QuantityError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{argument}: {error}") from error


def _named(autoscalers: Autoscalers) -> dict[str, Autoscaler]:
    """Return the autoscalers by name. Those that have the same name are numbered."""
    if isinstance(autoscalers, Mapping):
        named = dict(autoscalers)
    else:
        given = [autoscalers] if isinstance(autoscalers, Autoscaler) else list(autoscalers)
        named, seen = {}, Counter[str]()
        for autoscaler in given:
            seen[autoscaler.key] += 1
            number = seen[autoscaler.key]
            named[autoscaler.key if number == 1 else f"{autoscaler.key} ({number})"] = autoscaler
    if not named:
        raise ModelError("autoscalers: name at least 1 HorizontalPodAutoscaler")
    return named


def _config(feature_gates: str, compat: str) -> DecisionConfig:
    try:
        return decision_config(Settings.of(feature_gates=with_own_features(feature_gates), compat=compat))
    except ValueError as error:
        raise ModelError(str(error)) from error


def _candidates(autoscalers: Mapping[str, Autoscaler], config: DecisionConfig) -> Iterator[Candidate]:
    for name, autoscaler in autoscalers.items():
        try:
            hpa = candidate_hpa(autoscaler.data, config.gates)
        except CandidateError as error:
            raise ModelError(f"{error} ({error.hint})") from error
        if hpa is None:
            raise ModelError(
                f"{autoscaler.kind} {autoscaler.key}: only a HorizontalPodAutoscaler can be simulated yet"
            )
        yield Candidate(name, hpa, config.settings, config.gates, config.compat)


def _row(figures: Figures) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": figures.name,
        "replica_hours": figures.replica_hours,
        "lowest": figures.lowest,
        "peak": figures.peak,
        "ups": figures.ups,
        "downs": figures.downs,
    }
    for column, carried in figures.carried.items():
        row[f"{column}_above_target"] = carried.above_target
        if carried.short is not None and carried.idle is not None:
            row[f"{column}_short"] = carried.short
            row[f"{column}_idle"] = carried.idle
    return row


def _held(replicas: Sequence[tuple[float, int]], times: Sequence[float]) -> Iterator[int]:
    """Yield the replicas at each time, which hold until the next change."""
    changes, held = dict(replicas), replicas[0][1]
    for time in times:
        held = changes.get(time, held)
        yield held
