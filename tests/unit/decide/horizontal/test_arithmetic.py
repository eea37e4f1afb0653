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
    fold32,
    fold64,
    int32_of,
    int64_of,
    quotient,
    ratio_of,
    round_up,
    saturated,
    seconds,
    seconds_of,
    wire_time,
)


def test_the_limits_are_those_of_the_machine():
    assert (INT32_MAX, INT32_MIN) == (2147483647, -2147483648)
    assert (INT64_MAX, INT64_MIN) == (9223372036854775807, -9223372036854775808)


@pytest.mark.parametrize(
    ("number", "ours", "upstreams"),
    [
        pytest.param(2.9, 2, 2, id="cut"),
        pytest.param(-2.9, -2, -2, id="cut toward zero"),
        pytest.param(INT32_MAX + 0.5, INT32_MAX, INT32_MAX, id="the largest"),
        pytest.param(INT32_MIN - 0.5, INT32_MIN, INT32_MIN, id="the smallest"),
        pytest.param(INT32_MAX + 1.0, INT32_MAX, INT32_MIN, id="too large"),
        pytest.param(INT32_MIN - 1.0, INT32_MIN, INT32_MIN, id="too small"),
        pytest.param(inf, INT32_MAX, INT32_MIN, id="infinity"),
        pytest.param(-inf, INT32_MIN, INT32_MIN, id="minus infinity"),
        pytest.param(nan, 0, INT32_MIN, id="no number"),
    ],
)
def test_floats_become_32_bits(number, ours, upstreams):
    assert (int32_of(number, saturate=True), int32_of(number, saturate=False)) == (ours, upstreams)


@pytest.mark.parametrize(
    ("number", "ours", "upstreams"),
    [
        pytest.param(2.0**62, 2**62, 2**62, id="large"),
        pytest.param(-(2.0**63), INT64_MIN, INT64_MIN, id="the smallest"),
        pytest.param(2.0**63, INT64_MAX, INT64_MIN, id="just too large"),
        pytest.param(-(2.0**64), INT64_MIN, INT64_MIN, id="too small"),
        pytest.param(nan, 0, INT64_MIN, id="no number"),
    ],
)
def test_floats_become_64_bits(number, ours, upstreams):
    assert (int64_of(number, saturate=True), int64_of(number, saturate=False)) == (ours, upstreams)


@given(st.integers(-(2**70), 2**70))
def test_folding_keeps_what_fits_and_wraps_or_stops_otherwise(number):
    fits32, fits64 = INT32_MIN <= number <= INT32_MAX, INT64_MIN <= number <= INT64_MAX
    assert (fold32(number, saturate=False) - number) % 2**32 == 0
    assert INT32_MIN <= fold32(number, saturate=False) <= INT32_MAX
    assert (fold64(number, saturate=False) - number) % 2**64 == 0
    assert INT64_MIN <= fold64(number, saturate=False) <= INT64_MAX
    assert fold64(number, saturate=True) == number
    assert fold32(number, saturate=True) == (number if fits32 else INT32_MAX if number > 0 else INT32_MIN)
    assert saturated(number) == (number if fits64 else INT64_MAX if number > 0 else INT64_MIN)


@pytest.mark.parametrize("edge", [INT32_MAX, INT32_MIN])
def test_the_edges_of_32_bits_fit_and_the_next_number_does_not(edge):
    beyond = edge + (1 if edge > 0 else -1)
    other = INT32_MIN if edge > 0 else INT32_MAX
    for saturate in (True, False):
        assert fold32(edge, saturate=saturate) == edge
    assert (fold32(beyond, saturate=True), fold32(beyond, saturate=False)) == (edge, other)


@pytest.mark.parametrize("edge", [INT64_MAX, INT64_MIN])
def test_the_edges_of_64_bits_fit_and_the_next_number_does_not(edge):
    beyond = edge + (1 if edge > 0 else -1)
    other = INT64_MIN if edge > 0 else INT64_MAX
    assert (saturated(edge), fold64(edge, saturate=False)) == (edge, edge)
    assert (saturated(beyond), fold64(beyond, saturate=False)) == (edge, other)


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
