"""Ranges, names and bounds of a history of Prometheus."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.metrics.test_range_queries import NOON, Past, read
from tests.unit.metrics.test_usage_history import NAMES, Answering, series
from tests.unit.metrics.test_usage_history import read as read_usage
from trimtab.clock import VirtualClock
from trimtab.cluster.errors import TransportError
from trimtab.metrics import range_queries
from trimtab.metrics.prometheus import PrometheusClient
from trimtab.metrics.range_queries import HistoryError, Range
from trimtab.metrics.usage_history import SeriesNames, Span, UsageHistoryReader
from trimtab.model.usage_history import ContainerName, Labelled


def test_the_limits_of_a_history():
    assert (range_queries.MOST_STEPS, range_queries.MOST_HALVINGS) == (10_000, 4)
    assert range_queries.MOST_SAMPLES == 50_000_000


@pytest.mark.parametrize("step", [0.0, -60.0])
def test_a_range_needs_a_positive_step(step):
    with pytest.raises(ValueError, match="is empty"):
        Range(NOON, NOON + timedelta(hours=1), step)


@pytest.mark.parametrize(("seconds", "want"), [(0, 1), (59, 1), (60, 2), (119.5, 2)])
def test_a_range_counts_both_of_its_ends(seconds, want):
    assert Range(NOON, NOON + timedelta(seconds=seconds), 60.0).steps == want


@pytest.mark.parametrize("most", [122, 121])
def test_exactly_the_most_samples_are_read(most):
    if most == 122:
        assert sum(len(found) for found in read(Past(), 1, most_samples=most)) == most
    else:
        with pytest.raises(HistoryError, match="more than 121 samples in 0 series"):
            read(Past(), 1, most_samples=most)


def test_a_value_that_is_no_number_is_an_error_with_its_series_and_time():
    past = Past(value=lambda at: "much" if at == NOON.timestamp() else "1")
    with pytest.raises(HistoryError, match=r"{'pod': 'b'} at 2026-01-01T12:00:00Z: 'much' is no number"):
        read(past, 1)


def test_a_series_without_any_number_is_left_out():
    assert read(Past(value=lambda at: "NaN"), 1) == []


def test_a_server_that_is_gone_is_asked_five_times_in_halves():
    class Gone(Past):
        async def request(self, request):
            self.asked.append((0.0, 0.0))
            raise TransportError("connection refused")

    past = Gone()
    with pytest.raises(HistoryError, match="connection refused"):
        read(past, 1)
    assert len(past.asked) == 5


def test_a_single_point_that_is_too_much_is_not_asked_for_again():
    past = Past(most=0)
    with pytest.raises(HistoryError, match="too many samples"):
        read(past, 0)
    assert len(past.asked) == 1


@pytest.mark.parametrize("field", ["cpu", "memory"])
@pytest.mark.parametrize("name", ["", "a-b", "a{b}", "9a", "a\n"])
def test_a_metric_has_a_name_of_prometheus(field, name):
    with pytest.raises(ValueError, match="is not the name of a metric in Prometheus"):
        SeriesNames(**{field: name})


@pytest.mark.parametrize(
    "field", ["pod_namespace", "pod_name", "container_namespace", "container_pod", "container_name"]
)
@pytest.mark.parametrize("name", ["", "a-b", 'a="', "a:b"])
def test_a_label_has_a_name_of_prometheus(field, name):
    with pytest.raises(ValueError, match="is not the name of a label in Prometheus"):
        SeriesNames(**{field: name})


def test_names_in_a_query_are_quoted():
    selector = SeriesNames(job='a"b\\c\nd').usage("cpu", 'sh"op')
    assert selector.startswith(r'cpu{job="a\"b\\c\nd", namespace="sh\"op", ')


@pytest.mark.parametrize(
    ("span", "start"),
    [
        pytest.param(
            Span(), datetime(2025, 12, 24, 13, tzinfo=UTC), id="eight days by the hour, the present included"
        ),
        pytest.param(
            Span(timedelta(hours=3), timedelta(hours=1)),
            datetime(2026, 1, 1, 10, tzinfo=UTC),
            id="three hours",
        ),
        pytest.param(Span(timedelta(minutes=5), timedelta(hours=1)), NOON, id="less than a step"),
        pytest.param(
            Span(timedelta(minutes=150), timedelta(hours=1)),
            datetime(2026, 1, 1, 11, tzinfo=UTC),
            id="two and a half steps",
        ),
    ],
)
def test_a_span_ends_with_the_last_full_step(span, start):
    wanted = span.until(NOON + timedelta(minutes=59, seconds=59))
    assert (wanted.start, wanted.end, wanted.step) == (start, NOON, 3600.0)


def test_a_history_is_waited_for_five_minutes_by_default():
    assert UsageHistoryReader(PrometheusClient(VirtualClock(), Past())).seconds == 300.0


TEN, ELEVEN, TWELVE = (datetime(2026, 1, 1, hour, tzinfo=UTC).timestamp() for hour in (10, 11, 12))


def test_several_pods_and_containers_are_kept_apart():
    usage = [
        series({"pod": pod, "container": container}, (TEN, value))
        for pod, container, value in (("a", "app", "1"), ("a", "proxy", "2"), ("b", "app", "3"))
    ]
    found = read_usage(Answering(usage))
    assert {name: values[0] for name, values in found.cpu.items()} == {
        ContainerName("a", "app"): 1.0,
        ContainerName("a", "proxy"): 2.0,
        ContainerName("b", "app"): 3.0,
    }


def test_labels_that_stay_are_one_period_and_pods_are_kept_apart():
    labels = [
        series({"pod": "a", "label_role": "leader"}, (TEN, "1"), (ELEVEN, "1"), (TWELVE, "1")),
        series({"pod": "b", "label_role": "leader"}, (TEN, "1")),
        series({"pod": "b", "label_role": "follower"}, (ELEVEN, "1"), (TWELVE, "1")),
    ]
    found = read_usage(Answering([], [], labels), NAMES)
    assert found.labels == {
        "a": (Labelled(0, {"role": "leader"}),),
        "b": (Labelled(0, {"role": "leader"}), Labelled(1, {"role": "follower"})),
    }


def test_labels_without_the_prefix_are_not_the_pods():
    labels = [series({"pod": "a", "job": "x", "label_role": "leader"}, (TEN, "1"))]
    assert read_usage(Answering([], [], labels)).labels == {"a": (Labelled(0, {"role": "leader"}),)}
