"""What a simulated workload does with production decisions."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.library.simulator.builders import CPU, GATES, HALF_CORE, candidate, minutes, queue
from trimtab.decide.horizontal import Rules, replay
from trimtab.decide.horizontal.records.record import dumps
from trimtab.library.simulator import Model, ModelError, backtest, run
from trimtab.model.feature_gates import FeatureGates


def replicas_at(steps, minute):
    """Return the replicas in force at the end of a minute."""
    steps = list(steps)
    last = steps[0].at + minute * 60
    return [step.replicas for step in steps if step.at < last][-1]


def test_load_that_stays_at_its_target_changes_nothing():
    result = run(candidate(), minutes(*[1] * 10), HALF_CORE)
    assert result.changes == []
    assert (result.figures.lowest, result.figures.peak) == (4, 4)


def test_double_load_doubles_the_pods_and_their_absence_is_noticed():
    result = run(candidate(), minutes(1, 1, 2, 2, 2, 2, 2, 2), HALF_CORE)
    assert [(one.decision.current, one.decision.desired) for one in result.changes] == [(4, 8)]
    assert 0 < result.figures.carried["cpu"].above_target < 0.3


def test_pods_carry_nothing_before_they_are_ready():
    slow = Model(requests={"cpu": 500}, start_seconds=120)
    steps = list(backtest(candidate(), minutes(1, 1, 2, 2, 2, 2, 2, 2), slow))
    grown = next(step for step in steps if step.replicas == 8)
    ready = next(step for step in steps if step.ready == 8)
    assert ready.at - grown.at == 120


def test_the_window_of_the_hpa_delays_shrinking():
    load = minutes(4, *[1] * 12)
    assert replicas_at(backtest(candidate(), load, HALF_CORE), 5) == 16
    assert replicas_at(backtest(candidate(), load, HALF_CORE), 12) == 4
    calm = candidate(behavior={"scaleDown": {"stabilizationWindowSeconds": 1200}})
    assert replicas_at(backtest(calm, load, HALF_CORE), 12) == 16


def test_a_tolerance_of_its_own_makes_the_difference():
    load = minutes(1, *[1.07] * 10)
    assert run(candidate(), load, HALF_CORE).figures.ups == 0
    assert run(candidate(behavior={"scaleUp": {"tolerance": "0.05"}}), load, HALF_CORE).figures.ups == 1


def test_only_its_own_pods_count_by_owner():
    by_owner = candidate(selectionStrategy="OwnerReference")
    assert [
        one.decision.trace.counted_pods for one in run(by_owner, minutes(1, 2, 2, 2), HALF_CORE).changes
    ] == [4]


def test_a_queue_goes_to_zero_and_wakes_its_worker():
    worker = candidate(queue(), minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    load = minutes(20, 0, 0, 0, 0, 0, 35, 35, 35, column="queue_length")
    steps = list(backtest(worker, load, Model()))
    assert replicas_at(steps, 1) == 2
    assert replicas_at(steps, 5) == 0
    assert replicas_at(steps, 8) == 4


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 35), st.sampled_from([None, 0, 1, 3]))
def test_a_worker_of_an_idle_queue_wakes_with_the_first_load(idle, load, replicas):
    """Where a trace begins idle, the autoscaler itself brought the workload to zero: nobody paused it."""
    worker = candidate(queue(), minReplicas=0, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    trace = minutes(*[0] * idle, *[load] * 3, column="queue_length")
    steps = list(backtest(worker, trace, Model(replicas=replicas)))
    assert steps[-1].replicas == -(-load // 10)


def test_a_workload_that_nothing_could_have_brought_to_zero_does_not_start_there():
    idle = minutes(0, 0, 20, 20, column="queue_length")
    gate_off = replace(candidate(queue(), minReplicas=0), gates=FeatureGates(hpa_scale_to_zero=False))
    for tried in (candidate(queue(), minReplicas=1), gate_off):
        assert next(iter(backtest(tried, idle, Model()))).replicas == 1
        with pytest.raises(ModelError, match="stays paused: start with 1 replica"):
            run(tried, idle, Model(replicas=0))


def test_a_series_is_told_apart_by_its_selector():
    load = minutes(30, 30, 30, column='"queue_length{queue=mail}"')
    assert run(candidate(queue(selector={"queue": "mail"})), load, Model()).figures.peak == 3


def test_a_hole_in_the_trace_holds_the_replicas():
    load = minutes(2, "", "", "", "", "", "", "", "", "", 2)
    result = run(candidate(), load, HALF_CORE)
    assert (result.figures.lowest, result.figures.peak) == (8, 8)


def test_a_pod_at_its_capacity_shows_no_more_and_the_rest_is_short():
    crowded = Model(requests={"cpu": 500}, capacity={"cpu": 500}, replicas=1)
    result = run(candidate(maxReplicas=1), minutes(2, 2), crowded)
    assert result.figures.carried["cpu"].short == pytest.approx(1.5 * 9 * 15 / 3600)
    assert result.figures.carried["cpu"].idle == 0


def test_every_change_can_be_replayed_to_the_byte():
    result = run(candidate(), minutes(1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), HALF_CORE)
    assert len(result.changes) >= 2
    assert [dumps(replay(one)) for one in result.changes] == [dumps(one) for one in result.changes]


def test_upstreams_rules_can_be_tried_too():
    ours = candidate()
    upstreams = type(ours)(ours.name, ours.hpa, gates=GATES, rules=Rules.KUBERNETES_1_36)
    load = minutes(1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1)
    found, theirs = run(ours, load, HALF_CORE).replicas, run(upstreams, load, HALF_CORE).replicas
    assert [replicas for _, replicas in found] == [replicas for _, replicas in theirs]
    # Upstream's window includes its very edge, so that it ends a sync later.
    assert {after - before for (before, _), (after, _) in zip(found, theirs, strict=True)} == {0, 15}


@pytest.mark.parametrize(
    ("hpa", "model", "complaint"),
    [
        pytest.param(candidate(), Model(), "add --request cpu=QUANTITY", id="a utilization of nothing"),
        pytest.param(
            candidate(queue()), Model(), "no column queue_length; its columns are cpu", id="no column"
        ),
    ],
)
def test_what_is_missing_is_named(hpa, model, complaint):
    with pytest.raises(ModelError, match=complaint):
        run(hpa, minutes(1, 1), model)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=20), st.integers(1, 5), st.integers(0, 10))
def test_replicas_stay_within_their_bounds_and_a_second_run_repeats_the_first(loads, lowest, more):
    tried = candidate(CPU, minReplicas=lowest, maxReplicas=lowest + more)
    first, second = (run(tried, minutes(*loads), HALF_CORE) for _ in range(2))
    assert lowest <= first.figures.lowest <= first.figures.peak <= lowest + more
    assert first == second
