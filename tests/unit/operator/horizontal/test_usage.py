"""What the list of usage says, read for one decision or compared with the last."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import pods as made_pods
from trimtab.decide.horizontal.observation.samples import PodSamples
from trimtab.model.json import wire
from trimtab.model.metrics_api import PodMetricsList
from trimtab.operator.horizontal.usage import namespace_usage

TAKEN = "2026-01-15T12:00:00Z"
SECONDS = datetime(2026, 1, 15, 12, tzinfo=UTC).timestamp()


def listed(usage, date=TAKEN, namespace="shop"):
    items = [
        {
            "metadata": {"name": name, "namespace": namespace},
            "timestamp": date,
            "window": "15s",
            "containers": [{"name": f"c{number}", "usage": used} for number, used in enumerate(containers)],
        }
        for name, containers in usage.items()
    ]
    return wire.decode(wire.encode({"items": items}), PodMetricsList)


@pytest.mark.parametrize("texts", [("60m",), ("60m", "20m"), ("1", "1500000000n", "0")])
def test_values_are_those_of_a_reading(texts):
    pods = made_pods(3)
    usage = namespace_usage(listed({pod.name: [{"cpu": text} for text in texts] for pod in pods}))
    reading = usage.samples(pods, "cpu", "")
    assert isinstance(reading, PodSamples)
    assert usage.values(pods, "cpu", "") == [sample.value for sample in reading.samples.values()]
    one = usage.samples(pods, "cpu", "c0")
    assert isinstance(one, PodSamples)
    assert usage.values(pods, "cpu", "c0") == [sample.value for sample in one.samples.values()]


@pytest.mark.parametrize(
    "odd", [None, [], [{"memory": "1Mi"}], [{"cpu": "much"}], [{"cpu": "1m"}, {"memory": "1Mi"}]]
)
def test_a_pod_that_does_not_say_leaves_no_values(odd):
    pods = made_pods(2)
    said = {pods[0].name: [{"cpu": "60m"}]} | ({} if odd is None else {pods[1].name: odd})
    assert namespace_usage(listed(said)).values(pods, "cpu", "") is None


def test_one_date_that_cannot_be_read_costs_no_other_pod_its_sample():
    pods = made_pods(2)
    good, bad = (
        listed({pods[0].name: [{"cpu": "60m"}]}),
        listed({pods[1].name: [{"cpu": "60m"}]}, "yesterday"),
    )
    usage = namespace_usage(PodMetricsList(items=(*bad.items, *good.items)))
    reading = usage.samples(pods, "cpu", "")
    assert isinstance(reading, PodSamples)
    assert list(reading.samples) == [pods[0].name]


@given(st.lists(st.sampled_from(["60m", "61m", "x", None]), min_size=1, max_size=6))
def test_values_are_told_of_every_pod_or_of_none(texts):
    pods = made_pods(len(texts))
    said = {pod.name: [{"cpu": text}] for pod, text in zip(pods, texts, strict=True) if text is not None}
    values = namespace_usage(listed(said)).values(pods, "cpu", "")
    readable = all(text in {"60m", "61m"} for text in texts)
    assert values == ([int(text[:2]) for text in texts] if readable else None)


def test_usage_of_a_pod_of_the_same_name_in_another_namespace_does_not_count():
    """The list of one namespace with items of another: a workload went from 5 to 50."""
    own, foreign = (
        listed({"web-1": [{"cpu": "10m"}]}),
        listed({"web-1": [{"cpu": "9"}]}, namespace="elsewhere"),
    )
    both = PodMetricsList(items=(*own.items, *foreign.items))
    chosen = tuple(pod for pod in made_pods(2) if pod.name == "web-1")
    assert namespace_usage(both, "shop").values(chosen, "cpu", "") == [10]
    assert namespace_usage(foreign, "shop").values(chosen, "cpu", "") is None
    assert namespace_usage(both).values(chosen, "cpu", "") == [9000], "upstream counts it"
    unnamed = listed({"web-1": [{"cpu": "10m"}]}, namespace="")
    assert namespace_usage(unnamed, "shop").values(chosen, "cpu", "") == [10]
