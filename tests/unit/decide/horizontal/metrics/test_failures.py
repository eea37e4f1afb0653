"""What a metric that cannot be used says: its reason, its message and the error of the reconcile."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    average,
    container_cpu,
    cpu,
    cpu_value,
    external,
    hpa,
    object_metric,
    observe,
    pod,
    pods_metric,
    run,
    unreadable,
    usage_of,
    value,
)
from trimtab.model.hpa.types import MetricSpec


@pytest.mark.parametrize(
    ("metric", "reason", "error"),
    [
        pytest.param(cpu(50), "FailedGetResourceMetric", "failed to get cpu utilization: ", id="utilization"),
        pytest.param(cpu_value("1"), "FailedGetResourceMetric", "failed to get cpu", id="a value of a resource"),
        pytest.param(container_cpu("main"), "FailedGetContainerResourceMetric", "failed to get cpu", id="a container"),
        pytest.param(pods_metric("1"), "FailedGetPodsMetric", "pods metric", id="pods"),
        pytest.param(object_metric(value("1")), "FailedGetObjectMetric", "object metric", id="object, value"),
        pytest.param(object_metric(average("1")), "FailedGetObjectMetric", "failed to get rps object metric: ", id="object, average"),
        pytest.param(external(value("1")), "FailedGetExternalMetric", "failed to get external metric queue: ", id="external, value"),
        pytest.param(external(average("1")), "FailedGetExternalMetric", "failed to get queue external metric: ", id="external, average"),
    ],
)  # fmt: skip
def test_a_metric_that_cannot_be_read_names_itself(metric, reason, error):
    decision = run(observe(hpa(metric), 2, unreadable("the words of the API")))
    assert error in decision.error
    assert "the words of the API" in decision.error
    (failure,) = decision.trace.proposals
    assert (failure.reason, failure.is_misconfigured, failure.is_rejected) == (reason, False, False)
    assert decision.status.condition("ScalingActive").reason == reason


@pytest.mark.parametrize("kind", ["Resource", "ContainerResource", "Pods", "Object", "External"])
def test_a_metric_without_its_source_is_misconfigured(kind):
    (failure,) = run(observe(hpa(MetricSpec(type=kind)), 2, unreadable())).trace.proposals
    assert failure.is_misconfigured


@pytest.mark.parametrize(
    "metric", [external({"type": "Value"}), object_metric({"type": "Value"}), cpu_value("1")]
)
def test_a_metric_without_a_target_is_misconfigured(metric):
    if metric.resource is not None:
        target = msgspec.structs.replace(metric.resource.target, average_value=None)
        metric = msgspec.structs.replace(
            metric, resource=msgspec.structs.replace(metric.resource, target=target)
        )
    (failure,) = run(observe(hpa(metric), 2, usage_of([pod()], 50))).trace.proposals
    assert failure.is_misconfigured or "kind" in failure.message


BROKEN = {"matchExpressions": [{"key": "a", "operator": "Near"}]}


@pytest.mark.parametrize(
    "metric",
    [pods_metric("1", selector=BROKEN), object_metric(value("1"), selector=BROKEN), external(value("1"), selector=BROKEN)],
    ids=["pods", "object", "external"],
)  # fmt: skip
def test_a_broken_selector_is_misconfigured_and_said(metric):
    (failure,) = run(observe(hpa(metric), 2, unreadable())).trace.proposals
    assert failure.is_misconfigured
    assert "Near" in failure.message
