"""The figures of a simulated day whose replicas change."""

import pytest

from tests.unit.library.simulator.builders import HALF_CORE, candidate, minutes
from trimtab.library.simulator import run


@pytest.mark.parametrize(
    ("load", "want"),
    [
        pytest.param([1, 1, 2, 2, 2, 2, 2, 2], (4, 8), id="it grows, the lowest comes first"),
        pytest.param([4, *[1] * 12], (4, 16), id="it shrinks, the lowest comes last"),
        pytest.param([2, *[1] * 8, *[3] * 8], (4, 12), id="the lowest lies between"),
    ],
)
def test_the_lowest_and_the_highest_replicas_are_found_wherever_they_are(load, want):
    figures = run(candidate(), minutes(*load), HALF_CORE).figures
    assert (figures.lowest, figures.peak) == want
