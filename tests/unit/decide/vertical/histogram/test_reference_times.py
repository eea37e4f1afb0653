"""Reference times of decaying histograms: rounded from the year 1, whatever the half-life."""

import pytest

from tests.unit.decide.vertical.usage_builders import DAY_NS, HOUR_NS, START_NS
from trimtab.decide.vertical.histogram.buckets import CPU_BUCKETS
from trimtab.decide.vertical.histogram.histogram import Histogram, validate_checkpoint
from trimtab.model.times import ZERO_TIME_NS
from trimtab.model.vpa.types import HistogramCheckpoint

HALF_LIVES = [DAY_NS, 7 * HOUR_NS, 13 * HOUR_NS, 100 * HOUR_NS]


def rounded(time_ns, half_life_ns):
    """Round a time to a half-life since the year 1, halves upwards, in whole numbers."""
    since = time_ns - ZERO_TIME_NS
    return ZERO_TIME_NS + (since + half_life_ns // 2) // half_life_ns * half_life_ns


@pytest.mark.parametrize("half_life_ns", HALF_LIVES, ids=lambda ns: f"{ns // HOUR_NS} h")
@pytest.mark.parametrize("hours", range(0, 101, 5))
def test_a_reference_time_is_a_multiple_of_the_half_life(half_life_ns, hours):
    histogram = Histogram.standalone(CPU_BUCKETS, half_life_ns)
    moment = START_NS + hours * HOUR_NS
    histogram.add(1.0, 1.0, moment)
    assert histogram.reference_ns == rounded(moment, half_life_ns)


@pytest.mark.parametrize("half_life_ns", HALF_LIVES, ids=lambda ns: f"{ns // HOUR_NS} h")
@pytest.mark.parametrize(("offset", "is_up"), [(-1, False), (0, True), (1, True)])
def test_a_half_is_rounded_up(half_life_ns, offset, is_up):
    histogram = Histogram.standalone(CPU_BUCKETS, half_life_ns)
    base = rounded(START_NS, half_life_ns)
    histogram.add(1.0, 1.0, base + half_life_ns // 2 + offset)
    assert histogram.reference_ns == base + (half_life_ns if is_up else 0)


@pytest.mark.parametrize(("half_lives", "moves"), [(100, False), (101, True)])
def test_a_reference_moves_after_more_than_100_half_lives(half_lives, moves):
    histogram = Histogram.standalone(CPU_BUCKETS, DAY_NS)
    base = rounded(START_NS, DAY_NS)
    histogram.add(1.0, 1.0, base)
    histogram.add(2.0, 1.0, base + half_lives * DAY_NS)
    assert histogram.reference_ns == base + (half_lives * DAY_NS if moves else 0)
    assert histogram.percentile(0.5) == pytest.approx(2.0, rel=0.06), "the younger sample outweighs the older"


def test_a_sample_of_one_half_life_later_weighs_twice():
    histogram = Histogram.standalone(CPU_BUCKETS, DAY_NS)
    base = rounded(START_NS, DAY_NS)
    histogram.add(1.0, 1.0, base)
    histogram.add(1.0, 1.0, base + DAY_NS)
    histogram.add(1.0, 1.0, base - DAY_NS)
    assert histogram.total_weight == pytest.approx(1 + 2 + 0.5)


@pytest.mark.parametrize(
    ("checkpoint", "is_valid"),
    [
        pytest.param({"bucket_weights": {CPU_BUCKETS.count - 1: 1}}, True, id="the last bucket"),
        pytest.param({"bucket_weights": {CPU_BUCKETS.count: 1}}, False, id="the bucket after the last"),
        pytest.param({"bucket_weights": {0: 1}}, True, id="the first bucket"),
        pytest.param({"bucket_weights": {-1: 1}}, False, id="the bucket before the first"),
        pytest.param({"bucket_weights": {0: 0}}, True, id="a weight of 0"),
        pytest.param({"bucket_weights": {0: -1}}, False, id="a negative weight"),
        pytest.param({"bucket_weights": {0: -1, 1: 1}}, False, id="a negative weight first"),
        pytest.param({"bucket_weights": {0: 1, 1: -1}}, False, id="a negative weight last"),
        pytest.param({"total_weight": 0.0}, True, id="a total of 0"),
        pytest.param({"total_weight": -0.5}, False, id="a negative total"),
        pytest.param({"total_weight": float("inf")}, False, id="an infinite total"),
        pytest.param({"total_weight": float("nan")}, False, id="a total that is not a number"),
    ],
)
def test_the_bounds_of_a_checkpoint(checkpoint, is_valid):
    assert (validate_checkpoint(HistogramCheckpoint(**checkpoint), CPU_BUCKETS) is None) is is_valid
