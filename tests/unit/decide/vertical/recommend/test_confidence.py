"""How much history is known: its span or its samples, whichever is less."""

from datetime import timedelta

import numpy as np
import pytest

from tests.unit.decide.vertical.policy_builders import NOW
from tests.unit.decide.vertical.usage_builders import DAY_NS, MINUTE_NS
from trimtab.decide.vertical.cluster_state.aggregates import Aggregate, AggregateTable
from trimtab.decide.vertical.recommend.estimators import confidence
from trimtab.model.vpa.types import VerticalPodAutoscalerCheckpointStatus

SPANS = [
    pytest.param(24, 1440, 1.0, id="a day, a sample per minute"),
    pytest.param(12, 720, 0.5, id="half a day"),
    pytest.param(48, 2880, 2.0, id="two days"),
    pytest.param(24, 144, 0.1, id="few samples in a day"),
    pytest.param(6, 1440, 0.25, id="many samples in a short time"),
    pytest.param(0, 1, 0.0, id="a single sample"),
]


def known(hours, samples, table=None, *, first=True, last=True) -> Aggregate:
    aggregate = Aggregate(AggregateTable(block_columns=2) if table is None else table)
    status = VerticalPodAutoscalerCheckpointStatus(
        version="v3",
        total_samples_count=samples,
        first_sample_start=NOW - timedelta(hours=hours) if first else None,
        last_sample_start=NOW if last else None,
    )
    assert aggregate.load(status) is None
    return aggregate


def confidence_of(*aggregates, interval_ns=DAY_NS):
    rows = np.array([aggregate.row for aggregate in aggregates])
    return confidence(aggregates[0].table, rows, interval_ns).tolist()


@pytest.mark.parametrize(("hours", "samples", "want"), SPANS)
def test_confidence_is_the_span_or_the_samples_in_days(hours, samples, want):
    assert confidence_of(known(hours, samples)) == [pytest.approx(want)]


@pytest.mark.parametrize(
    ("interval_ns", "want"),
    [
        pytest.param(2 * DAY_NS, 0.5, id="two days"),
        pytest.param(DAY_NS // 2, 2.0, id="half a day"),
        pytest.param(90 * 10**9, 960.0, id="a minute and a half"),
        pytest.param(30 * 10**9, 2880.0, id="half a minute"),
    ],
)
def test_the_interval_of_confidence_may_be_another(interval_ns, want):
    assert confidence_of(known(24, 1440), interval_ns=interval_ns) == [pytest.approx(want)]


@pytest.mark.parametrize(("samples", "want"), [(60, 60 / 1.5), (1440, 960.0)])
def test_samples_count_by_the_interval_in_minutes(samples, want):
    assert confidence_of(known(24, samples), interval_ns=MINUTE_NS * 3 // 2) == [pytest.approx(want)]


def test_nothing_is_known_without_samples():
    aggregate = Aggregate(AggregateTable(block_columns=2))
    assert confidence_of(aggregate) == [0.0]
    assert confidence_of(known(0, 1440, first=False, last=False)) == [0.0]


def test_times_that_are_missing_count_as_the_year_1():
    """As in upstream, where the difference of times ends at the largest duration."""
    assert confidence_of(known(24, 144, first=False)) == [pytest.approx(0.1)]
    (low,) = confidence_of(known(24, 1440, last=False))
    assert low == pytest.approx(-(2**63) / DAY_NS)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_each_aggregate_has_its_own_confidence(is_reversed):
    table = AggregateTable(block_columns=2)
    aggregates = [known(hours, samples, table) for hours, samples in ((24, 1440), (0, 0), (12, 720))]
    want = [1.0, 0.0, 0.5]
    if is_reversed:
        aggregates.reverse()
        want.reverse()
    assert confidence_of(*aggregates) == pytest.approx(want)
