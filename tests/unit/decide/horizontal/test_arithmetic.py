"""Integers of 32 and 64 bits at their limits, division toward zero and by zero, times as seconds."""

from datetime import UTC, datetime
from math import copysign, inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.decide.horizontal import arithmetic
from trimtab.decide.horizontal.arithmetic import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    NEVER,
    finite,
    int32_of,
    int64_of,
    quotient,
    ratio_of,
    round_up,
    seconds,
    seconds_of,
    wire_time,
)


def test_the_limits_are_those_of_the_machine():
    assert (INT32_MAX, INT32_MIN) == (2147483647, -2147483648)
    assert (INT64_MAX, INT64_MIN) == (9223372036854775807, -9223372036854775808)


@pytest.mark.parametrize(
    ("number", "want"),
    [
        pytest.param(2.9, 2, id="cut"),
        pytest.param(-2.9, -2, id="cut toward zero"),
        pytest.param(INT32_MAX + 0.5, INT32_MAX, id="the largest"),
        pytest.param(INT32_MIN - 0.5, INT32_MIN, id="the smallest"),
        pytest.param(INT32_MAX + 1.0, INT32_MAX, id="too large"),
        pytest.param(INT32_MIN - 1.0, INT32_MIN, id="too small"),
        pytest.param(inf, INT32_MAX, id="infinity"),
        pytest.param(-inf, INT32_MIN, id="minus infinity"),
        pytest.param(nan, 0, id="no number"),
    ],
)
def test_floats_become_32_bits(number, want):
    assert int32_of(number) == want


@pytest.mark.parametrize(
    ("number", "want"),
    [
        pytest.param(2.0**62, 2**62, id="large"),
        pytest.param(-(2.0**63), INT64_MIN, id="the smallest"),
        pytest.param(2.0**63, INT64_MAX, id="just too large"),
        pytest.param(-(2.0**64), INT64_MIN, id="too small"),
        pytest.param(nan, 0, id="no number"),
    ],
)
def test_floats_become_64_bits(number, want):
    assert int64_of(number) == want


@given(st.integers(-(2**70), 2**70))
def test_integers_stop_at_the_limits(number):
    assert int32_of(number) == min(max(number, INT32_MIN), INT32_MAX)
    assert int64_of(number) == min(max(number, INT64_MIN), INT64_MAX)


@pytest.mark.parametrize(
    ("number", "want"), [(2.1, 3.0), (2.0, 2.0), (-2.9, -2.0), (1e300, 1e300), (inf, inf), (-inf, -inf)]
)
def test_rounding_up_leaves_what_is_whole_or_too_large(number, want):
    assert round_up(number) == want
    assert isnan(round_up(nan))


@given(st.integers(-(2**40), 2**40), st.integers(-(2**20), 2**20).filter(bool))
def test_division_cuts_toward_zero(dividend, divisor):
    result = quotient(dividend, divisor)
    assert abs(result) == abs(dividend) // abs(divisor)
    assert result == 0 or (result > 0) == ((dividend > 0) == (divisor > 0))


@pytest.mark.parametrize(
    ("dividend", "divisor", "want"),
    [
        pytest.param(3, 2, 1.5, id="a ratio"),
        pytest.param(3, 0, inf, id="by zero"),
        pytest.param(-3, 0, -inf, id="negative by zero"),
        pytest.param(10**400, 3, inf, id="a dividend beyond all floats"),
        pytest.param(-(10**400), 3, -inf, id="a negative one"),
        pytest.param(3, 10**400, 0.0, id="a divisor beyond all floats"),
        pytest.param(10**400, 10**400, inf, id="both"),
    ],
)
def test_ratios_are_those_of_floats(dividend, divisor, want):
    assert ratio_of(dividend, divisor) == want


def test_nothing_by_nothing_is_no_number():
    assert isnan(ratio_of(0, 0))
    assert copysign(1, ratio_of(-1, 0)) == -1
    assert [finite(number) for number in (1.5, inf, -inf, nan)] == [1.5, None, None, None]


def test_times_are_seconds_and_an_absent_time_is_never():
    noon = datetime(2026, 1, 15, 12, tzinfo=UTC)
    assert seconds(noon) == seconds_of("2026-01-15T12:00:00Z") == noon.timestamp()
    assert seconds(None) == seconds_of(None) == NEVER == arithmetic.NEVER < -62e9
    assert wire_time(noon.timestamp() + 0.999) == noon
    assert wire_time(-0.5) == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
