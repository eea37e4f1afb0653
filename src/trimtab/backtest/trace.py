"""Recorded load: the total of each metric over time, or the usage of each pod.

A trace is a CSV with a header. The first column is the time, as RFC 3339 or in seconds. Seconds below `RELATIVE_BELOW`
count from the start of the trace. Each further column is a metric with quantities (`1500m`, `2`, `64Mi`) as values. An
empty cell is a metric that could not be read at that time. The column `POD/label/KEY` has the values of a label of a pod. An
empty cell there is a pod without the label.
"""

import csv
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from trimtab.metrics.range_queries import Range, RangeSeries
from trimtab.model.labels.names import label_value_problems
from trimtab.model.quantity import milli_value_of
from trimtab.model.readable import counted
from trimtab.model.times import format_time, parse_time

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
    """Ascending Unix times, and the total of each metric at each time, in thousandths."""

    times: Sequence[float]
    columns: Mapping[str, Sequence[int | None]]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values of labels over time, by column `POD/label/KEY`."""

    def __repr__(self) -> str:
        first, last = (format_time(datetime.fromtimestamp(moment, UTC)) for moment in (self.start, self.end))
        return f"<Trace: {len(self.times):,} rows of {', '.join(self.columns)} from {first} to {last}>"

    @property
    def start(self) -> float:
        return self.times[0]

    @property
    def end(self) -> float:
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


PER_POD, ROLES = "POD/", "POD/label/"
"""What the names of columns begin with that stand for a column per pod, and for the values of a label of each pod."""


def series_by_pod(column: str, series: Sequence[RangeSeries]) -> dict[str, RangeSeries]:
    """Return the series of `POD/CONTAINER/memory` or `POD/NAME/memory` by their columns.

    The labels `pod` and `container` of a series name it.
    """
    found: dict[str, RangeSeries] = {}
    for one in series:
        pod, container = one.labels.get("pod", ""), one.labels.get("container", "")
        name = column.replace("POD", pod, 1).replace("CONTAINER", container, 1)
        if not pod or ("CONTAINER" in column and not container) or name in found:
            raise TraceError(
                f"{column}: the query must give one series per pod and container: wrap it in sum by (pod, container) (...)"
            )
        found[name] = one
    return found


def label_series(column: str, series: Sequence[RangeSeries]) -> dict[str, tuple[RangeSeries, str]]:
    """Return the series of `POD/label/KEY` with the value of the label that each stands for.

    A pod has a value while the series with it has samples, as those of `kube_pod_labels` do.
    """
    key = column.removeprefix(ROLES)
    label = "label_" + re.sub(r"[^a-zA-Z0-9_]", "_", key)
    found = {}
    for number, one in enumerate(series):
        if "pod" not in one.labels or label not in one.labels:
            raise TraceError(f"{column}: the query must give series with the labels pod and {label}")
        found[f"{one.labels['pod']}/label/{key}#{number}"] = one, one.labels[label]
    return found


def single_series(column: str, series: Sequence[RangeSeries]) -> RangeSeries:
    """Return the only series of a query.

    Several are an error, since only the query can say how to add them up.
    """
    if len(series) == 1:
        return series[0]
    if not series:
        raise TraceError(f"{column}: the query found nothing in that time")
    raise TraceError(
        f"{column}: the query gives {len(series)} series where one total is needed: wrap it in sum(...)"
    )


def trace_from_series(
    series: Mapping[str, RangeSeries],
    wanted: Range,
    labels: Mapping[str, tuple[RangeSeries, str]] | None = None,
) -> Trace:
    """Return a trace with one column per series and one row per step of the range."""
    start = wanted.start.timestamp()
    times = [start + number * wanted.step for number in range(wanted.steps)]
    values: dict[str, list[str]] = {}
    for title, (one, value) in (labels or {}).items():
        column = values.setdefault(title.rpartition("#")[0], [""] * wanted.steps)
        for row, sample in enumerate(_aligned(title, one, wanted, start)):
            if sample is not None:
                column[row] = value
    return Trace(
        times, {column: _aligned(column, one, wanted, start) for column, one in series.items()}, values
    )


def _aligned(column: str, series: RangeSeries, wanted: Range, start: float) -> list[int | None]:
    values: list[int | None] = [None] * wanted.steps
    for at, value in zip(series.at, series.values, strict=True):
        if value < 0:
            raise TraceError(f"{column}: {value:g} at {at:.0f}: load is never negative")
        row = round((at - start) / wanted.step)
        if 0 <= row < wanted.steps:
            values[row] = round(value * 1000)
    return values
