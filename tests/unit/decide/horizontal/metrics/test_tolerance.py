"""Per-HPA tolerance (KEP-4951): the edge cases and scenarios of the specification that are decisions."""

from datetime import timedelta

import pytest

from tests.unit.decide.horizontal.builders import (
    EVERY_GATE,
    NOW,
    UPSTREAM,
    average,
    behavior,
    condition,
    cpu,
    external,
    hpa,
    later,
    marked,
    observe,
    pod,
    pods,
    rules,
    run,
    samples,
    scale,
    series,
    tolerant,
    usage_of,
    value,
)
from trimtab.decide.horizontal import HpaSettings
from trimtab.decide.horizontal.metrics.pods import Tolerance, tolerance_of
from trimtab.model.feature_gates import FeatureGates


def usage_ratio(ratio, replicas, **fields):
    """Observe a workload of which every pod uses `ratio` times its target of 100 %."""
    chosen = pods(replicas)
    autoscaler = hpa(cpu(100), high=1000, behavior=fields.pop("behavior", None))
    return observe(autoscaler, replicas, usage_of(chosen, round(ratio * 100)), pods=chosen, **fields)


@pytest.mark.parametrize(
    ("ratio", "replicas", "tolerances", "want"),
    [
        pytest.param(
            1.07, 100, tolerant(up="0.05"), 107, id="2.3-1 7 % over is too much for a tolerance of 5 %"
        ),
        pytest.param(1.07, 100, None, 100, id="2.3-1 7 % over is within the default of 10 %"),
        pytest.param(1.10, 100, None, 100, id="2.3-2 exactly 10 % over is within the default"),
        pytest.param(0.90, 100, tolerant(window=0), 100, id="2.3-3 exactly 10 % under is within the default"),
        pytest.param(
            1.00, 100, tolerant("0", "0", 0), 100, id="2.3-4 with tolerance 0 only the target is within"
        ),
        pytest.param(
            1.01, 100, tolerant("0", "0", 0), 101, id="2.3-4 with tolerance 0 one percent scales up"
        ),
        pytest.param(
            0.99, 100, tolerant("0", "0", 0), 99, id="2.3-4 with tolerance 0 one percent scales down"
        ),
        pytest.param(
            0.00, 10, tolerant(down="1", window=0), 10, id="2.3-5 a scale-down tolerance of 1 never shrinks"
        ),
        pytest.param(
            0.80, 10, tolerant(up="0.5", window=0), 8, id="2.3-6 scale-down keeps the global tolerance"
        ),
        pytest.param(9.00, 10, tolerant(up="20"), 10, id="2.3-7 a tolerance of 2000 % never scales up"),
        pytest.param(1.04, 100, tolerant(up="0.05"), 100, id="TOL-E1"),
        pytest.param(1.07, 100, tolerant(up="0.05"), 107, id="TOL-E2"),
        pytest.param(0.96, 100, tolerant(down="0.05", window=0), 100, id="TOL-E3"),
        pytest.param(0.93, 100, tolerant(down="0.05", window=0), 93, id="TOL-E4 without a window"),
        pytest.param(
            9.00, 10, tolerant(up="10", down="10"), 10, id="TOL-E7 a tolerance of 1000 % never scales up"
        ),
        pytest.param(
            0.00, 10, tolerant(up="10", down="10"), 10, id="TOL-E7 a tolerance of 1000 % never scales down"
        ),
    ],
)
def test_one_ratio(ratio, replicas, tolerances, want):
    assert run(usage_ratio(ratio, replicas, behavior=tolerances)).desired == want


def test_a_huge_tolerance_limits_nothing():
    decision = run(usage_ratio(9.0, 10, behavior=tolerant(up="20")))
    assert condition(decision, "ScalingLimited").status == "False"
    assert condition(decision, "AbleToScale").reason == "ReadyForNewScale"


def test_utilisation_is_cut_to_whole_percents_before_the_ratio():
    """2.3-8: with a target of 10 % the ratio moves in steps of 0.1, so 5 % tolerance means any change of a point."""
    chosen = pods(10)
    autoscaler = hpa(cpu(10), high=100, behavior=tolerant(up="0.05"))
    almost = run(
        observe(autoscaler, 10, samples({one.name: 10 for one in chosen} | {"web-1": 19}), pods=chosen)
    )
    assert (almost.desired, almost.trace.proposals[0].value) == (10, 10)
    point = run(observe(autoscaler, 10, samples({one.name: 11 for one in chosen}), pods=chosen))
    assert (point.desired, point.trace.proposals[0].value) == (11, 11)


def test_an_average_within_tolerance_keeps_spec_replicas_not_the_surged_status():
    """2.3-9: during a surge rollout the status shows more pods than were asked for."""
    seen = observe(hpa(external(average(100)), high=50), 10, series(1200), scale=scale(10, seen=12))
    assert run(seen).desired == 10
    upstream = observe(
        hpa(external(average(100)), high=50),
        10,
        series(1200),
        scale=scale(10, seen=12),
        rules=UPSTREAM,
    )
    assert run(upstream).desired == 12


def test_from_zero_the_tolerance_is_ignored():
    """2.3-10, for a Value target at exactly its target."""
    autoscaler = hpa(external(value(50)), low=0, status=marked())
    assert run(observe(autoscaler, 0, series(50), pods=())).desired == 1


@pytest.mark.parametrize(("total", "want"), [(0, 0), (250, 3)])
def test_an_average_without_replicas_divides_by_nothing_and_does_not_fail(total, want):
    """2.3-11: the ratio is infinite or not a number, which is never within."""
    autoscaler = hpa(external(average(100)), low=0, status=marked())
    assert run(observe(autoscaler, 0, series(total), pods=())).desired == want


@pytest.mark.parametrize(("replicas", "want"), [(12, 10), (1, 2)])
def test_outside_the_bounds_tolerance_is_irrelevant(replicas, want):
    """2.3-12."""
    seen = observe(hpa(cpu(100), low=2, high=10, behavior=tolerant(up="20", down="1")), replicas)
    assert run(seen).desired == want


def test_the_same_tolerances_apply_to_every_metric():
    """2.3-13."""
    chosen = pods(10)
    autoscaler = hpa(cpu(100), external(average(100)), high=100, behavior=tolerant(up="0.2"))
    seen = observe(autoscaler, 10, usage_of(chosen, 115), series(1150), pods=chosen)
    assert run(seen).desired == 10
    over = observe(autoscaler, 10, usage_of(chosen, 115), series(1250), pods=chosen)
    assert run(over).desired == 13


def test_a_ratio_outside_that_is_inside_once_missing_pods_are_filled_stays():
    """2.3-14."""
    chosen = pods(10)
    seen = observe(hpa(cpu(100), high=100), 10, usage_of(chosen[:9], 120), pods=chosen)
    decision = run(seen)
    assert decision.desired == 10
    assert decision.trace.proposals[0].ratio == 1.2
    assert decision.trace.proposals[0].filled_ratio == 1.08


def test_the_gate_off_ignores_a_stored_tolerance_and_keeps_it():
    """2.3-15, TOL-G1."""
    off = FeatureGates(hpa_configurable_tolerance=False)
    seen = usage_ratio(1.07, 100, behavior=tolerant(up="0.05"), gates=off)
    assert run(seen).desired == 100
    assert seen.hpa.spec.behavior.scale_up.tolerance is not None


@pytest.mark.parametrize(
    ("tolerances", "gates", "want"),
    [
        pytest.param(tolerant(up="0.01"), EVERY_GATE, 4, id="2.3-16 up 0.01 gives 4"),
        pytest.param(None, EVERY_GATE, 3, id="2.3-16 the default gives 3"),
        pytest.param(
            tolerant(up="0.01"),
            FeatureGates(hpa_configurable_tolerance=False),
            3,
            id="2.3-16 the gate off gives 3",
        ),
    ],
)
def test_known_numbers_up(tolerances, gates, want):
    chosen = (pod("web-1", cpu=900), pod("web-2", cpu=1000), pod("web-3", cpu=1100))
    reading = samples({"web-1": 1010, "web-2": 1030, "web-3": 1020})
    seen = observe(hpa(cpu(100), high=10, behavior=tolerances), 3, reading, pods=chosen, gates=gates)
    assert run(seen).desired == want


def test_known_numbers_down():
    """2.3-16: three pods at 30 % with a scale-down tolerance of 0.9 stay."""
    chosen = pods(3, cpu=1000)
    autoscaler = hpa(cpu(100), behavior=tolerant(down="0.9", window=0))
    assert run(observe(autoscaler, 3, usage_of(chosen, 300), pods=chosen)).desired == 3


def test_the_integration_numbers_of_upstream():
    """2.3-17, TOL-I1: External averageValue 100, up 0.05, down 0.5."""
    autoscaler = hpa(external(average(100)), high=1000, behavior=tolerant("0.05", "0.5", 0))
    seen, decision, replicas = observe(autoscaler, 35, series(3700)), None, []
    for step, total in enumerate((3700, 3800, 1000, 800)):
        if decision:
            seen, _ = later(seen, decision, samples=(series(total, age=20 - 15 * step),))
        decision = run(seen, NOW + timedelta(seconds=15 * step))
        replicas.append(decision.desired)
    assert replicas == [37, 37, 10, 10]


def test_tolerances_are_printed_as_upstream_prints_them():
    """2.3-18."""
    assert str(Tolerance(up=0.05, down=0.1)) == "[down:10.0%, up:5.0%]"


def test_a_shrinking_ratio_takes_effect_after_the_window():
    """TOL-E4: 7 % under with a tolerance of 5 % shrinks once the window has passed."""
    seen = usage_ratio(0.93, 100, behavior=tolerant(down="0.05", window=60))
    first = run(seen)
    assert first.desired == 100
    chosen = pods(100)
    seen, now = later(seen, first, 75, samples=(usage_of(chosen, 93, age=-60),))
    assert run(seen, now).desired == 93


@pytest.mark.parametrize(("flag", "want"), [(0.1, 115), (0.2, 100)])
def test_without_tolerances_the_flag_counts(flag, want):
    """TOL-E5."""
    assert run(usage_ratio(1.15, 100, settings=HpaSettings(tolerance=flag))).desired == want


def test_small_up_and_large_down():
    """TOL-E6: 10, 11, 12, and the load of ten pods stays at 12."""
    autoscaler = hpa(external(average(100)), high=100, behavior=tolerant("0.05", "0.5", 0))
    seen, decision, replicas = observe(autoscaler, 10, series(1000)), None, []
    for step, total in enumerate((1000, 1100, 1200, 1000)):
        if decision:
            seen, _ = later(seen, decision, samples=(series(total, age=20 - 15 * step),))
        decision = run(seen, NOW + timedelta(seconds=15 * step))
        replicas.append(decision.desired)
    assert replicas == [10, 11, 12, 12]


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        pytest.param(behavior(rules(tolerance="0.05")), (0.05, 0.1), id="up only"),
        pytest.param(behavior(down=rules(tolerance="50m")), (0.1, 0.05), id="down only"),
        pytest.param(None, (0.1, 0.1), id="no behavior"),
    ],
)
def test_each_direction_takes_its_own_tolerance(rule, want):
    """TOL-U2."""
    tolerance = tolerance_of(rule, HpaSettings(), EVERY_GATE)
    assert (tolerance.up, tolerance.down) == want
