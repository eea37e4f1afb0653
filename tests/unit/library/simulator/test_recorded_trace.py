"""Series become rows: one total per column, holes stay holes."""

from array import array
from datetime import UTC, datetime, timedelta

import pytest

from trimtab.library.prometheus import single_series, trace_from_series
from trimtab.library.simulator import TraceError
from trimtab.metrics.range_queries import Range, RangeSeries

START = datetime(2026, 1, 5, tzinfo=UTC)
FOUR_MINUTES = Range(START, START + timedelta(minutes=3), 60)


def series(**values):
    """Make a series from `minute=value` pairs, as m0=1.5."""
    at = array("d", [START.timestamp() + 60 * int(minute[1:]) for minute in values])
    return RangeSeries({}, at, array("d", values.values()))


def test_series_lie_side_by_side_and_a_hole_stays_a_hole():
    trace = trace_from_series({"cpu": series(m0=1.5, m3=2.0), "rps": series(m1=7)}, FOUR_MINUTES)
    assert trace.columns == {"cpu": [1500, None, None, 2000], "rps": [None, 7000, None, None]}
    assert trace.end - trace.start == 180


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        pytest.param([], "cpu: the query found nothing", id="nothing"),
        pytest.param([series(m0=1), series(m0=2)], "gives 2 series where one total is needed", id="several"),
    ],
)
def test_a_column_is_one_series(found, complaint):
    with pytest.raises(TraceError, match=complaint):
        single_series("cpu", found)


def test_negative_load_is_refused():
    with pytest.raises(TraceError, match="load is never negative"):
        trace_from_series({"cpu": series(m0=-1)}, FOUR_MINUTES)
