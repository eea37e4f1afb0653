"""Metrics specificity (KEP-117) and the combining of metrics: edge cases and scenarios that are decisions."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    NO_WINDOW,
    UPSTREAM,
    average,
    condition,
    container_cpu,
    cpu,
    cpu_value,
    external,
    hpa,
    object_metric,
    observe,
    own,
    pod,
    pods,
    pods_metric,
    run,
    samples,
    series,
    spec,
    told,
    unreadable,
    usage_of,
    value,
    why_unusable,
)
from trimtab.decide.horizontal import Rules
from trimtab.decide.horizontal.observation import samples as readings
from trimtab.decide.horizontal.observation.requests import ContainerRequests
from trimtab.model.hpa.metric_kinds import targets_text
from trimtab.model.hpa.types import MetricStatus
from trimtab.model.json import wire
from trimtab.model.labels.selector import LabelSelector, Selector, go_string
from trimtab.model.metrics_api import ExternalMetricValueList, MetricValueList

BROKEN = {"matchExpressions": [{"key": "queue", "operator": "Nearly", "values": ["orders"]}]}
ORDERS = {"matchLabels": {"queue": "orders"}}


def decided(metric, reading, replicas=1, **fields):
    return run(observe(hpa(metric, high=100), replicas, reading, **({"settings": NO_WINDOW} | fields)))


class TestEdgeCases:
    """Section 4.3, by number."""

    def test_only_the_selected_queue_counts(self):
        """4.3-1, SPEC-A1: the status echoes the selector that was asked for (4.3-9)."""
        decision = decided(external(average(10), selector=ORDERS), series(40))
        assert decision.desired == 4
        shown = decision.status.current_metrics[0].external.metric
        assert (shown.name, shown.selector.match_labels) == ("queue", {"queue": "orders"})

    def test_a_selector_on_a_pods_metric_leaves_the_pods_alone(self):
        """4.3-2."""
        decision = decided(pods_metric(10, selector=ORDERS), usage_of(pods(2), 10_000), 2)
        assert (decision.trace.counted_pods, decision.desired) == (2, 2)

    def test_expressions_are_written_canonically(self):
        """4.3-3."""
        both = {
            "matchExpressions": [
                {"key": "z", "operator": "Exists"},
                {"key": "a", "operator": "In", "values": ["2", "1"]},
            ]
        }
        assert str(Selector.from_label_selector(wire.convert(both, LabelSelector))) == "a in (1,2),z"

    @pytest.mark.parametrize(
        ("metric", "reason"),
        [
            (object_metric(value(10), selector=BROKEN), "FailedGetObjectMetric"),
            (pods_metric(10, selector=BROKEN), "FailedGetPodsMetric"),
            (external(value(10), selector=BROKEN), "FailedGetExternalMetric"),
        ],
    )
    def test_a_selector_with_an_unknown_operator_fails_at_run_time(self, metric, reason):
        """4.3-4, SPEC-N1."""
        decision = decided(metric, series(10))
        assert condition(decision, "ScalingActive").reason == reason
        assert (
            '"Nearly" is not a valid label selector operator' in condition(decision, "ScalingActive").message
        )

    def test_an_object_value_target_without_a_value_fails(self):
        """4.3-5."""
        decision = decided(object_metric({"type": "Value", "averageValue": "10"}), series(10))
        assert condition(decision, "ScalingActive").message.endswith(
            "invalid object metric source: neither a value target nor an average value target was set"
        )

    @pytest.mark.parametrize(("kind", "want"), [("Value", 5), ("AverageValue", 50)])
    def test_of_both_fields_of_an_object_target_the_type_decides(self, kind, want):
        """4.3-6."""
        both = {"type": kind, "value": "100", "averageValue": "10"}
        assert decided(object_metric(both), series(500)).trace.proposals[0].replicas == want

    def test_several_values_for_one_object_are_an_error(self):
        """4.3-8, SPEC-A4."""
        two = wire.convert({"items": [{"value": "1"}, {"value": "2"}]}, MetricValueList)
        assert why_unusable(readings.read_object_metric(two)).endswith(
            "returned 2 results when we asked for exactly one"
        )

    @pytest.mark.parametrize(("replicas", "want"), [(3, 3), (1, 3)])
    def test_a_backlog_of_three_with_one_per_pod(self, replicas, want):
        """4.3-10, SPEC-A2."""
        assert decided(object_metric(average(1)), series(3), replicas).desired == want

    def test_object_averages_are_called_by_their_kind(self):
        """4.3-11."""
        decision = decided(object_metric(average(1)), series(3))
        assert decision.because == "Ingress metric rps above target"
        upstream = decided(object_metric(average(1)), series(3), rules=UPSTREAM)
        assert upstream.because == "external metric rps(nil) above target"

    def test_an_object_error_names_the_object(self):
        """4.3-11."""
        decision = decided(object_metric(value(1)), unreadable("timed out"))
        assert decision.events[0].message == "unable to get metric rps on Ingress shop/main: timed out"

    @pytest.mark.parametrize("made", [own, lambda given: given], ids=["our own kind", "native"])
    @pytest.mark.parametrize("compat", [Rules.TRIMTAB, Rules.KUBERNETES_1_36], ids=["default", "compat"])
    def test_a_failed_metric_keeps_its_place_without_a_value(self, made, compat):
        """4.3-12: kubectl pairs the metrics of both kinds with their values by position."""
        autoscaler = made(hpa(cpu(50), external(average(10))))
        decision = run(observe(autoscaler, 1, unreadable(), series(40), rules=compat))
        assert [status.type for status in decision.status.current_metrics] == ["", "External"]
        assert decision.status.current_metrics[0] == MetricStatus()

    def test_columns_of_kubectl_show_no_other_metric_beside_a_target(self):
        """Memory without requests failed, and the value of cpu was shown beside the target of memory."""
        autoscaler = own(hpa(cpu(50), external(average(10))))
        decision = run(observe(autoscaler, 1, unreadable(), series(40)))
        shown = targets_text(autoscaler.spec.metrics, decision.status.current_metrics)
        assert shown == "cpu: <unknown>/50%, queue: 40/10 (avg)"

    def test_a_value_of_zero_asks_for_zero_and_gets_the_minimum(self):
        """4.3-13."""
        decision = decided(external(average(10)), series(0), 3)
        assert (decision.trace.proposals[0].replicas, decision.desired) == (0, 1)

    def test_targets_are_precise_to_a_thousandth(self):
        """4.3-14."""
        assert decided(object_metric(value("500m")), series(1)).trace.proposals[0].ratio == 2.0

    def test_a_negative_sum_is_negative_where_such_samples_are_accepted(self):
        """4.3-15."""
        assert decided(external(value(10)), series(-50, 20), 5, rules=UPSTREAM).desired == 1

    def test_upstream_takes_a_negative_sum_for_an_overflow(self):
        """4.3-15, F35 in the kubernetes setting."""
        assert decided(external(average(10)), series(-50), 5, rules=UPSTREAM).desired > 5

    def test_the_same_metric_twice_with_different_selectors_is_two_metrics(self):
        """4.3-16."""
        other = external(average(10), selector={"matchLabels": {"queue": "mail"}})
        seen = observe(hpa(external(average(10), selector=ORDERS), other), 1, series(20), series(30))
        assert [one.replicas for one in run(seen).trace.proposals] == [2, 3]

    def test_an_unknown_type_is_an_error_of_the_spec(self):
        """4.3-18."""
        decision = decided(spec("CheddarCheese"), series(1))
        assert condition(decision, "ScalingActive").reason == "InvalidMetricSourceType"
        assert decision.computations[0].error == "spec"
        assert decision.events[0].message == 'unknown metric source type "CheddarCheese"'

    def test_an_object_that_cannot_be_mapped_fails(self):
        """4.3-19."""
        decision = decided(object_metric(value(1)), unreadable('no matches for kind "Ingress"'))
        assert condition(decision, "ScalingActive").reason == "FailedGetObjectMetric"

    def test_the_timestamp_of_a_list_is_its_first_items(self):
        """4.3-20."""
        answer = {
            "items": [
                {"describedObject": {"name": "a"}, "timestamp": "2026-01-15T11:59:00Z", "value": "1"},
                {"describedObject": {"name": "b"}, "timestamp": "2026-01-15T11:58:00Z", "value": "1"},
            ]
        }
        reading = readings.read_pods_metric(wire.convert(answer, MetricValueList))
        assert isinstance(reading, readings.PodSamples)
        assert reading.timestamp == reading.samples["a"].timestamp > reading.samples["b"].timestamp


def test_several_series_of_an_external_metric_are_summed():
    """SPEC-A3."""
    assert decided(external(average(10)), series(10, 20, 5)).desired == 4


def test_a_custom_metric_of_v1beta1_reads_as_one_of_v1beta2():
    """4.3-17."""
    item = {"describedObject": {"name": "a"}, "value": "3"}
    old = wire.convert({"items": [item | {"metricName": "qps"}]}, MetricValueList)
    new = wire.convert({"items": [item | {"metric": {"name": "qps"}}]}, MetricValueList)
    asked = readings.Asked(metric="qps")
    assert readings.read_pods_metric(old, asked) == readings.read_pods_metric(new, asked)


def test_a_selector_in_a_message_is_spelt_as_go_spells_it():
    decision = decided(external(average(1), selector=ORDERS), unreadable())
    spelt = go_string(LabelSelector(match_labels={"queue": "orders"}))
    assert (
        decision.events[0].message
        == f"unable to get external metric shop/queue/{spelt}: something went wrong"
    )


class TestCombining:
    """Section 0: the largest proposal wins, and what cannot be read never shrinks a workload."""

    @pytest.mark.parametrize(
        ("cpu_reading", "queue", "want", "active"),
        [
            pytest.param(usage_of(pods(4), 100), series(40), 8, "True", id="the largest wins"),
            pytest.param(unreadable(), series(80), 8, "True", id="what can be read may grow it"),
            pytest.param(unreadable(), series(10), 4, "False", id="what can be read may not shrink it"),
            pytest.param(unreadable(), unreadable(), 4, "False", id="nothing can be read"),
        ],
    )
    def test_two_metrics(self, cpu_reading, queue, want, active):
        seen = observe(
            hpa(cpu(50), external(average(10)), high=20), 4, cpu_reading, queue, settings=NO_WINDOW
        )
        decision = run(seen)
        assert (decision.desired, condition(decision, "ScalingActive").status) == (want, active)

    def test_the_condition_is_that_of_the_first_failure(self):
        seen = observe(hpa(cpu(50), external(average(10))), 1, unreadable("a"), unreadable("b"))
        decision = run(seen)
        assert condition(decision, "ScalingActive").reason == "FailedGetResourceMetric"
        assert told(decision) == [
            "FailedGetResourceMetric",
            "FailedGetExternalMetric",
            "FailedComputeMetricsReplicas",
        ]
        assert decision.events[-1].message.startswith(
            "invalid metrics (2 invalid out of 2), first error is: "
        )

    def test_without_any_metric_nothing_happens(self):
        seen = observe(
            msgspec.structs.replace(hpa(), spec=msgspec.structs.replace(hpa().spec, metrics=())), 2
        )
        assert run(seen).desired == 2


class TestPodMetrics:
    """Requests and groups beyond what vectors say."""

    def test_a_container_metric_counts_that_container(self):
        twin = (
            ContainerRequests(name="app", requests={"cpu": 100}),
            ContainerRequests(name="log", requests={"cpu": 900}),
        )
        chosen = tuple(pod(f"web-{number}", containers=twin) for number in (1, 2))
        decision = run(observe(hpa(container_cpu("app", 50)), 2, usage_of(chosen, 100), pods=chosen))
        assert (decision.trace.proposals[0].value, decision.desired) == (100, 4)
        assert decision.because == "cpu container resource utilization (percentage of request) above target"

    def test_a_missing_container_is_named(self):
        decision = run(observe(hpa(container_cpu("nope")), 1, usage_of(pods(1), 10)))
        assert "container nope not found in Pod web-1" in decision.error

    def test_an_average_value_needs_no_requests(self):
        chosen = pods(2, cpu=None)
        assert run(observe(hpa(cpu_value("100m")), 2, usage_of(chosen, 200), pods=chosen)).desired == 4

    def test_starting_pods_count_as_idle_when_growing(self):
        chosen = (*pods(2), pod("young", age=10.0, ready="False"))
        decision = run(observe(hpa(cpu(50)), 3, usage_of(chosen, 100), pods=chosen))
        assert (decision.trace.proposals[0].filled_ratio, decision.desired) == (1.32, 4)

    def test_missing_pods_count_as_fully_used_when_shrinking(self):
        """F32."""
        chosen = pods(4)
        decision = run(observe(hpa(cpu(50)), 4, usage_of(chosen[:2], 10), pods=chosen, settings=NO_WINDOW))
        assert decision.desired == 4


def test_external_series_without_a_value_are_unusable():
    """F34: absent is not zero."""
    answer = wire.convert({"items": [{"metricName": "queue"}]}, ExternalMetricValueList)
    assert why_unusable(readings.read_external_metric(answer)).startswith("unusable answer")


def test_samples_by_pod_name_only():
    """F40, F41: foreign pods are ignored, and of a pod named twice the last value counts."""
    item = {"describedObject": {"name": "web-1"}, "metric": {"name": "qps"}}
    twice = wire.convert({"items": [item | {"value": "9"}, item | {"value": "4"}]}, MetricValueList)
    reading = readings.read_pods_metric(twice)
    assert isinstance(reading, readings.PodSamples)
    assert reading.samples["web-1"].value == 4000
    decision = run(observe(hpa(pods_metric(10)), 1, samples({"web-1": 10_000, "foreign": 99_000})))
    assert decision.trace.proposals[0].value == 10_000
