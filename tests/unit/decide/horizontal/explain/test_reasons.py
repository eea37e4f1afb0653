"""The reason of every decision is there, points the right way, and its advice works."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import reasons
from tests.unit.decide.horizontal.builders import (
    NO_WINDOW,
    NOW,
    OWNER,
    T,
    average,
    behavior,
    container_cpu,
    cpu,
    cpu_value,
    explained,
    external,
    hpa,
    losing,
    marked,
    memory,
    object_metric,
    observe,
    pods,
    pods_metric,
    rules,
    run,
    samples,
    scale,
    series,
    unreadable,
    usage_of,
    value,
)
from tests.unit.decide.horizontal.test_properties import observations
from trimtab.dashboard.pages.why_not import why_not_more
from trimtab.decide.horizontal import Record, explain
from trimtab.decide.horizontal.memory import Memory, Recommendation, ScaleEvent
from trimtab.decide.horizontal.observation.plugin_answers import PolicyAnswer
from trimtab.decide.horizontal.rules import HpaSettings
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.hpa.types import ReplicaPolicySpec

AGES = st.sampled_from([1.0, 15.0, 40.0, 100.0, 299.0, 301.0, 1000.0])


@st.composite
def directions(draw):
    """Draw the rules of one direction."""
    policies = st.tuples(
        st.sampled_from(["Pods", "Percent"]), st.integers(1, 200), st.sampled_from([15, 60, 600])
    )
    return rules(
        *draw(st.lists(policies, min_size=1, max_size=2)),
        window=draw(st.sampled_from([None, 0, 30, 300])),
        select=draw(st.sampled_from(["Max", "Min", "Disabled"])),
        tolerance=draw(st.sampled_from([None, None, 0, 0.05, 0.5])),
    )


@st.composite
def memories(draw):
    """Draw what was recommended and scaled before."""
    recommended = st.builds(Recommendation, st.integers(0, 60), AGES.map(lambda age: T - age))
    events = st.lists(
        st.builds(ScaleEvent, st.integers(1, 9), AGES.map(lambda age: T - age)), max_size=3
    ).map(lambda found: tuple(sorted(found, key=lambda one: one.at)))
    found = draw(st.none() | st.lists(recommended, max_size=4))
    return Memory(
        owner=OWNER,
        recommendations=None if found is None else tuple(sorted(found, key=lambda one: one.at)),
        scale_up=draw(events),
        scale_down=draw(events),
    )


@st.composite
def anything(draw):
    """Draw an observation in which windows, rates, gaps, lost metrics and foreign pods meet."""
    seen = draw(observations())
    measured = {one.name: draw(st.integers(-5, 300)) for one in seen.pods if draw(st.integers(0, 3))}
    total = draw(st.sampled_from([0.0, 1.0, 7.5, 50.0, 333.0]))
    kinds = [
        (cpu(draw(st.integers(1, 200))), samples(measured)),
        (cpu_value("70m"), samples(measured)),
        (container_cpu("main", 40), samples(measured)),
        (memory(50), samples({name: used * 10_000 for name, used in measured.items()})),
        (pods_metric("30m"), samples(measured)),
        (object_metric(average(draw(st.integers(1, 30)))), series(total)),
        (object_metric(value(draw(st.integers(1, 300)))), series(total)),
        (external(average("7500m"), selector={"matchLabels": {"queue": "mail"}}), series(total, 3.0)),
        (external(value(20)), unreadable()),
        (losing(external(average(5)), "Replicas", replicas=3), unreadable()),
        (losing(external(average(5)), "Ignore"), unreadable()),
    ]
    metrics = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))
    has_behavior = draw(st.booleans())
    replicas = draw(st.sampled_from([0, 1, 1, 2, 3, 4, 5, 6, 9, 12]))
    low = draw(st.sampled_from([0, 1, 1, max(replicas, 1)]))
    spec = msgspec.structs.replace(
        seen.hpa.spec,
        metrics=tuple(metric for metric, _ in metrics),
        behavior=behavior(draw(directions()), draw(directions())) if has_behavior else None,
        min_replicas=low,
        max_replicas=max(draw(st.sampled_from([replicas, 10, 40])), low, 1),
    )
    return msgspec.structs.replace(
        seen,
        hpa=msgspec.structs.replace(seen.hpa, spec=spec),
        samples=tuple(reading for _, reading in metrics),
        memory=draw(memories()),
        scale=scale(
            replicas, seen=draw(st.sampled_from([replicas, replicas, max(replicas - 1, 0), len(seen.pods)]))
        ),
    )


@settings(max_examples=300)
@given(observations())
def test_the_reason_of_any_decision_is_right_and_its_advice_works(seen):
    reasons.checked(seen, NOW)


@settings(max_examples=300)
@given(anything())
def test_so_are_those_where_windows_rates_gaps_and_lost_metrics_meet(seen):
    reasons.checked(seen, NOW)


@st.composite
def asleep(draw):
    """Draw an observation of a workload that the autoscaler brought to zero, while pods may match its labels."""
    seen = draw(anything())
    left = draw(st.sampled_from([0, 0, 1, len(seen.pods)]))
    spec = msgspec.structs.replace(seen.hpa.spec, min_replicas=draw(st.sampled_from([0, 0, 0, 1, 2])))
    return msgspec.structs.replace(
        seen,
        hpa=msgspec.structs.replace(seen.hpa, spec=spec, status=marked()),
        gates=FeatureGates(hpa_scale_to_zero=draw(st.sampled_from([True, True, False]))),
        scale=scale(0, seen=left),
    )


@settings(max_examples=300)
@given(asleep())
def test_so_are_those_at_zero_while_other_pods_match(seen):
    reasons.checked(seen, NOW)


@st.composite
def with_policies(draw):
    """Draw an observation of an HPA with replica policies, of which some ask for nothing or fail."""
    seen = draw(anything())
    names = ["example.com/Plan", "example.com/Other"][: draw(st.integers(1, 2))]
    answers = tuple(
        PolicyAnswer(plugin=name, failure="it raised", reason="PluginRaised")
        if draw(st.integers(0, 5)) == 0
        else PolicyAnswer(
            plugin=name,
            replicas=draw(st.none() | st.integers(0, 14) | st.just(seen.scale.spec.replicas)),
            reason="by the plan",
        )
        for name in names
    )
    spec = msgspec.structs.replace(
        seen.hpa.spec, replica_policies=tuple(ReplicaPolicySpec(name=name) for name in names)
    )
    return msgspec.structs.replace(
        seen, hpa=msgspec.structs.replace(seen.hpa, spec=spec), policy_answers=answers
    )


@settings(max_examples=500)
@given(with_policies())
def test_so_are_those_where_replica_policies_ask_too(seen):
    reasons.checked(seen, NOW)


PLAN = "replica policy example.com/Plan"
QUEUE = external(average(100), "queue_length")


def planned(load, asked, replicas=4, **fields):
    """Observe a queue of 100 per replica, and a policy that asks for that many replicas."""
    spec = {"replica_policies": (ReplicaPolicySpec(name="example.com/Plan"),), "high": fields.pop("high", 20)}
    answer = PolicyAnswer(plugin="example.com/Plan", version="1", replicas=asked, reason="by the plan")
    if "behavior" in fields:
        spec["behavior"] = fields.pop("behavior")
    return observe(
        hpa(QUEUE, **spec),
        replicas,
        series(load),
        policy_answers=(answer,),
        **({"settings": NO_WINDOW} | fields),
    )


@pytest.mark.parametrize(
    ("seen", "follows"),
    [
        pytest.param(
            planned(100, 4),
            f"more replicas when {PLAN} asks for more than 4, or queue_length is above 110 per pod; "
            f"or fewer replicas when {PLAN} asks for fewer than 4 and queue_length is at 75 per pod or less",
            id="the policy decides",
        ),
        pytest.param(
            planned(400, 2),
            "more replicas when queue_length is above 110 per pod, or "
            f"{PLAN} asks for more than 4; or fewer replicas when queue_length is at 75 per pod or less",
            id="the metric decides",
        ),
        pytest.param(
            planned(400, 4),
            "more replicas when queue_length is above 110 per pod, or "
            f"{PLAN} asks for more than 4; or fewer replicas when queue_length is at 75 per pod or less "
            f"and {PLAN} asks for fewer than 4",
            id="both ask for the same",
        ),
        pytest.param(
            planned(100, 9, high=4), "raise maxReplicas", id="the policy asks for more than maxReplicas"
        ),
        pytest.param(
            planned(
                400,
                9,
                behavior=behavior(up=rules(("Percent", 100, 15), window=300)),
                memory=Memory(owner=OWNER, recommendations=(Recommendation(4, T - 60),), replicas=4),
            ),
            f"{PLAN} must ask for more than 4 until 2026-01-15T12:04:00Z",
            id="the scale-up window holds the policy",
        ),
        pytest.param(
            planned(
                100,
                2,
                memory=Memory(owner=OWNER, recommendations=(Recommendation(4, T - 60),), replicas=4),
                settings=HpaSettings(),
            ),
            "metrics and replica policies must ask for fewer than 4 until 2026-01-15T12:04:00Z",
            id="the scale-down window holds both",
        ),
        pytest.param(
            observe(
                hpa(
                    losing(QUEUE, "Ignore"),
                    replica_policies=(ReplicaPolicySpec(name="example.com/Plan"),),
                    high=20,
                ),
                4,
                unreadable(),
                policy_answers=(PolicyAnswer(plugin="example.com/Plan", replicas=4, reason="by the plan"),),
                settings=NO_WINDOW,
            ),
            f"more replicas when {PLAN} asks for more than 4",
            id="no metric can be read, so the policy cannot lower the replicas",
        ),
    ],
)
def test_advice_names_the_policy_that_decides(seen, follows):
    assert explained(seen).next_step == follows


def test_a_policy_that_is_partly_held_is_who_asks():
    told = explained(planned(100, 19))
    assert (told.desired, told.partly_held) == (
        8,
        f"{PLAN} asks for 19, but one sync goes no farther than 8",
    )
    assert why_not_more(planned(100, 9, high=4), run(planned(100, 9, high=4))) == (
        "Replica policy example.com/Plan asks for 9, but this is maxReplicas. Next: raise maxReplicas."
    )


NINE = "9 pods with cpu at 42 % need 8 replicas at the target of 50 %, and 2 are set"
DRY = {"annotations": {"autoscaling.trimtab.dev/mode": "DryRun"}}
MISSPELT = {"annotations": {"autoscaling.trimtab.dev/mode": "Dryrum"}}
WAKING = hpa(external(average(30), "queue_length"), low=0, high=20, status=marked())


def seen_on(number, milli, replicas, **fields):
    """Return CPU of that much per pod on a number of pods, of a target of 50 %, with that many replicas set."""
    chosen = pods(number)
    return observe(hpa(cpu(50), high=20), replicas, usage_of(chosen, milli), pods=chosen, **fields)


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (
            seen_on(9, 42, 2),
            f"scales from 2 to 4: {NINE}; the selector counts 7 pods more than the target has",
        ),
        (
            seen_on(5, 42, 4, scale=scale(4, seen=5)),
            "scales from 4 to 5: 5 pods with cpu at 42 % need 5 replicas at the target of 50 %, and 4 are set",
        ),
        (
            seen_on(3, 60, 10, scale=scale(10, seen=3), settings=NO_WINDOW),
            "scales from 10 to 4: 3 pods with cpu at 60 % need 4 replicas at the target of 50 %, and 10 are set",
        ),
        (
            observe(WAKING, 0, series(5), pods=()),
            "scales from 0 to 1: queue_length is 5 in all: any load wakes it",
        ),
        (seen_on(2, 100, 2), "scales from 2 to 4: cpu above target"),
        (seen_on(4, 10, 4, settings=NO_WINDOW), "scales from 4 to 1: All metrics below target"),
    ],
)
def test_the_reason_of_a_change_is_true_of_value_target_and_pods(seen, why):
    assert explained(seen).summary == why
    assert run(seen).because.endswith(("above target", "below target"))  # the event keeps upstream's words


def test_a_metric_names_every_range_in_which_it_asks_for_more_or_fewer():
    assert "more replicas also above 11 % up to 44 %" in explained(seen_on(9, 48, 2)).metrics[0].notes
    few = explained(seen_on(3, 50, 10, scale=scale(10, seen=3)))
    assert "fewer replicas also above 55 % up to 150 %" in few.metrics[0].notes
    assert explained(seen_on(4, 42, 4)).metrics[0].notes == ()


@pytest.mark.parametrize(
    ("measured", "more", "note"),
    [
        (5, "more replicas when cpu is above 55 %", "more replicas also above 0 % up to 44 %"),
        (1, "more replicas when cpu is above 279 %", "4 without a sample"),
    ],
)
def test_at_zero_pods_of_others_wake_it_only_where_they_say(measured, more, note):
    chosen = pods(5)
    sleeping = hpa(cpu(50), external(average(30), "queue_length"), low=0, high=20, status=marked())
    found = samples(dict.fromkeys([one.name for one in chosen[:measured]], 0))
    told = explained(observe(sleeping, 0, found, series(0), pods=chosen))
    assert f"{more}, or queue_length is above 0" in told.next_step
    assert note in told.metrics[0].notes


def test_growth_that_other_pods_may_cause_names_them_while_it_goes_on():
    assert explained(seen_on(9, 42, 2)).next_step == (
        "the new pods become ready and are measured; or set selectionStrategy to OwnerReference, "
        "because 7 more pods are counted than the target has"
    )


@pytest.mark.parametrize(
    ("metadata", "follows"),
    [
        ({}, "the new pods become ready and are measured"),
        (DRY, "end the dry run, and it scales to 4"),
        (MISSPELT, "correct the annotation, and it scales to 4"),
    ],
)
def test_nothing_follows_a_change_that_is_not_made(metadata, follows):
    chosen = pods(2)
    seen = observe(hpa(cpu(50), metadata=metadata), 2, usage_of(chosen, 100), pods=chosen)
    assert explained(seen).next_step == follows
    assert ("nothing is scaled" in why_not_more(seen, run(seen))) == bool(metadata)


def test_a_dry_run_of_the_whole_program_is_one_too():
    seen = seen_on(2, 100, 2)
    told = explain(Record(observation=seen, decision=run(seen)), dry_run=True)
    assert told.next_step == "end the dry run, and it scales to 4"


def test_no_pod_remains_at_zero():
    seen = observe(WAKING, 1, series(0), pods=pods(1), settings=NO_WINDOW)
    assert explained(seen).next_step == "the autoscaler wakes it when a metric asks for a pod"


def test_a_change_that_is_partly_held_says_by_what():
    before = Memory(owner=OWNER, recommendations=(Recommendation(9, T - 100),), replicas=10)
    told = explained(seen_on(10, 10, 10, memory=before))
    assert (told.desired, told.partly_held) == (
        9,
        "the metrics ask for 2, but 9 replicas were recommended at 2026-01-15T11:58:20Z, within the window of 300 s",
    )
    assert f"partly: {told.partly_held}" in str(told).splitlines()


def test_advice_waits_for_a_rate_that_holds_only_after_the_window():
    """Scale-ups that leave the period of a policy no longer offset the scale-downs in it."""
    down = rules(("Percent", 7, 600), window=300)
    autoscaler = hpa(object_metric(average(20)), low=1, high=12, behavior=behavior(down=down))
    past = Memory(
        owner=OWNER,
        scale_up=(ScaleEvent(13, T - 299), ScaleEvent(6, T - 15)),
        scale_down=(ScaleEvent(13, T - 15),),
    )
    reasons.checked(observe(autoscaler, 12, series(50), memory=past), NOW)
