"""Traces are read as written, or refused with the line and the reason."""

import pytest

from trimtab.library.simulator import Trace, TraceError, read_trace
from trimtab.library.trace import RELATIVE_START


def test_values_are_quantities_and_an_empty_cell_is_no_value():
    trace = read_trace(["time,cpu,memory", "0,1500m,64Mi", "60,,1e3", ""], "load.csv")
    assert trace.columns == {"cpu": [1500, None], "memory": [67_108_864_000, 1_000_000]}
    assert trace.times == [RELATIVE_START, RELATIVE_START + 60]


def test_a_value_holds_until_the_next_row():
    trace = read_trace(["time,cpu", "2026-01-05T00:00:00Z,1", "2026-01-05T00:01:00Z,2"], "load.csv")
    assert [trace.at("cpu", trace.start + after) for after in (-5, 0, 59.9, 60, 600)] == [
        1000,
        1000,
        1000,
        2000,
        2000,
    ]


@pytest.mark.parametrize("column", ["cpu", "queue{queue=mail}", "queue{a=1,b=2}", 'queue{a in (1,2)}, "b"'])
def test_what_is_written_is_read_back(column):
    """A column with two labels holds a comma; it was written without quotes and could not be read."""
    trace = Trace([1767225600.5, 1767225660.5], {column: [1500, None]})
    assert read_trace(list(trace.lines()), "again.csv") == trace


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        pytest.param([], "load.csv:1: the header must name", id="nothing at all"),
        pytest.param(["time", "0"], "load.csv:1: the header must name", id="no metric"),
        pytest.param(["time,cpu,cpu", "0,1,1"], "load.csv:1: column cpu stands twice", id="a column twice"),
        pytest.param(["time,", "0,1"], "load.csv:1: a column has no name", id="a column without a name"),
        pytest.param(["time,cpu", "0,1"], "at least two rows", id="one row"),
        pytest.param(
            ["time,cpu", "0,1", "60"], "load.csv:3: 1 cell where the header has 2", id="a short row"
        ),
        pytest.param(["time,cpu", "0,1", "0,2"], "load.csv:3: its time is not later", id="the same time"),
        pytest.param(["time,cpu", "noon,1"], "load.csv:2: 'noon' is no time", id="no time"),
        pytest.param(["time,cpu", "nan,1"], "load.csv:2: 'nan' is no time", id="not a number"),
        pytest.param(["time,cpu", "0,lots"], "load.csv:2: cpu: quantities must match", id="no quantity"),
        pytest.param(
            ["time,cpu", "0,-1"], "load.csv:2: cpu: '-1': load is never negative", id="negative load"
        ),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(lines, complaint):
    with pytest.raises(TraceError) as refusal:
        read_trace(lines, "load.csv")
    assert complaint in str(refusal.value)
