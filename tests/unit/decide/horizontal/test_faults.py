"""What goes wrong with metrics and objects never scales the wrong way (reliability rows F31 to F54)."""

from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    NO_WINDOW,
    NOW,
    OWNER,
    UPSTREAM,
    average,
    behavior,
    condition,
    cpu,
    explained,
    external,
    hpa,
    later,
    object_metric,
    observe,
    pods,
    pods_metric,
    remembering,
    rules,
    run,
    samples,
    scale,
    series,
    spec,
    told,
    unreadable,
    usage_of,
    value,
    why_unusable,
)
from trimtab.decide.horizontal import ScaleFailure
from trimtab.decide.horizontal.memory import Recommendation
from trimtab.decide.horizontal.observation import samples as readings
from trimtab.decide.horizontal.rules import Rules
from trimtab.model.hpa.types import HorizontalPodAutoscalerBehavior, MetricTarget
from trimtab.model.json import wire
from trimtab.model.metrics_api import ExternalMetricValueList, MetricValueList, PodMetricsList

YEAR = 365 * 86_400.0
HUGE = 9_000_000_000_000_000  # 9e15 units: its milli-value is near the end of int64


def held(decision, replicas):
    return decision.desired == replicas and condition(decision, "ScalingActive").status == "False"


def test_an_outage_holds_and_the_first_good_sample_acts_without_a_burst():
    """F31."""
    seen = observe(hpa(cpu(50), high=100), 4, unreadable())
    decision = run(seen)
    for step in range(1, 41):
        assert held(decision, 4)
        seen, _ = later(seen, decision, samples=(unreadable(),))
        decision = run(seen, NOW + timedelta(seconds=15 * step))
    seen, _ = later(seen, decision, samples=(usage_of(pods(4), 100, age=-600),))
    assert run(seen, NOW + timedelta(seconds=615)).desired == 8


@pytest.mark.parametrize("without", [1, 5, 9])
@pytest.mark.parametrize(("usage", "direction"), [(10, -1), (100, 1)])
def test_missing_samples_never_reverse_the_direction(without, usage, direction):
    """F32."""
    chosen = pods(10)
    seen = observe(
        hpa(cpu(50), high=100), 10, usage_of(chosen[without:], usage), pods=chosen, settings=NO_WINDOW
    )
    assert (run(seen).desired - 10) * direction >= 0


def test_one_failed_metric_stops_a_scale_down_and_not_a_scale_up():
    """F33."""
    both = hpa(cpu(50), external(average(10)), high=100)
    assert run(observe(both, 4, unreadable(), series(10), settings=NO_WINDOW)).desired == 4
    assert run(observe(both, 4, unreadable(), series(80), settings=NO_WINDOW)).desired == 8


@pytest.mark.parametrize("text", ["NaN", "Inf", "-Inf", "", "nonsense"])
def test_what_is_not_a_number_fails_the_metric(text):
    """F34."""
    reading = readings.read_external_metric(
        wire.convert({"items": [{"metricName": "queue", "value": text}]}, ExternalMetricValueList)
    )
    assert isinstance(reading, readings.FetchFailure)
    assert held(run(observe(hpa(external(average(10))), 5, reading)), 5)


def test_a_pod_whose_usage_is_not_a_number_has_no_sample():
    """F34: the list is shared by all workloads of a namespace."""
    items = [
        {"metadata": {"name": name}, "containers": [{"name": "main", "usage": {"cpu": used}}]}
        for name, used in (("web-1", "NaN"), ("web-2", "10m"))
    ]
    reading = readings.read_usage(wire.convert({"items": items}, PodMetricsList).items, "cpu")
    assert isinstance(reading, readings.PodSamples)
    assert list(reading.samples) == ["web-2"]


def test_a_list_without_any_number_fails_the_metric():
    """F34."""
    item = {"metadata": {"name": "web-1"}, "containers": [{"name": "main", "usage": {"cpu": "NaN"}}]}
    reading = readings.read_usage(wire.convert({"items": [item]}, PodMetricsList).items, "cpu")
    assert "for pod web-1" in why_unusable(reading)


@pytest.mark.parametrize("metric", [external(average(10)), external(value(10)), object_metric(value(10))])
def test_a_negative_value_holds(metric):
    """F35."""
    decision = run(observe(hpa(metric, high=50), 5, series(-100), settings=NO_WINDOW))
    assert held(decision, 5)
    assert "negative value" in condition(decision, "ScalingActive").message


def test_upstream_goes_to_the_maximum_on_a_negative_external_average():
    """F35 in the kubernetes setting."""
    seen = observe(hpa(external(average(10)), high=9), 5, series(-100), rules=Rules.KUBERNETES_1_36)
    assert run(seen).desired == 9


@pytest.mark.parametrize("amount", [HUGE, 9_000_000_000_000_000_000])
@pytest.mark.parametrize("metric", [external(average(10)), external(value(10)), object_metric(average(10))])
def test_an_absurdly_large_value_saturates_and_is_limited_by_rate(metric, amount):
    """F36."""
    assert run(observe(hpa(metric, high=50), 5, series(amount))).desired == 10


def test_an_absurdly_large_value_of_pods_saturates():
    """F36."""
    decision = run(observe(hpa(pods_metric(10), high=50), 5, usage_of(pods(5), HUGE * 1000)))
    assert decision.desired == 10


def test_a_sum_beyond_64_bits_is_exact():
    """F37."""
    decision = run(observe(hpa(external(average(10)), high=50), 5, series(HUGE, HUGE)))
    assert decision.desired == 10
    shown = decision.status.current_metrics[0].external.current.average_value
    assert shown.sign == 1


def test_an_object_value_that_overflows_in_go_stops_at_the_limit_by_upstreams_rules_too():
    """F36 in the kubernetes setting."""
    seen = observe(hpa(object_metric(average("1m")), high=50), 5, series(HUGE), rules=Rules.KUBERNETES_1_36)
    assert run(msgspec.structs.replace(seen, settings=NO_WINDOW)).desired == 10


@pytest.mark.parametrize(
    ("age", "window", "is_used"),
    [
        pytest.param(100.0, 15.0, True, id="100 s is not stale"),
        pytest.param(121.0, 15.0, False, id="two minutes are stale"),
        pytest.param(170.0, 60.0, True, id="three windows are allowed"),
        pytest.param(181.0, 60.0, False, id="more than three windows are not"),
        pytest.param(YEAR, 60.0, False, id="a year is stale"),
        pytest.param(-61.0, 15.0, True, id="a date of the future is another clock's matter"),
    ],
)
@pytest.mark.parametrize("kind", ["pods", "external"])
def test_stale_and_future_samples(age, window, is_used, kind):
    """F38: the rule is named, and nothing is scaled. F39: a source whose clock is ahead is read."""
    if kind == "pods":
        seen = observe(
            hpa(pods_metric(10)), 5, usage_of(pods(5), 0, age=age, window=window), settings=NO_WINDOW
        )
    else:
        seen = observe(hpa(external(average(10))), 5, series(0, age=age, window=window), settings=NO_WINDOW)
    decision = run(seen)
    assert decision.desired == (1 if is_used else 5)
    if not is_used:
        assert "refused" in condition(decision, "ScalingActive").message
    upstream = msgspec.structs.replace(seen, rules=UPSTREAM)
    assert run(upstream).desired == 1


def test_an_adapter_that_dates_nothing_is_believed():
    undated = readings.Series(samples=(readings.Sample(0),))
    assert run(observe(hpa(external(average(10))), 5, undated, settings=NO_WINDOW)).desired == 1


def test_one_stale_sample_counts_as_missing():
    """F38."""
    fresh, old = usage_of(pods(4)[:3], 10), usage_of(pods(4)[3:], 0, age=YEAR)
    reading = readings.PodSamples(samples=fresh.samples | old.samples)
    proposal = run(observe(hpa(cpu(50)), 4, reading)).trace.proposals[0]
    assert (proposal.counts.ready, proposal.counts.missing) == (3, 1)
    assert proposal.rejected_samples[0][0] == "web-4"


@pytest.mark.parametrize(
    "described",
    [
        {"metric": {"name": "other"}, "describedObject": {"name": "main", "namespace": "shop"}},
        {"metric": {"name": "rps"}, "describedObject": {"name": "other", "namespace": "shop"}},
        {"metric": {"name": "rps"}, "describedObject": {"name": "main", "namespace": "elsewhere"}},
    ],
)
def test_an_answer_about_something_else_is_refused(described):
    """F40."""
    asked = readings.Asked(metric="rps", namespace="shop", object="main")
    answer = wire.convert({"items": [described | {"value": "1"}]}, MetricValueList)
    assert "the answer is about" in why_unusable(readings.read_object_metric(answer, asked))
    assert isinstance(readings.read_object_metric(answer), readings.Series)


def test_an_external_answer_about_another_metric_is_refused():
    """F40."""
    answer = wire.convert({"items": [{"metricName": "other", "value": "1"}]}, ExternalMetricValueList)
    assert isinstance(
        readings.read_external_metric(answer, readings.Asked(metric="queue")), readings.FetchFailure
    )


def test_pods_of_others_do_not_enter_the_average():
    """F40; upstream averages them in."""
    reading = samples({"web-1": 10_000, "foreign": 90_000})
    seen = observe(hpa(pods_metric(10)), 1, reading)
    assert run(seen).desired == 1
    assert run(msgspec.structs.replace(seen, rules=UPSTREAM)).desired > 1


def test_a_square_wave_changes_direction_at_most_twice_in_a_window():
    """F44: +30 % and -30 % in turn, every 20 s, for one window of 300 s."""
    seen, decision, replicas = observe(hpa(external(average(100)), high=100), 10, series(1000)), None, [10]
    for step in range(15):
        load = 1300 if step % 2 else 700
        now = NOW + timedelta(seconds=20 * step)
        if decision:
            seen, _ = later(seen, decision)
        seen = msgspec.structs.replace(seen, samples=(series(load, age=-20.0 * step),))
        decision = run(seen, now)
        replicas.append(decision.desired)
    steps = [after - before for before, after in pairwise(replicas) if after != before]
    assert sum(one * two < 0 for one, two in pairwise(steps)) <= 2


def test_noise_inside_the_tolerance_changes_nothing():
    """F44."""
    for load in (910, 1090, 950, 1050):
        assert (
            run(observe(hpa(external(average(100)), high=100), 10, series(load), settings=NO_WINDOW)).desired
            == 10
        )


def test_zeros_after_a_healthy_hour_are_held_by_the_window():
    """F45: and the explanation says that every sample is zero."""
    seen = observe(hpa(cpu(50)), 10, usage_of(pods(10), 0))
    assert run(seen).desired == 10
    assert "every sample is zero" in explained(seen).metrics[0].notes


def test_a_recreated_autoscaler_starts_with_a_clean_memory():
    """F46."""
    memory = remembering(
        (Recommendation(90, NOW.timestamp() - 10),),
        owner=msgspec.structs.replace(OWNER, uid="uid-of-the-old-one"),
    )
    seen = observe(hpa(external(average(100)), high=100), 5, series(500), memory=memory)
    decision = run(seen)
    assert (decision.desired, decision.memory.owner) == (5, OWNER)
    upstream = msgspec.structs.replace(seen, rules=UPSTREAM)
    assert run(upstream).desired == 10


def test_a_policy_of_the_largest_number_freezes_nothing():
    """F47: upstream's sum wraps around and never scales up again."""
    generous = behavior(rules(("Pods", 2**31 - 1, 60), window=0))
    seen = observe(hpa(external(average(100)), high=100, behavior=generous), 5, series(900))
    for rules_of in Rules:
        assert run(msgspec.structs.replace(seen, rules=rules_of)).desired == 9


@pytest.mark.parametrize("tolerance", ["1e400", "999999999999E"])
def test_an_endless_tolerance_never_scales_up_and_never_fails(tolerance):
    """F47."""
    wide = behavior(rules(("Pods", 4, 15), window=0, tolerance=tolerance))
    assert run(observe(hpa(external(average(1)), high=100, behavior=wide), 5, series(900))).desired == 5


@pytest.mark.parametrize(
    ("failure", "error", "label"),
    [
        (
            ScaleFailure(message="unexpected GroupVersion string: a/b/c", step="parse"),
            "invalid API version in scale target reference: unexpected GroupVersion string: a/b/c",
            "spec",
        ),
        (
            ScaleFailure(message='no matches for kind "Widget"', step="map"),
            'unable to determine resource for scale target reference: no matches for kind "Widget"',
            "internal",
        ),
        (
            ScaleFailure(message="not found"),
            "failed to query scale subresource for Deployment/shop/web: not found",
            "internal",
        ),
    ],
)
def test_a_target_without_a_scale_gets_a_condition(failure, error, label):
    """F50."""
    decision = run(observe(hpa(), 1, scale=None, scale_failure=failure))
    assert (decision.error, decision.error_label, told(decision)) == (error, label, ["FailedGetScale"])
    assert condition(decision, "AbleToScale").reason == "FailedGetScale"
    assert decision.scale_to is None


def test_a_missing_right_to_a_scale_says_what_gives_it_unless_upstream_is_followed():
    failure = ScaleFailure(message="forbidden", advice="install with scalable=[]")
    ours = run(observe(hpa(), 1, scale=None, scale_failure=failure))
    exact = run(observe(hpa(), 1, scale=None, scale_failure=failure, rules=UPSTREAM))
    text = "the HPA controller was unable to get the target's current scale: forbidden"
    assert condition(ours, "AbleToScale").message == f"{text}; install with scalable=[]"
    assert ours.events[0].message == "forbidden; install with scalable=[]"
    assert (ours.error or "").endswith("forbidden; install with scalable=[]")
    assert condition(exact, "AbleToScale").message == text


@pytest.mark.parametrize(("selector", "event"), [("", "SelectorRequired"), ("app=,,", "InvalidSelector")])
def test_a_selector_that_cannot_be_used_gets_a_condition(selector, event):
    """F50."""
    decision = run(observe(hpa(), 1, usage_of(pods(1), 50), scale=scale(1, selector=selector)))
    assert told(decision)[0] == event
    assert condition(decision, "ScalingActive").reason == "InvalidSelector"


def test_surge_pods_are_not_fed_back():
    """F51."""
    seen = observe(hpa(external(average(100)), high=50), 10, series(1050), scale=scale(10, seen=13))
    assert run(msgspec.structs.replace(seen, settings=NO_WINDOW)).desired <= 11


def test_holes_in_a_stored_behaviour_read_as_defaults():
    """F52, CVE-2024-0793."""
    for holes in (
        HorizontalPodAutoscalerBehavior(),
        behavior(up=None),
        behavior(down=None),
        behavior(rules()),
    ):
        autoscaler = hpa(external(average(100)), high=50, behavior=holes)
        assert run(observe(autoscaler, 5, series(900))).error == ""
        assert run(observe(autoscaler, 5, series(100))).error == ""
    defaults = hpa(external(average(100)), high=50, behavior=HorizontalPodAutoscalerBehavior())
    assert run(observe(defaults, 5, series(2000))).desired == 10


@pytest.mark.parametrize("kind", ["Resource", "ContainerResource", "Pods", "Object", "External"])
def test_holes_in_a_stored_metric_fail_that_metric_only(kind):
    """F52."""
    seen = observe(hpa(spec(kind), external(average(100)), high=50), 5, unreadable(), series(900))
    decision = run(seen)
    assert decision.desired == 9
    assert decision.events[0].reason == f"FailedGet{kind}Metric"


def test_a_pods_metric_without_its_average_fails_that_metric_only():
    """F52."""
    hollow = pods_metric(10)
    hollow = msgspec.structs.replace(hollow, pods=msgspec.structs.replace(hollow.pods, target=MetricTarget()))
    assert "no average value target was set" in run(observe(hpa(hollow), 1, usage_of(pods(1), 1))).error


def test_a_change_by_another_hand_is_told_and_answered_once_per_sync():
    """F54."""
    seen = observe(hpa(external(average(100)), high=50), 5, series(900))
    first = run(seen)
    assert first.desired == 9
    reset, now = later(seen, first, replicas=5, samples=(series(900),))
    second = run(reset, now)
    assert (second.desired, told(second)) == (9, ["ReplicasChangedElsewhere", "SuccessfulRescale"])
    assert second.events[0].message == "replicas changed from 9 to 5 outside this autoscaler"
