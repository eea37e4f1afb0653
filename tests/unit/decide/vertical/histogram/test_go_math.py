"""Go's rounding of Log, Exp2 and Pow, in scalar and array form."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.decide.vertical.histogram import go_math
from trimtab.decide.vertical.histogram.buckets import CPU_BUCKETS


def exp2(value: float) -> float:
    return float(go_math.exp2_array(np.array([value]))[0])


@given(st.lists(st.floats(min_value=1e-300, max_value=1e300), min_size=1, max_size=8))
def test_log_of_an_array_has_the_bits_of_log(values):
    assert go_math.log_array(np.array(values)).tolist() == [go_math.log(value) for value in values]


@given(st.floats(min_value=-1000, max_value=1000))
def test_exp2_is_within_an_ulp_or_two_of_the_c_library(value):
    assert exp2(value) == pytest.approx(2.0**value, rel=1e-15)


@given(st.lists(st.floats(min_value=1e-9, max_value=1e9), min_size=1, max_size=8), st.integers(-6, 6))
def test_pow_of_an_array_has_the_bits_of_pow(values, power):
    assert go_math.pow_whole_array(np.array(values), power).tolist() == [
        go_math.pow_whole(value, power) for value in values
    ]


@given(st.floats(min_value=1e-100, max_value=1e100))
def test_log_is_within_an_ulp_or_two_of_the_c_library(value):
    assert go_math.log(value) == pytest.approx(math.log(value), rel=1e-15, abs=1e-15)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        pytest.param(exp2(1024), math.inf, id="too large a power of two is infinite"),
        pytest.param(exp2(-1075), 0.0, id="too small a power of two is zero"),
        pytest.param(exp2(-3), 0.125, id="whole powers of two are exact"),
        pytest.param(go_math.log(0), -math.inf, id="the logarithm of nothing is -infinity"),
        pytest.param(go_math.log(math.inf), math.inf, id="the logarithm of infinity is infinity"),
        pytest.param(float(CPU_BUCKETS.starts[25]), 0.47727098817987673, id="bucket bounds follow Go's Pow"),
        pytest.param(
            go_math.pow_whole(math.inf, -2), 0.0, id="no confidence at all makes the lower bound nothing"
        ),
        pytest.param(go_math.pow_whole(0.0, -3), math.inf, id="a negative power of zero is infinite"),
        pytest.param(go_math.pow_whole(1e200, 3), math.inf, id="overflow is infinite"),
        pytest.param(go_math.pow_whole(2.0, 0), 1.0, id="anything to the power 0 is 1"),
    ],
)
def test_edges(got, want):
    assert got == want


def test_logarithms_of_what_has_none_are_not_a_number():
    assert math.isnan(go_math.log(-1))
    assert math.isnan(go_math.pow_whole(math.nan, 2))
