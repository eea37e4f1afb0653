"""Recorded load: the total of each metric over time, or the usage of each pod.

A trace is a CSV with a header. The first column is the time, as RFC 3339 or in seconds. Seconds below `RELATIVE_BELOW`
count from the start of the trace. Each further column is a metric with quantities (`1500m`, `2`, `64Mi`) as values. An
empty cell is a metric that could not be read at that time. The column `POD/label/KEY` has the values of a label of a pod. An
empty cell there is a pod without the label.
"""

import asyncio
import csv
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.clock import SystemClock
from trimtab.library.frames import column_names, column_values, dataframe
from trimtab.library.progress import progress_line
from trimtab.model.labels.names import label_value_problems
from trimtab.model.quantity import milli_value_of
from trimtab.model.readable import counted
from trimtab.model.times import format_time, parse_long_duration, parse_time

if TYPE_CHECKING:
    import pandas as pd

DATAFRAME = "dataframe"
"""What errors call a dataframe."""
TIME = "time"

RELATIVE_BELOW = 1e8
"""Seconds below this (1973) count from `RELATIVE_START`."""

RELATIVE_START = datetime.fromisoformat("2026-01-05T00:00:00+00:00").timestamp()
"""A Monday, so that days and weeks of a trace without dates start where people expect them."""

MAX_ROWS = 5_000_000
"""Eight weeks of seconds; more rows are a mistake."""


MISSING = frozenset({"nan", "<NA>"})
"""The text of values that dataframes have where there is none."""


class TraceError(ValueError):
    """The trace is invalid. The message names the line and the cause."""


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """The total load of a workload over time, by metric, to simulate autoscalers with.

    `times` are ascending Unix times, and `columns` has the values of each metric in thousandths, None where it could not be read.
    """

    times: Sequence[float]
    columns: Mapping[str, Sequence[int | None]]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values of labels over time, by column `POD/label/KEY`."""

    @staticmethod
    def from_csv(path: str | PathLike[str]) -> "Trace":
        """Read a CSV whose first column is the time and whose other columns are the totals of metrics.

        Times are RFC 3339 or seconds. Values are quantities such as `1500m` or `64Mi`. An empty cell is a metric that
        could not be read. Raise TraceError with the line that is wrong.
        """
        try:
            with Path(path).open(encoding="utf-8-sig", newline="") as lines:
                return read_trace(lines, str(path))
        except UnicodeDecodeError as error:
            raise TraceError(f"{path}: is not UTF-8 text: {error.reason}") from error

    @staticmethod
    def from_dataframe(frame: Any, *, time: str = "") -> "Trace":
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
        return trace_of_rows([time or TIME, *metrics], rows, DATAFRAME)

    @staticmethod
    def from_prometheus(
        url: str,
        queries: Mapping[str, str],
        *,
        since: str | timedelta = "7d",
        step: str | timedelta = "1m",
        token_file: str | PathLike[str] = "",
    ) -> "Trace":
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
            return thread.submit(asyncio.run, recording).result()

    def to_pandas(self) -> "pd.DataFrame":
        """Return the trace as a dataframe with times in UTC as its index. Needs `trimtab[notebook]`."""
        values = {
            name: [None if value is None else value / 1000 for value in column]
            for name, column in self.columns.items()
        }
        return dataframe({TIME: self.times, **values}, index=TIME)

    def __repr__(self) -> str:
        first, last = (format_time(datetime.fromtimestamp(moment, UTC)) for moment in (self.start, self.end))
        return f"<Trace: {len(self.times):,} rows of {', '.join(self.columns)} from {first} to {last}>"

    @property
    def start(self) -> float:
        """Return the time of the first row."""
        return self.times[0]

    @property
    def end(self) -> float:
        """Return the time of the last row."""
        return self.times[-1]

    def at(self, column: str, moment: float) -> int | None:
        """Return the latest value at `moment`. The first row also counts for the time before it."""
        return self.columns[column][max(bisect_right(self.times, moment) - 1, 0)]

    def lines(self) -> Iterator[str]:
        """Write the trace as CSV, line by line."""
        yield ",".join(["time", *map(_cell, [*self.columns, *self.labels])])
        for row, moment in enumerate(self.times):
            values = (column[row] for column in self.columns.values())
            cells = ("" if value is None else f"{value}m" for value in values)
            labels = (column[row] for column in self.labels.values())
            yield ",".join([f"{moment:.3f}", *cells, *labels])


def _cell(title: str) -> str:
    """Quote a column's name if it contains a comma, as `queue{a=1,b=2}` does."""
    if not any(sign in title for sign in ',"\r\n'):
        return title
    doubled = title.replace('"', '""')
    return f'"{doubled}"'


def with_totals(trace: Trace) -> Trace:
    """Return the trace with totals of the columns `POD/CONTAINER/cpu`, as `cpu` and `CONTAINER/cpu`."""
    columns = dict(trace.columns)
    for title, column in trace.columns.items():
        if title.count("/") == 2:
            container, resource = title.split("/")[1:]
            for name in (resource, f"{container}/{resource}"):
                known = columns.get(name, [None] * len(column))
                columns[name] = [
                    other if value is None else value + (other or 0)
                    for value, other in zip(column, known, strict=True)
                ]
    return replace(trace, columns=columns)


Row = tuple[str, Sequence[object]]
"""What errors call a row, and its cells: text as in a CSV, numbers, times, or None."""


def read_trace(lines: Iterable[str], name: str) -> Trace:
    """Parse CSV lines. Errors refer to the file as `name`."""
    rows = csv.reader(lines)
    header = [cell.strip() for cell in next(rows, [])]
    check_header(header, f"{name}:1")
    filled = (
        (f"{name}:{number}", row) for number, row in enumerate(rows, 2) if any(cell.strip() for cell in row)
    )
    return trace_of_rows(header, filled, name)


def trace_of_rows(header: Sequence[str], rows: Iterable[Row], name: str) -> Trace:
    """Return a trace of rows whose first cell is the time. Errors refer to the source as `name`."""
    times: list[float] = []
    columns: dict[str, list[int | None]] = {}
    labels: dict[str, list[str]] = {}
    for title in header[1:]:
        if is_label(title):
            labels[title] = []
        else:
            columns[title] = []
    for where, row in rows:
        if len(row) != len(header):
            raise TraceError(f"{where}: {counted(len(row), 'cell')} where the header has {len(header)}")
        times.append(_later(_moment(row[0], where), times, where))
        for title, cell in zip(header[1:], row[1:], strict=True):
            if title in labels:
                labels[title].append(_label(cell, f"{where}: {title}"))
            else:
                columns[title].append(_value(cell, f"{where}: {title}"))
    if len(times) < 2:
        raise TraceError(f"{name}: a trace needs at least two rows of values below its header")
    return Trace(times, columns, labels)


def is_label(title: str) -> bool:
    """Return whether a column has the values of a label: `POD/label/KEY`."""
    return "/label/" in title


def _label(cell: object, where: str) -> str:
    text = "" if cell is None else str(cell).strip()
    if text in MISSING:
        return ""
    for problem in label_value_problems(text):
        raise TraceError(f"{where}: {text!r}: {problem}")
    return text


def check_header(header: Sequence[str], where: str) -> None:
    """Raise TraceError if the names of the columns do not name a time and at least one metric."""
    if len(header) < 2:
        raise TraceError(
            f"{where}: the header must name a time column and at least one metric, as in `time,cpu`"
        )
    twice = sorted({title for title in header if header.count(title) > 1})
    if twice or not all(header):
        raise TraceError(
            f"{where}: {'column ' + twice[0] + ' stands twice' if twice else 'a column has no name'}"
        )


def _moment(cell: object, where: str) -> float:
    if isinstance(cell, datetime):
        return _timestamp(cell, where)
    text = str(cell).strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            return parse_time(text).timestamp()
        except ValueError:
            raise TraceError(f"{where}: {text!r} is no time; write RFC 3339 or seconds") from None
    if not math.isfinite(seconds) or seconds < 0:
        raise TraceError(f"{where}: {text!r} is no time; write RFC 3339 or seconds")
    return seconds + RELATIVE_START if seconds < RELATIVE_BELOW else seconds


def _timestamp(time: datetime, where: str) -> float:
    try:
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError):  # pandas' missing time is a datetime without a value
        raise TraceError(f"{where}: {time} is no time") from None


def _later(moment: float, times: list[float], where: str) -> float:
    if times and moment <= times[-1]:
        raise TraceError(f"{where}: its time is not later than the row before; sort the rows by time")
    if len(times) >= MAX_ROWS:
        raise TraceError(f"{where}: more than {MAX_ROWS} rows")
    return moment


def _value(cell: object, where: str) -> int | None:
    is_text, text = isinstance(cell, str), str(cell).strip()
    if cell is None or not text or (not is_text and text in MISSING):
        return None
    try:
        value = milli_value_of(text) if is_text else round(_number(cell) * 1000)
    except ValueError as error:
        raise TraceError(f"{where}: {error}") from error
    if value < 0:
        raise TraceError(f"{where}: {text!r}: load is never negative")
    return value


def _number(cell: object) -> float:
    try:
        number = float(cell)  # type: ignore[arg-type]  # numbers of any library convert; all else raises
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{str(cell)!r} is no number")
    return number


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
