"""Recorded load from files, Prometheus and dataframes."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from trimtab import backtest
from trimtab.backtest.trace import TraceError, check_header, read_trace, trace_of_rows
from trimtab.clock import SystemClock
from trimtab.library.frames import column_names, column_values, dataframe
from trimtab.library.progress import progress_line
from trimtab.model.times import parse_long_duration

if TYPE_CHECKING:
    import pandas as pd

DATAFRAME = "dataframe"
"""What errors call a dataframe."""

TIME = "time"


@dataclass(frozen=True, slots=True, repr=False)
class Trace(backtest.Trace):
    """The total load of a workload over time, by metric, to simulate autoscalers with.

    `times` are Unix times, and `columns` has the values of each metric in thousandths, None where it could not be read.
    """

    @classmethod
    def from_csv(cls, path: str | PathLike[str]) -> Self:
        """Read a CSV whose first column is the time and whose other columns are the totals of metrics.

        Times are RFC 3339 or seconds. Values are quantities such as `1500m` or `64Mi`. An empty cell is a metric that
        could not be read. Raise TraceError with the line that is wrong.
        """
        try:
            with Path(path).open(encoding="utf-8-sig", newline="") as lines:
                return cls._of(read_trace(lines, str(path)))
        except UnicodeDecodeError as error:
            raise TraceError(f"{path}: is not UTF-8 text: {error.reason}") from error

    @classmethod
    def from_dataframe(cls, frame: Any, *, time: str = "") -> Self:
        """Read a dataframe of pandas, polars or pyarrow, or a dictionary of lists.

        Each column is the total of a metric, in cores, bytes or whatever the metric counts, as numbers or quantities. `time`
        names the column of times; without it the column `time` is used, or the index of a dataframe that has times
        there. Times without a zone are in UTC. Raise TraceError with the row that is wrong.
        """
        names = column_names(frame)
        if time and time not in names:
            raise TraceError(f"{DATAFRAME}: has no column {time!r}; its columns are {', '.join(names)}")
        time = time or (TIME if TIME in names else "")
        moments = column_values(frame[time]) if time else _times_of_index(frame)
        metrics = [name for name in names if name != time]
        check_header([time or TIME, *metrics], DATAFRAME)
        columns = [moments, *(column_values(frame[name]) for name in metrics)]
        if len({len(column) for column in columns}) > 1:
            raise TraceError(f"{DATAFRAME}: has columns of different lengths")
        rows = ((f"{DATAFRAME}: row {number}", row) for number, row in enumerate(zip(*columns, strict=True)))
        return cls._of(trace_of_rows([time or TIME, *metrics], rows, DATAFRAME))

    @classmethod
    def from_prometheus(
        cls,
        url: str,
        queries: Mapping[str, str],
        *,
        since: str | timedelta = "7d",
        step: str | timedelta = "1m",
        token_file: str | PathLike[str] = "",
    ) -> Self:
        """Read the last days from Prometheus, as `trimtab trace` does.

        `queries` has the PromQL of each column, as in `{"cpu": "sum(rate(...[5m]))"}`. `since` is how far back and `step`
        the distance between rows, as a duration or a text such as `7d` and `1m`. `token_file` has a bearer token.
        Raise TraceError if a query fails or does not return a single series.
        """
        # Only this way in needs a client, whose import takes longer than most traces.
        from trimtab.adapter.config import ServerAddress  # noqa: PLC0415
        from trimtab.library.prometheus import range_until, record_load  # noqa: PLC0415

        if not queries:
            raise TraceError("queries: name at least one column and its PromQL")
        clock, address = SystemClock(), ServerAddress(url=url, token_file=str(token_file))
        wanted = range_until(clock, _span(since, "since"), _span(step, "step"))
        with progress_line() as on_progress, ThreadPoolExecutor(max_workers=1) as thread:
            # A notebook runs an event loop already, and a thread runs a single one.
            recording = record_load(clock, address, queries, wanted, on_progress)
            return cls._of(thread.submit(asyncio.run, recording).result())

    def to_pandas(self) -> "pd.DataFrame":
        """Return the trace as a dataframe with times in UTC as its index. Needs `trimtab[notebook]`."""
        values = {
            name: [None if value is None else value / 1000 for value in column]
            for name, column in self.columns.items()
        }
        return dataframe({TIME: self.times, **values}, index=TIME)

    @classmethod
    def _of(cls, trace: backtest.Trace) -> Self:
        return cls(trace.times, trace.columns, trace.labels)


def _times_of_index(frame: Any) -> list[Any]:
    index = getattr(frame, "index", None)
    moments = [] if index is None or callable(index) else column_values(index)
    if not moments or not isinstance(moments[0], datetime):
        raise TraceError(f"{DATAFRAME}: has no column {TIME!r}; name the column of times with time=NAME")
    return moments


def _span(given: str | timedelta, name: str) -> timedelta:
    try:
        span = given if isinstance(given, timedelta) else parse_long_duration(given)
    except ValueError as error:
        raise TraceError(f"{name}: {error}") from error
    if span <= timedelta():
        raise TraceError(f"{name}: {given!r} must be longer than nothing")
    return span
