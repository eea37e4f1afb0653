"""Scale to and from zero (KEP-2021): edge cases and scenarios of the specification that are decisions."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    DEPLOYMENT,
    EVERY_GATE,
    NO_WINDOW,
    NOW,
    OWNER,
    UPSTREAM,
    T,
    average,
    behavior,
    condition,
    cpu,
    explained,
    external,
    hpa,
    later,
    marked,
    object_metric,
    observe,
    pod,
    pods,
    pods_metric,
    rules,
    run,
    samples,
    series,
    told,
    tolerant,
    unreadable,
    usage_of,
    value,
)
from trimtab.decide.horizontal import Code, Memory, decide
from trimtab.decide.horizontal.memory import Recommendation
from trimtab.decide.horizontal.units import edges_of
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.metric_kinds import KINDS
from trimtab.model.quantity import Quantity

QUEUE = external(average(100))
OFF = FeatureGates(hpa_scale_to_zero=False)


def mark(decision):
    found = condition(decision, "ScaledToZero")
    return None if found is None else found.status


def stopped(*metrics, low=0, high=10, **fields):
    """Make an autoscaler that brought its workload to zero an hour ago."""
    return hpa(*(metrics or (QUEUE,)), low=low, high=high, status=marked(), **fields)


def active(metric, level="5"):
    kind = KINDS[metric.type]
    source = msgspec.structs.replace(kind.part(metric), activation=Quantity.parse(level))
    return msgspec.structs.replace(metric, **{kind.attribute: source})


@pytest.mark.parametrize(
    ("metric", "current", "units", "desired"),
    [
        pytest.param(active(QUEUE), 0, 5, 0, id="a value at the level does not wake"),
        pytest.param(active(QUEUE), 0, 6, 1, id="a value above it wakes"),
        pytest.param(active(QUEUE), 1, 5, 0, id="a value at the level keeps no workload awake"),
        pytest.param(active(QUEUE), 1, 6, 1, id="a value above it does"),
        pytest.param(active(QUEUE), 3, 5, 0, id="the total counts, not the share of a replica"),
        pytest.param(active(QUEUE, "500"), 3, 400, 0, id="a level above the target comes first"),
        pytest.param(active(QUEUE, "0"), 0, 1, 1, id="a level of 0 is as none"),
        pytest.param(active(external(value(100))), 0, 5, 0, id="a value target"),
        pytest.param(active(external(value(100))), 0, 6, 1, id="a value target above its level"),
        pytest.param(active(object_metric(average(100))), 0, 5, 0, id="an object"),
    ],
)
def test_an_activation_is_the_number_up_to_which_a_metric_asks_for_nothing(metric, current, units, desired):
    seen = observe(stopped(metric), current, series(units), pods=pods(current), settings=NO_WINDOW)
    assert run(seen).desired == desired


def test_an_activation_counts_only_while_min_replicas_is_zero():
    seen = observe(hpa(active(QUEUE, "500")), 4, series(400), pods=pods(4), settings=NO_WINDOW)
    assert run(seen).desired == 4
    assert run(observe(stopped(active(QUEUE), low=2), 0, series(1), pods=())).desired == 2


def test_another_metric_wakes_a_workload_whose_first_is_not_active():
    seen = observe(stopped(active(QUEUE), external(average(1), "mail")), 0, series(5), series(1), pods=())
    assert run(seen).desired == 1


def test_an_average_of_pods_may_have_an_activation():
    idle = hpa(active(pods_metric("100")), QUEUE, low=0)
    readings = (samples({one.name: 5000 for one in pods(2)}), series(0))
    assert run(observe(idle, 2, *readings, pods=pods(2), settings=NO_WINDOW)).desired == 0


def test_explain_says_that_a_metric_is_not_active():
    asleep = explained(observe(stopped(active(QUEUE)), 0, series(5), pods=()))
    assert asleep.reason == Code.IDLE_AT_ZERO
    assert asleep.summary == (
        "stays at 0: nothing asks for a pod: queue is 5 in all, not above its activation of 5 in all"
    )
    assert asleep.metrics[0].more_above == "5 in all"
    assert asleep.next_step == "more replicas when queue is above 5 in all"
    assert "nothing up to 5 in all, its activation" in asleep.metrics[0].notes
    falls = observe(stopped(active(QUEUE)), 1, series(5), pods=pods(1), settings=NO_WINDOW)
    assert "not above its activation" in explained(falls).summary
    assert run(falls).because == "All metrics below target or activation"
    wakes = observe(stopped(active(QUEUE)), 0, series(6), pods=())
    assert explained(wakes).summary == "scales from 0 to 1: queue is 6 in all: more than 5 in all wakes it"


@pytest.mark.parametrize("current", [0, 1, 3])
@pytest.mark.parametrize("level", ["0", "5", "90", "350", "1000"])
@pytest.mark.parametrize("metric", [QUEUE, external(value(100))], ids=["average", "value"])
def test_the_edges_of_a_metric_with_an_activation_are_true(metric, level, current):
    def asked(milli):
        seen = observe(
            stopped(active(metric, level)),
            current,
            series(milli / 1000),
            pods=pods(current),
            settings=NO_WINDOW,
        )
        return run(seen).trace

    trace = asked(100_000)
    proposal = trace.proposals[0]
    edges = edges_of(proposal, trace.tolerance, current)
    shares = proposal.pods if proposal.total is not None and proposal.pods else 1
    assert asked((edges.up + 1) * shares).proposals[0].replicas > current
    assert asked(proposal.activation).proposals[0].replicas <= current
    if edges.down >= 0 and edges.includes_down:
        assert asked(edges.down * shares).proposals[0].replicas < current


def test_a_fresh_workload_at_zero_stays_paused():
    """3.3-1."""
    decision = run(observe(hpa(QUEUE, low=0), 0, series(500), pods=()))
    assert decision.desired == 0
    assert condition(decision, "ScalingActive").reason == "ScalingDisabled"
    assert (
        condition(decision, "ScalingActive").message
        == "scaling is disabled since the replica count of the target is zero"
    )


@pytest.mark.parametrize("gates", [EVERY_GATE, OFF])
def test_a_manual_zero_with_a_minimum_pauses(gates):
    """3.3-2."""
    decision = run(observe(hpa(cpu(), low=1), 0, unreadable(), pods=(), gates=gates))
    assert (decision.desired, condition(decision, "ScalingActive").reason) == (0, "ScalingDisabled")
    assert decision.computations == ()


def test_a_queue_that_fills_wakes_the_workload():
    """3.3-3: 20 with a target of 15 gives 2."""
    decision = run(observe(stopped(object_metric(value(15))), 0, series(20), pods=()))
    assert (decision.desired, mark(decision)) == (2, "False")
    assert decision.events[-1].message == "New size: 2; reason: Ingress metric rps above target"


def test_a_value_exactly_at_its_target_wakes_one():
    """3.3-4."""
    assert run(observe(stopped(external(value(15))), 0, series(15), pods=())).desired == 1


def test_a_minimum_raised_at_zero_is_reached():
    """3.3-5."""
    decision = run(observe(stopped(low=2), 0, series(0), pods=()))
    assert decision.desired == 2
    assert condition(decision, "ScalingLimited").status == "True"
    assert condition(decision, "ScalingLimited").reason == "TooFewReplicas"
    assert decision.because == "Current number of replicas below Spec.MinReplicas"


@pytest.mark.parametrize("metric", [QUEUE, cpu()])
def test_a_minimum_raised_at_zero_is_reached_without_metrics(metric):
    """3.3-6, Z-N5."""
    seen = observe(stopped(metric, low=2), 0, unreadable(), pods=())
    decision = run(seen)
    assert (decision.desired, mark(decision), decision.error_label) == (2, "False", "internal")
    upstream = msgspec.structs.replace(seen, rules=UPSTREAM)
    assert run(upstream).desired == 0


def test_a_minimum_lowered_to_zero_lets_the_next_idle_reading_stop_it():
    """3.3-7."""
    seen = observe(hpa(QUEUE, low=1), 3, series(0), settings=NO_WINDOW)
    first = run(seen)
    assert first.desired == 1
    seen, now = later(seen, first, hpa=hpa(QUEUE, low=0), samples=(series(0),))
    assert run(seen, now).desired == 0


def test_the_condition_outlives_the_gate():
    """3.3-8, Z-D1: on, off, on at zero resumes; upstream removes the condition."""
    seen = observe(stopped(), 0, series(500), pods=(), gates=OFF)
    paused = run(seen)
    assert (paused.desired, mark(paused)) == (0, "True")
    again, now = later(seen, paused, gates=EVERY_GATE, pods=())
    assert run(again, now).desired == 4
    upstream = msgspec.structs.replace(seen, rules=UPSTREAM)
    assert mark(run(upstream)) is None


def test_what_the_autoscaler_stopped_is_not_said_to_be_stopped_by_someone_else():
    told = explained(observe(stopped(), 0, series(500), pods=(), gates=OFF))
    assert (told.reason, told.summary) == (
        Code.PAUSED,
        "stays at 0: the autoscaler scaled it to zero, and does not wake it while the feature gate HPAScaleToZero is off",
    )
    assert told.next_step == (
        "set replicas to 1 or more to resume; or turn on the operator's feature gate HPAScaleToZero"
    )
    assert told.ignored_fields[0].endswith("is off: it counts as 1, and what is at zero stays there")
    blind = explained(observe(stopped(cpu(50)), 0, pods=()))
    assert blind.summary.endswith("none of its metrics can be read without pods, so nothing wakes it")
    assert blind.next_step == "set replicas to 1 or more to resume"


def test_without_the_gate_a_stored_minimum_of_zero_counts_as_one():
    """3.3-9."""
    seen = observe(hpa(QUEUE, low=0), 3, series(0), gates=OFF, settings=NO_WINDOW)
    assert run(seen).desired == 1
    upstream = msgspec.structs.replace(seen, rules=UPSTREAM)
    assert run(upstream).desired == 0


def test_cpu_beside_an_idle_queue_keeps_one_pod():
    """3.3-10."""
    seen = observe(hpa(QUEUE, cpu(50), low=0), 1, series(0), usage_of(pods(1), 5), settings=NO_WINDOW)
    assert run(seen).desired == 1


def test_at_zero_one_readable_metric_is_enough():
    """3.3-11: CPU fails without pods, and its error is reported."""
    decision = run(observe(stopped(cpu(), QUEUE), 0, unreadable(), series(300), pods=()))
    assert (decision.desired, decision.error_label) == (3, "internal")
    assert condition(decision, "ScalingActive").reason == "ValidMetricFound"


def test_a_failed_metric_prevents_scaling_to_zero():
    """3.3-12."""
    decision = run(observe(hpa(cpu(), QUEUE, low=0), 1, unreadable(), series(0), settings=NO_WINDOW))
    assert decision.desired == 1
    assert condition(decision, "ScalingActive").reason == "FailedGetResourceMetric"


def test_a_metric_that_fails_at_zero_recovers_by_itself():
    """3.3-13, Z-F1."""
    seen = observe(stopped(), 0, unreadable(), pods=())
    down = run(seen)
    assert (down.desired, mark(down)) == (0, "True")
    assert condition(down, "ScalingActive").reason == "FailedGetExternalMetric"
    back, now = later(seen, down, samples=(series(200),), pods=())
    assert run(back, now).desired == 2


def test_pods_that_are_not_ready_yet_do_not_send_the_workload_back_to_zero():
    """3.3-14, Z-N1."""
    chosen = pods(2, ready="False", age=5.0)
    seen = observe(hpa(external(value(50)), low=0), 2, series(400), pods=chosen, settings=NO_WINDOW)
    assert run(seen).desired == 2
    upstream = msgspec.structs.replace(seen, rules=UPSTREAM)
    assert run(upstream).desired == 0


def test_before_any_pod_exists_the_workload_is_held():
    """3.3-15."""
    decision = run(observe(hpa(external(value(50)), low=0), 2, series(400), pods=(), settings=NO_WINDOW))
    assert decision.desired == 2
    assert "no pods returned by selector" in condition(decision, "ScalingActive").message


def test_an_average_at_zero_shows_the_undivided_total():
    """3.3-16."""
    decision = run(observe(stopped(), 0, series(250), pods=()))
    assert str(decision.status.current_metrics[0].external.current.average_value) == "250"


def test_a_percent_policy_alone_leaves_zero_with_one():
    """3.3-17, Z-N2."""
    percent = behavior(rules(("Percent", 100, 15), window=0))
    seen = observe(stopped(behavior=percent), 0, series(500), pods=())
    assert run(seen).desired == 1
    upstream = msgspec.structs.replace(seen, rules=UPSTREAM)
    assert run(upstream).desired == 0


def test_disabled_scale_up_stays_at_zero():
    """3.3-18."""
    disabled = behavior(rules(("Pods", 4, 15), window=0, select="Disabled"))
    decision = run(observe(stopped(behavior=disabled), 0, series(500), pods=()))
    assert decision.desired == 0
    assert condition(decision, "ScalingLimited").reason == "ScaleUpLimit"


def test_a_scale_up_window_delays_waking_and_starts_over_after_a_restart():
    """3.3-19."""
    slow = behavior(rules(("Pods", 10, 15), window=60))
    seen = observe(stopped(behavior=slow), 0, series(500), pods=())
    first = run(seen)
    assert first.desired == 0
    seen, now = later(seen, first, 61, samples=(series(500, age=-50),), pods=())
    assert run(seen, now).desired == 5
    restarted = msgspec.structs.replace(seen, memory=Memory())
    assert run(restarted, now).desired == 0


def test_replicas_above_zero_clear_the_condition():
    """3.3-20, Z-N3: HPA zero, user 3, steady, user 0: paused."""
    seen = observe(stopped(), 3, series(300))
    steady = run(seen)
    assert (steady.desired, mark(steady)) == (3, "False")
    seen, now = later(seen, steady, replicas=0, pods=(), samples=(series(300),))
    paused = run(seen, now)
    assert (paused.desired, condition(paused, "ScalingActive").reason) == (0, "ScalingDisabled")
    upstream = run(observe(stopped(), 3, series(300), rules=UPSTREAM))
    assert mark(upstream) == "True"


def test_going_to_zero_is_written_down_before_the_scale():
    """3.3-21, Z-N4: a crash or a failed status write after the scale write loses nothing."""
    seen = observe(hpa(QUEUE, low=0), 1, series(0), settings=NO_WINDOW)
    before = decide(seen, NOW)
    assert before.scale_to == 0
    crashed = msgspec.structs.replace(seen.hpa, status=before.intent)
    written = crashed.status.condition("ScaledToZero")
    assert written is not None
    assert written.status == "True"
    woken = run(observe(crashed, 0, series(300), pods=()))
    assert woken.desired == 3


def test_an_intent_is_taken_back_when_the_scale_cannot_be_written():
    """3.3-21."""
    failed = run(observe(hpa(QUEUE, low=0), 1, series(0), settings=NO_WINDOW), error="etcd is away")
    assert mark(failed) == "False"
    assert condition(failed, "AbleToScale").reason == "FailedUpdateScale"
    assert failed.status_changed


def test_a_recreated_autoscaler_at_zero_is_paused():
    """3.3-23."""
    fresh = hpa(QUEUE, low=0, metadata={"uid": "another"})
    assert (
        condition(run(observe(fresh, 0, series(500), pods=())), "ScalingActive").reason == "ScalingDisabled"
    )


def test_someone_elses_zero_under_a_true_condition_is_taken_for_ours():
    """3.3-24."""
    assert run(observe(stopped(), 0, series(300), pods=())).desired == 3


def test_a_cpu_only_autoscaler_with_minimum_zero_is_not_marked():
    """3.3-25."""
    seen = observe(hpa(cpu(), low=0), 1, usage_of(pods(1), 0), settings=NO_WINDOW)
    decision = run(seen)
    assert (decision.desired, mark(decision), decide(seen, NOW).intent) == (0, "False", None)


def test_the_downscale_window_delays_zero():
    """3.3-26."""
    seen = observe(hpa(QUEUE, low=0), 2, series(0))
    first = run(seen)
    assert (first.desired, condition(first, "AbleToScale").reason) == (2, "ScaleDownStabilized")
    seen, now = later(seen, first, 301, samples=(series(0, age=-290),))
    assert run(seen, now).desired == 0


def test_the_first_rescale_of_any_autoscaler_adds_the_condition():
    """3.3-27."""
    assert mark(run(observe(hpa(cpu(50)), 1, usage_of(pods(1), 90)))) == "False"


def test_the_time_of_the_condition_moves_once():
    """3.3-28."""
    seen = observe(stopped(), 0, series(300), pods=())
    first = run(seen)
    assert condition(first, "ScaledToZero").last_transition_time == NOW
    seen, now = later(seen, first, samples=(series(900, age=5),))
    second = run(seen, now)
    assert second.desired > first.desired
    assert condition(second, "ScaledToZero").last_transition_time == NOW


def test_an_external_value_target_with_only_an_average_is_an_average():
    """3.3-30, 4.3-7."""
    odd = external({"type": "Value", "averageValue": "100"})
    assert run(observe(stopped(odd), 0, series(300), pods=())).desired == 3


class TestScenarios:
    """Section 3.7."""

    def test_idle_reaches_zero(self):
        """Z-I1."""
        decision = run(observe(hpa(QUEUE, low=0), 1, series(0), settings=NO_WINDOW))
        assert (decision.desired, mark(decision)) == (0, "True")
        assert decision.events[-1].reason == "SuccessfulRescale"
        assert decision.events[-1].message == "New size: 0; reason: All metrics below target"

    def test_a_minimum_of_one_brings_it_back_for_good(self):
        """Z-I2."""
        seen = observe(hpa(QUEUE, low=0), 1, series(0), settings=NO_WINDOW)
        at_zero = run(seen)
        seen, now = later(seen, at_zero, hpa=hpa(QUEUE, low=1), samples=(series(0),), pods=())
        one = run(seen, now)
        assert (one.desired, mark(one)) == (1, "False")
        seen, now = later(seen, one, samples=(series(0),))
        again = run(seen, now + timedelta(seconds=15))
        assert (again.desired, again.scale_to, told(again)) == (1, None, [])

    def test_load_comes_and_goes(self):
        """Z-I3."""
        seen, decision, steps = observe(hpa(QUEUE, low=0), 1, series(500), settings=NO_WINDOW), None, []
        for step, load in enumerate((500, 500, 0, 400)):
            if decision:
                seen, _ = later(seen, decision, samples=(series(load, age=20 - 15 * step),))
            decision = run(seen, NOW + timedelta(seconds=15 * step))
            steps.append((decision.desired, mark(decision)))
        assert steps == [(4, "False"), (5, "False"), (0, "True"), (4, "False")]

    def test_value_target_to_zero_and_back(self):
        """Z-E1."""
        seen = observe(hpa(external(value(50)), low=0, high=3), 1, series(0), settings=NO_WINDOW)
        zero = run(seen)
        assert (zero.desired, mark(zero)) == (0, "True")
        seen, now = later(seen, zero, samples=(series(200),), pods=())
        assert run(seen, now).desired == 3

    def test_without_the_gate_never_below_one(self):
        """Z-E2."""
        seen = observe(hpa(external(value(50)), low=0, high=3), 1, series(0), settings=NO_WINDOW, gates=OFF)
        assert run(seen).desired == 1

    @pytest.mark.parametrize(
        ("status", "replicas", "want"),
        [
            pytest.param(None, 1, "True", id="Z-A1 by the HPA"),
            pytest.param(None, 0, None, id="Z-A1 by the user"),
            pytest.param("False", 1, "True", id="Z-A1 by the HPA after the user"),
        ],
    )
    def test_who_brought_it_to_zero(self, status, replicas, want):
        autoscaler = hpa(QUEUE, low=0, status=marked(status))
        seen = observe(autoscaler, replicas, series(0), settings=NO_WINDOW)
        assert mark(run(seen)) == want

    @pytest.mark.parametrize(
        ("replicas", "low", "status", "load", "want"),
        [
            pytest.param(1, 0, None, 0, 0, id="Z-A2 1 to 0 after min went to 0"),
            pytest.param(1, 1, None, 0, 1, id="Z-A2 1 stays while min is 1"),
            pytest.param(0, 1, "True", 0, 1, id="Z-A2 0 to 1 when min goes to 1"),
            pytest.param(0, 0, "True", 100, 1, id="Z-A2 0 to 1 on demand"),
        ],
    )
    def test_transitions_between_zero_and_one(self, replicas, low, status, load, want):
        autoscaler = hpa(QUEUE, low=low, status=marked(status))
        assert run(observe(autoscaler, replicas, series(load), settings=NO_WINDOW)).desired == want

    def test_a_restart_at_zero_resumes(self):
        """Z-K1: nothing but the stored condition is needed."""
        assert run(observe(stopped(), 0, series(200), pods=(), memory=Memory())).desired == 2


def test_owned_pods_that_are_not_ready_hold_the_workload():
    """6-1: OwnerReference and a Value metric after leaving zero."""
    autoscaler = hpa(external(value(50)), low=0, selection_strategy="OwnerReference")
    chosen = (pod("web-1", ready="False", owners=(DEPLOYMENT,)), pod("stray", owners=()))
    seen = observe(autoscaler, 2, series(400), pods=chosen, settings=NO_WINDOW)
    assert run(seen).desired == 2


def test_a_full_scale_down_tolerance_never_reaches_zero():
    """6-3."""
    seen = observe(hpa(QUEUE, low=0, behavior=tolerant(down="1", window=0)), 1, series(0))
    assert run(seen).desired == 1


def test_memory_of_replicas_above_zero_does_not_wake_it():
    """A recommendation inside the window holds a shrinking workload, not one at zero."""
    memory = Memory(owner=OWNER, recommendations=(Recommendation(5, T - 10),))
    autoscaler = stopped(behavior=behavior(rules(("Pods", 4, 15), window=0)))
    assert run(observe(autoscaler, 0, series(0), pods=(), memory=memory)).desired == 0
