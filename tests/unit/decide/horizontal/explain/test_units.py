"""Amounts in the units that people read."""

from math import ceil, floor, inf

import pytest

from trimtab.decide.horizontal.units import _BINARY, _bytes, _whole


@pytest.mark.parametrize(
    ("number", "want"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (-2048, "-2 KiB"),
        (1.5 * 2**30, "1.5 GiB"),
        (1023.4 * 2**20, "1023 MiB"),
        (2**20 - 1, "1024 KiB"),
    ],
)
def test_bytes_have_the_prefix_below_1024(number, want):
    assert _bytes(number) == want


def test_bytes_beyond_the_last_prefix_keep_it():
    last = _BINARY[-1]
    assert _bytes(5000.0 * 1024 ** (len(_BINARY) - 1)) == f"5000 {last}B"


@pytest.mark.parametrize(
    ("edge", "towards", "want"),
    [
        pytest.param(4.4, floor, 4.0, id="down"),
        pytest.param(4.4, ceil, 5.0, id="up"),
        pytest.param(5.0 - 1e-10, floor, 5.0, id="a float error below a whole number"),
        pytest.param(5.0 + 1e-10, ceil, 5.0, id="a float error above a whole number"),
        pytest.param(4.99, floor, 4.0, id="more than a float error"),
        pytest.param(1e15 + 0.125, ceil, 1e15, id="a float error of a large number"),
        pytest.param(inf, floor, inf, id="no edge"),
    ],
)
def test_an_edge_is_whole_but_for_float_errors(edge, towards, want):
    assert _whole(edge, towards) == want
