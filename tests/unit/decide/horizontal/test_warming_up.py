"""Pods that are too young for a sample are no failure."""

from datetime import timedelta

import pytest

from tests.unit.decide.horizontal.builders import (
    NOW,
    UPSTREAM,
    cpu,
    external,
    hpa,
    memory_value,
    observe,
    pod,
    pods,
    samples,
    series,
    unreadable,
    usage_of,
    value,
)
from trimtab.decide.horizontal import Record, decide, explain
from trimtab.decide.horizontal.observation.samples import FetchFailure
from trimtab.model.hpa.types import ConditionType

NO_ANSWER = FetchFailure(message="no metrics returned from resource metrics API", is_empty=True)
YOUNG = pods(2, age=20.0)
OLD = pods(2, age=121.0)
NEW_HPA = {"creation_timestamp": NOW - timedelta(seconds=20)}
OLD_HPA = {"creation_timestamp": NOW - timedelta(seconds=121)}


CPU = (cpu(),)


def decided(*readings, metrics=CPU, metadata=OLD_HPA, **fields):
    return decide(observe(hpa(*metrics, metadata=metadata), 2, *readings, **fields), NOW)


@pytest.mark.parametrize(
    ("reading", "chosen", "metadata"),
    [
        pytest.param(NO_ANSWER, YOUNG, OLD_HPA, id="no pod has a sample"),
        pytest.param(samples({}), YOUNG, OLD_HPA, id="other pods have samples"),
        pytest.param(
            samples({}), pods(2, age=20.0, ready="False"), OLD_HPA, id="pods that are not ready yet"
        ),
        pytest.param(NO_ANSWER, (), NEW_HPA, id="a new HPA without pods"),
        pytest.param(NO_ANSWER, pods(2, phase="Pending", started=None), NEW_HPA, id="pods without a node"),
    ],
)
def test_an_hpa_waits_for_the_first_samples_without_a_warning(reading, chosen, metadata):
    """Three Warnings greeted everyone who applied a workload together with its HPA."""
    decision = decided(reading, pods=chosen, metadata=metadata)
    active = decision.status.condition(ConditionType.SCALING_ACTIVE)
    assert (active.status, active.reason) == ("False", "WarmingUp")
    assert active.message.startswith("the HPA waits for the first samples of its pods: failed to get cpu")
    assert decision.events == ()
    assert decision.reason.code == "WarmingUp"
    assert decision.desired == 2


@pytest.mark.parametrize(
    ("reading", "fields"),
    [
        pytest.param(NO_ANSWER, {"pods": OLD}, id="pods that should have a sample"),
        pytest.param(NO_ANSWER, {"pods": (pod(age=20.0), pod("web-2"))}, id="a single old pod"),
        pytest.param(unreadable(), {"pods": YOUNG}, id="a metrics API that fails"),
        pytest.param(samples({"web-1": 5}, age=9999), {"pods": YOUNG[:1]}, id="a sample that is rejected"),
        pytest.param(NO_ANSWER, {"pods": ()}, id="an old HPA without pods"),
        pytest.param(
            NO_ANSWER,
            {"pods": YOUNG, "rules": UPSTREAM},
            id="the rules of upstream",
        ),
    ],
)
def test_other_failures_are_reported_at_once(reading, fields):
    decision = decided(reading, **fields)
    assert decision.status.condition(ConditionType.SCALING_ACTIVE).reason == "FailedGetResourceMetric"
    assert [event.reason for event in decision.events] == [
        "FailedGetResourceMetric",
        "FailedComputeMetricsReplicas",
    ]
    assert decision.reason.code == "MetricsFailed"


def test_the_explanation_says_what_to_wait_for():
    seen = observe(hpa(cpu()), 2, NO_ANSWER, pods=YOUNG)
    text = str(explain(Record(observation=seen, decision=decide(seen, NOW))))
    assert "WarmingUp: stays at 2: its pods are too young for a first sample\n" in text
    assert "metric: cpu has no sample yet\n" in text
    assert text.endswith("next: wait for the first samples, which usually come within a minute")


def test_memory_is_measured_before_cpu():
    """CPU needs two samples of a pod, memory one."""
    used = usage_of(YOUNG, 1_000_000)
    decision = decided(NO_ANSWER, used, metrics=(cpu(), memory_value("2Ki")), pods=YOUNG)
    assert decision.reason.code == "WarmingUp"
    assert not decision.events


def test_a_metric_without_pods_counts_meanwhile():
    decision = decided(NO_ANSWER, series(40), metrics=(cpu(), external(value(10))), pods=YOUNG)
    assert decision.scale_to is not None
    assert "FailedGetResourceMetric" not in [event.reason for event in decision.events]


def test_a_failure_beside_it_is_a_failure():
    decision = decided(NO_ANSWER, unreadable(), metrics=(cpu(), external(value(10))), pods=YOUNG)
    assert decision.reason.code == "MetricsFailed"
    assert [event.reason for event in decision.events] == [
        "FailedGetExternalMetric",
        "FailedComputeMetricsReplicas",
    ]
