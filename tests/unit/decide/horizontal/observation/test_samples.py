"""Answers of the metrics APIs as samples: odd pods, containers and values, first and last in the list."""

import pytest

from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.observation.samples import (
    Asked,
    FetchFailure,
    PodSamples,
    Sample,
    Series,
    each_usage,
    read_external_metric,
    read_object_metric,
    read_pods_metric,
    read_usage,
)
from trimtab.model.json import wire
from trimtab.model.metrics_api import ExternalMetricValueList, MetricValueList, PodMetrics

NOON = 1_768_478_400.0
STAMP = "2026-01-15T12:00:00Z"


def measured(name="web-1", *, stamp=STAMP, window="30s", **containers):
    """Make the metrics of a pod; per container `(cpu, memory)`, None for a value that is missing."""
    parts = [
        {
            "name": part,
            "usage": {key: text for key, text in zip(("cpu", "memory"), given, strict=False) if text},
        }
        for part, given in (containers or {"app": ("100m", "1Gi")}).items()
    ]
    return wire.convert(
        {"metadata": {"name": name}, "timestamp": stamp, "window": window, "containers": parts}, PodMetrics
    )


def used(items, resource="cpu", container=""):
    found = read_usage(items, resource, container)
    return (
        {name: sample.value for name, sample in found.samples.items()}
        if isinstance(found, PodSamples)
        else found
    )


TWO = {"app": ("100m", "1Gi"), "side": ("50m", "1Mi")}


def test_a_pod_uses_what_its_containers_use():
    assert used([measured(**TWO)]) == {"web-1": 150}
    assert used([measured(**TWO)], "memory") == {"web-1": (2**30 + 2**20) * 1000}
    assert used([measured(**TWO)], "cpu", "side") == {"web-1": 50}
    assert used([measured(**TWO)], "cpu", "app") == {"web-1": 100}
    assert read_usage([measured()], "cpu", "") == PodSamples(
        samples={"web-1": Sample(100, NOON, 30.0)}, timestamp=NOON
    )


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(measured("odd", app=(None, "1Gi")), id="one container without cpu"),
        pytest.param(measured("odd", app=("1", None), side=(None, "1Mi")), id="the last of two without cpu"),
        pytest.param(measured("odd", side=(None, "1Mi"), app=("1", None)), id="the first of two without cpu"),
        pytest.param(measured("odd", app=("much", None)), id="no quantity"),
        pytest.param(measured("odd", app=("1e400", None)), id="more than there is"),
        pytest.param(measured("odd", stamp="yesterday"), id="no time"),
        pytest.param(measured("odd", window="long"), id="no window"),
    ],
)
def test_one_odd_pod_does_not_cost_the_others_their_samples(odd, order):
    assert used([measured("web-1"), odd][::order]) == {"web-1": 100}
    assert used([measured("web-1"), odd][::order], "cpu", "app").get("web-1") == 100


def test_a_list_of_odd_pods_alone_fails_with_the_first():
    found = used([measured("a", app=("much", None)), measured("b", app=("more", None))])
    assert isinstance(found, FetchFailure)
    assert "for pod a:" in found.message
    assert isinstance(used([]), FetchFailure)


@pytest.mark.parametrize(
    ("items", "container", "want"),
    [
        pytest.param([measured(), measured("b")], "", [100, 100], id="one container each"),
        pytest.param([measured(), measured("b", **TWO)], "", [100, 150], id="two containers"),
        pytest.param([measured(**TWO)], "side", [50], id="a container"),
        pytest.param([measured(**TWO), measured("b")], "side", None, id="a pod without the container"),
        pytest.param([measured(), measured("b", app=(None, "1"))], "", None, id="a pod without the value"),
        pytest.param([measured(), measured("b", app=("much", None))], "", None, id="no quantity"),
        pytest.param([measured(), measured("b", app=("much", None), side=("1", None))], "", None, id="no quantity, of two"),
        pytest.param([], "", [], id="no pods"),
    ],
)  # fmt: skip
def test_usage_of_each_pod_or_none_at_all(items, container, want):
    assert each_usage(items, "cpu", container) == want


def custom(*values, **more):
    items = [
        {"describedObject": {"name": f"web-{place}", "namespace": "shop"}, "metric": {"name": "qps"}, "timestamp": STAMP, "value": value, **more}
        for place, value in enumerate(values)
    ]  # fmt: skip
    return wire.convert({"items": items}, MetricValueList)


def test_values_of_pods_and_objects():
    assert read_pods_metric(custom("1", "2")) == PodSamples(
        samples={"web-0": Sample(1000, NOON, 60.0), "web-1": Sample(2000, NOON, 60.0)}, timestamp=NOON
    )
    assert read_object_metric(custom("1", windowSeconds=5)) == Series(samples=(Sample(1000, NOON, 5.0),))
    assert read_object_metric(custom("1", window=7)) == Series(samples=(Sample(1000, NOON, 7.0),))


@pytest.mark.parametrize(
    "values", [("much", "1"), ("1", "much"), ("1", "1e400")], ids=["first", "last", "too much"]
)
def test_a_value_that_cannot_be_read_fails_the_whole_answer(values):
    found = read_pods_metric(custom(*values))
    assert isinstance(found, FetchFailure)
    assert f"for pod web-{[value != '1' for value in values].index(True)}:" in found.message
    assert isinstance(read_object_metric(custom("much")), FetchFailure)
    series = wire.convert(
        {"items": [{"metricName": "m", "value": value} for value in values]}, ExternalMetricValueList
    )
    assert isinstance(read_external_metric(series), FetchFailure)


@pytest.mark.parametrize("count", [0, 2])
def test_an_object_has_exactly_one_value(count):
    found = read_object_metric(custom(*["1"] * count))
    assert isinstance(found, FetchFailure)
    assert f"returned {count} results" in found.message


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        pytest.param(Asked(metric="qps", namespace="shop", object="web-0"), "", id="as asked"),
        pytest.param(Asked(metric="rps"), "is about metric qps, not rps", id="another metric"),
        pytest.param(
            Asked(metric="qps", namespace="bank"), "is about namespace shop, not bank", id="another namespace"
        ),
        pytest.param(Asked(metric="qps", object="main"), "is about web-0, not main", id="another object"),
    ],
)
def test_an_answer_about_something_else_is_refused(asked, want):
    found = read_object_metric(custom("1"), asked)
    assert want in found.message if isinstance(found, FetchFailure) else want == ""
    if "web-0" not in want:
        found_pods = read_pods_metric(custom("1"), asked)
        assert want in found_pods.message if isinstance(found_pods, FetchFailure) else want == ""


def test_series_keep_their_windows_and_dates():
    items = [
        {"metricName": "m", "value": "1", "timestamp": STAMP, "window": 9},
        {"metricName": "m", "value": "2"},
    ]
    found = read_external_metric(wire.convert({"items": items}, ExternalMetricValueList), Asked(metric="m"))
    assert found == Series(samples=(Sample(1000, NOON, 9.0), Sample(2000, NEVER, 0.0)))
    assert isinstance(read_external_metric(ExternalMetricValueList()), FetchFailure)
    other = wire.convert({"items": items}, ExternalMetricValueList)
    assert isinstance(read_external_metric(other, Asked(metric="x")), FetchFailure)


@pytest.mark.parametrize(
    ("value", "want"),
    [("9223372036854775807m", 2**63 - 1), ("9223372036854775808m", 2**63 - 1), ("-9223372036854775809m", -(2**63)), ("1e30", 2**63 - 1)],
)  # fmt: skip
def test_values_stop_at_the_largest_integer(value, want):
    found = read_object_metric(custom(value))
    assert isinstance(found, Series)
    assert found.samples[0].value == want
