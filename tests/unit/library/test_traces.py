"""Recorded load comes from files, dataframes of any library and Prometheus."""

import asyncio
import math
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

import trimtab
from trimtab.library.trace import RELATIVE_START

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
TIMES = [NOON, NOON + timedelta(minutes=1)]
EXPECTED = trimtab.Trace(
    [time.timestamp() for time in TIMES], {"cpu": [1500, None], "memory": [2000, 64_000]}
)


class Column:
    """A column as polars and pyarrow have it: no more than a method that returns a list."""

    def __init__(self, method, values):
        setattr(self, method, lambda: values)


class Frame:
    """A dataframe that has the least that `from_dataframe` needs."""

    def __init__(self, names, method, values):
        setattr(self, names, list(values))
        self._columns = {name: Column(method, column) for name, column in values.items()}

    def __getitem__(self, name):
        return self._columns[name]


VALUES = {"time": TIMES, "cpu": [1.5, None], "memory": [2, 64]}


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(VALUES, id="a dictionary of lists"),
        pytest.param(Frame("columns", "to_list", VALUES), id="as polars has it"),
        pytest.param(Frame("column_names", "to_pylist", VALUES), id="as pyarrow has it"),
        pytest.param(pd.DataFrame(VALUES), id="pandas"),
        pytest.param(pd.DataFrame(VALUES).set_index("time"), id="pandas with times as its index"),
        pytest.param(pd.DataFrame(VALUES).convert_dtypes(), id="pandas with missing values of its own"),
        pytest.param(VALUES | {"cpu": ["1500m", ""], "memory": ["2", "64"]}, id="quantities"),
        pytest.param(
            VALUES | {"time": [time.replace(tzinfo=None) for time in TIMES]}, id="times without a zone"
        ),
        pytest.param(VALUES | {"time": [time.isoformat() for time in TIMES]}, id="times as text"),
        pytest.param(VALUES | {"time": [time.timestamp() for time in TIMES]}, id="times as seconds"),
    ],
)
def test_a_dataframe_of_any_library_is_read(frame):
    assert trimtab.Trace.from_dataframe(frame) == EXPECTED


def test_the_column_of_times_can_be_named():
    renamed = {"when" if name == "time" else name: values for name, values in VALUES.items()}
    assert trimtab.Trace.from_dataframe(renamed, time="when") == EXPECTED


@pytest.mark.parametrize(
    ("frame", "options", "complaint"),
    [
        pytest.param({"cpu": [1, 2]}, {}, "has no column 'time'; name the column", id="no times"),
        pytest.param(pd.DataFrame({"cpu": [1, 2]}), {}, "has no column 'time'", id="an index of numbers"),
        pytest.param(
            VALUES, {"time": "when"}, "no column 'when'; its columns are time, cpu", id="no such column"
        ),
        pytest.param({"time": TIMES}, {}, "at least one metric", id="no metric"),
        pytest.param(
            VALUES | {"cpu": [1, -1]}, {}, "row 1: cpu: '-1': load is never negative", id="negative"
        ),
        pytest.param(VALUES | {"cpu": [1, math.inf]}, {}, "row 1: cpu: 'inf' is no number", id="infinite"),
        pytest.param(VALUES | {"cpu": [[1], 2]}, {}, r"row 0: cpu: '\[1\]' is no number", id="not a number"),
        pytest.param(VALUES | {"time": TIMES[::-1]}, {}, "row 1: its time is not later", id="not sorted"),
        pytest.param(VALUES | {"time": [TIMES[0], pd.NaT]}, {}, "row 1: NaT is no time", id="a missing time"),
        pytest.param(VALUES | {"time": TIMES * 2}, {}, "columns of different lengths", id="a longer column"),
    ],
)
def test_a_dataframe_that_is_no_trace_is_refused_with_its_row(frame, options, complaint):
    with pytest.raises(trimtab.TraceError, match=complaint):
        trimtab.Trace.from_dataframe(frame, **options)


def test_what_is_no_dataframe_is_named():
    with pytest.raises(TypeError, match="list is no dataframe"):
        trimtab.Trace.from_dataframe([1, 2])


def test_a_trace_goes_to_pandas_and_back():
    frame = EXPECTED.to_pandas()
    assert frame.index[0] == NOON
    assert frame["memory"].tolist() == [2.0, 64.0]
    assert trimtab.Trace.from_dataframe(frame) == EXPECTED


def test_a_csv_is_read(tmp_path):
    path = tmp_path / "load.csv"
    path.write_text("time,cpu\n0,1500m\n60,\n")
    trace = trimtab.Trace.from_csv(path)
    assert trace == trimtab.Trace([RELATIVE_START, RELATIVE_START + 60], {"cpu": [1500, None]})
    assert repr(trace) == "<Trace: 2 rows of cpu from 2026-01-05T00:00:00Z to 2026-01-05T00:01:00Z>"


def test_a_csv_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "load.csv"
    path.write_bytes(b"time,cpu\n0,\xff\n")
    with pytest.raises(trimtab.TraceError, match=r"load\.csv: is not UTF-8 text"):
        trimtab.Trace.from_csv(path)


def read(url):
    return trimtab.Trace.from_prometheus(url, {"cpu": "sum(x)"}, since="10m", step=timedelta(minutes=5))


def test_prometheus_is_read(prometheus):
    trace = read(prometheus)
    assert trace.columns == {"cpu": [1000, 2000, None]}
    assert trace.end - trace.start == 600


def test_prometheus_is_read_in_a_notebook_which_runs_an_event_loop(prometheus):
    async def cell():
        return read(prometheus)

    assert asyncio.run(cell()).columns == {"cpu": [1000, 2000, None]}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param({"since": "week"}, "since: 'week' is not a duration", id="no duration"),
        pytest.param({"step": timedelta()}, "step: .* must be longer than nothing", id="no step"),
        pytest.param({"url": "nowhere"}, "nowhere", id="no address"),
        pytest.param({"queries": {}}, "queries: name at least one column", id="no query"),
    ],
)
def test_a_wrong_argument_is_named(options, complaint):
    arguments = {"url": "http://127.0.0.1:9", "queries": {"cpu": "sum(x)"}} | options
    with pytest.raises(trimtab.TraceError, match=complaint):
        trimtab.Trace.from_prometheus(arguments.pop("url"), arguments.pop("queries"), **arguments)
