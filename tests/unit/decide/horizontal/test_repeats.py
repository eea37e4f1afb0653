"""A decision that would only repeat itself may be left out: whoever leaves it out decides as whoever does not."""

from datetime import UTC, datetime
from math import inf
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import (
    EVERY_GATE,
    OWNER,
    REPLICA_SET,
    T,
    average,
    behavior,
    cpu,
    external,
    hpa,
    later,
    losing,
    memory,
    observe,
    pod,
    pods,
    pods_metric,
    rules,
    run,
    samples,
    scale,
    series,
    settled,
    unreadable,
    usage_of,
)
from trimtab.decide.horizontal import (
    FetchFailure,
    Memory,
    Observation,
    PodSamples,
    Rules,
    Sample,
    Series,
    after_scale,
    decide,
)
from trimtab.decide.horizontal.memory import Recommendation, ScaleEvent, extend
from trimtab.decide.horizontal.standing import (
    Standing,
    Stored,
    find_standing,
    find_standing_after_write,
    must_write,
    without_values,
)

STEPS = st.sampled_from([0.5, 1.0, 15.0, 15.0, 15.0, 15.0, 30.0, 100.0, 299.99, 300.0, 1800.0, 3599.0])


AGES = [-100, -59.995, 0, 20, 29.99, 30, 31, 119.99, 120, 121, 299.99, 300, 301, 400]


class Driver:
    """One life of an autoscaler: what it remembers and last wrote; `skips` leaves out what would repeat itself.

    With `max_age`, values that moved wait until the stored ones are as old.
    """

    def __init__(self, autoscaler, *, skips: bool, max_age: float | None = None) -> None:
        self.hpa = autoscaler
        self.memory = settled(4)
        self.standing: Standing | None = None
        self.skips, self.max_age = skips, max_age
        self.stored: Memory = self.memory
        self.skipped = 0

    def step(self, inputs: dict[str, Any], now: float) -> tuple[Any, ...]:
        """Return what this step does to the world and leaves in the memory."""
        readings = inputs["samples"][: len(self.hpa.spec.metrics)]
        seen = Observation(
            hpa=self.hpa, memory=self.memory, gates=EVERY_GATE, **inputs | {"samples": readings}
        )
        if self.skips and self.standing is not None and self.standing.holds(seen, now):
            self.skipped += 1
            self.memory = extend(self.memory, now)
            last = self.standing.decision
            return (last.desired, None, self.hpa.status, (), self.memory, last.computations, last.action)
        made = after_scale(seen, decide(seen, datetime.fromtimestamp(now, UTC)))
        self.memory = made.memory
        stored = Stored(self.hpa.status, lambda: self.stored)
        is_written = must_write(stored, made, keeps_memory=self.max_age is not None, max_age=self.max_age)
        if is_written:
            self.hpa = msgspec.structs.replace(self.hpa, status=made.status)
            self.stored = made.memory
        shown_until = -inf if self.max_age is None else self.stored.at + self.max_age - 1.0
        if is_written and self.max_age is not None:
            self.standing = find_standing_after_write(seen, made, self.hpa, shown_until)
        else:
            self.standing = None if is_written else find_standing(seen, made, shown_until)
        scaled = made.desired if made.action != "none" else None
        return (
            made.desired,
            scaled,
            self.hpa.status,
            made.events,
            made.memory,
            made.computations,
            made.action,
        )


class World:
    """What both drivers look at: it moves with time, with the load, and with what is written to the scale."""

    def __init__(self) -> None:
        self.now = T
        self.replicas = 4
        self.pods = pods(4)
        self.usage = 50
        self.queue = 400
        self.age: float = 20.0
        self.is_failing = False

    def inputs(self) -> dict[str, Any]:
        taken = self.now - self.age
        usage = PodSamples(
            samples={one.name: Sample(self.usage, taken, 15.0) for one in self.pods}, timestamp=taken
        )
        queue = Series(samples=(Sample(self.queue * 1000, taken, 0.0),))
        readings = (FetchFailure(message="down") if self.is_failing else usage, queue)
        return {"scale": scale(self.replicas), "pods": self.pods, "samples": readings}

    def change(self, draw) -> None:
        """Let something happen; most of the time nothing does."""
        what = draw(
            st.sampled_from(
                ["", "", "", "", "", "", "usage", "queue", "hand", "pod", "age", "failure", "follow"]
            )
        )
        if what == "usage":
            self.usage = draw(st.sampled_from([0, 20, 45, 50, 55, 90, 200]))
        elif what == "queue":
            self.queue = draw(st.sampled_from([0, 100, 380, 400, 900]))
        elif what == "hand":
            self.replicas = draw(st.integers(0, 12))
        elif what == "pod":
            ready = draw(st.sampled_from(["True", "False"]))
            young = pod(
                "web-young", ready=ready, started=self.now, ready_since=self.now, owners=(REPLICA_SET,)
            )
            self.pods = (*pods(4), young)
        elif what == "age":
            self.age = draw(st.sampled_from(AGES))
        elif what == "failure":
            self.is_failing = not self.is_failing
        elif what == "follow":
            self.pods = pods(min(self.replicas, 12))


BEHAVIORS = [
    None,
    behavior(),
    behavior(rules(("Pods", 1, 60), window=30), rules(("Pods", 1, 90), window=120)),
    behavior(rules(("Percent", 50, 15), select="Min"), rules(select="Disabled")),
]


@settings(max_examples=300, deadline=None)
@given(
    st.data(),
    st.sampled_from(BEHAVIORS),
    st.booleans(),
    st.sampled_from(["", "", "LastGood", "Ignore"]),
    st.sampled_from([(None, None), (None, None), (30, None), (300, None), (300, 30), (300, 300)]),
)
def test_leaving_out_what_repeats_itself_changes_nothing(data, rates, has_queue, policy, ages):
    first = losing(cpu(50), policy) if policy else cpu(50)
    metrics = (first, external(average(100))) if has_queue else (first,)
    metrics = tuple(
        msgspec.structs.replace(metric, max_age_seconds=age)
        for metric, age in zip(metrics, ages, strict=False)
    )
    autoscaler = hpa(*metrics, low=0 if has_queue else 1, high=10, behavior=rates)
    world, always, sparing = World(), Driver(autoscaler, skips=False), Driver(autoscaler, skips=True)
    for _ in range(data.draw(st.integers(5, 40))):
        world.now += data.draw(STEPS)
        world.change(data.draw)
        inputs = world.inputs()
        want, got = always.step(inputs, world.now), sparing.step(inputs, world.now)
        assert got == want
        if want[1] is not None:
            world.replicas = want[1]


@settings(max_examples=300, deadline=None)
@given(
    st.data(),
    st.sampled_from(BEHAVIORS),
    st.booleans(),
    st.lists(st.sampled_from([20, 30, 44, 45, 46, 50, 54, 55, 56, 90, 110]), min_size=1, max_size=3),
)
def test_usage_within_its_bands_changes_neither_scales_nor_conditions_nor_events(
    data, rates, has_queue, levels
):
    metrics = (cpu(50), external(average(100))) if has_queue else (cpu(50),)
    autoscaler = hpa(*metrics, low=1, high=10, behavior=rates)
    world, always = World(), Driver(autoscaler, skips=False)
    sparing = Driver(autoscaler, skips=True, max_age=75.0)
    for _ in range(data.draw(st.integers(5, 40))):
        world.now += data.draw(STEPS)
        world.change(data.draw)
        world.usage = data.draw(st.sampled_from(levels)) + data.draw(st.integers(-1, 1))
        inputs = world.inputs()
        want, got = always.step(inputs, world.now), sparing.step(inputs, world.now)
        assert (got[0], got[1], got[3], got[4]) == (want[0], want[1], want[3], want[4])
        assert without_values(got[2]) == without_values(want[2])
        assert got[5:] == want[5:]
        if want[1] is not None:
            world.replicas = want[1]
            world.pods = pods(min(world.replicas, 12))


def test_noise_within_the_band_is_decided_only_when_the_stored_values_are_old():
    """Most of the decisions about a noisy workload asked for what the last one had asked for."""
    driver, draw = Driver(hpa(cpu(50)), skips=True, max_age=75.0), Random(1)
    world = World()
    for _ in range(240):
        world.now += 15
        world.usage = draw.randint(47, 54)
        driver.step(world.inputs(), world.now)
    assert 240 - driver.skipped <= 52, "one in 75 s, which writes the values"


@pytest.mark.parametrize("usage", [10, 90], ids=["down", "up"])
def test_rate_policies_let_go_at_the_same_moment(usage):
    slowly = behavior(rules(("Pods", 1, 60), window=0), rules(("Pods", 1, 60), window=0))
    world, always, sparing = (
        World(),
        *(Driver(hpa(cpu(50), behavior=slowly), skips=skips) for skips in (False, True)),
    )
    world.usage = usage
    for _ in range(400):
        world.now += 1
        want, got = always.step(world.inputs(), world.now), sparing.step(world.inputs(), world.now)
        assert got == want
        world.replicas = want[0]
    assert sparing.skipped > 300


def test_an_idle_workload_is_decided_once_and_again_when_something_happens():
    world, driver = World(), Driver(hpa(cpu(50)), skips=True)
    for _ in range(20):
        world.now += 15
        driver.step(world.inputs(), world.now)
    assert driver.skipped == 18  # the first writes the status, the second finds it written
    world.usage = 55
    driver.step(world.inputs(), world.now + 15)
    assert driver.skipped == 18


def quiet(autoscaler=None, **fields):
    """Return the second of two decisions in a row on the same inputs, with what it was made on."""
    chosen = fields.pop("pods", pods(4))
    first = observe(autoscaler or hpa(cpu(50)), 4, usage_of(chosen, 50), pods=chosen, **fields)
    seen, now = later(first, run(first), pods=chosen)
    return seen, run(seen, now), now


def test_a_workload_at_its_target_is_steady_for_ever():
    seen, decision, now = quiet()
    held = find_standing(seen, decision)
    assert held is not None
    assert held.until == float("inf")
    again = msgspec.structs.replace(seen, memory=decision.memory, samples=(usage_of(seen.pods, 50, age=-10),))
    assert held.holds(again, now.timestamp() + 30)


@pytest.mark.parametrize(
    ("max_age", "age", "is_covered"),
    [
        (None, 100, True),
        (None, 121, False),
        (60, 59, True),
        (60, 61, False),
        (300, 299, True),
        (300, 301, False),
    ],
)
def test_a_sample_that_its_metric_refuses_is_decided_on(max_age, age, is_covered):
    aged = msgspec.structs.replace(cpu(50), max_age_seconds=max_age)
    seen, decision, now = quiet(hpa(aged))
    held = find_standing(seen, decision)
    assert held is not None
    moment = now.timestamp() + 15
    taken = moment - age
    again = msgspec.structs.replace(
        seen, memory=decision.memory, samples=(usage_of(seen.pods, 50, age=T - taken),)
    )
    assert held.holds(again, moment) is is_covered
    assert held.accepts_ages(taken, moment) is is_covered


def test_a_higher_recommendation_ends_it_when_it_leaves_its_window():
    before = Memory(
        owner=OWNER, recommendations=(Recommendation(9, T - 200), Recommendation(4, T - 15)), replicas=9
    )
    seen = observe(hpa(cpu(50), high=9), 9, usage_of(pods(9), 20), memory=before)
    again, now = later(seen, run(seen), replicas=9)
    held = find_standing(again, run(again, now))
    assert held is not None
    assert held.until == pytest.approx(T - 200 + 299.5, abs=0.1)


def test_a_scale_event_ends_it_when_it_leaves_its_period():
    before = Memory(
        owner=OWNER,
        recommendations=(Recommendation(4, T - 15),),
        scale_up=(ScaleEvent(2, T - 5),),
        replicas=4,
    )
    slow = hpa(cpu(50), behavior=behavior(rules(("Pods", 2, 60))))
    seen, decision, now = quiet(slow, memory=before)
    held = find_standing(seen, decision)
    assert held is not None
    assert now.timestamp() < held.until <= T + 55


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"rules": Rules.KUBERNETES_1_36}, id="upstream remembers every sync"),
        pytest.param(
            {"pods": (*pods(3), pod("web-4", age=100.0))}, id="a young pod's samples depend on their time"
        ),
    ],
)
def test_what_is_never_steady(fields):
    seen, decision, _ = quiet(**fields)
    assert find_standing(seen, decision) is None


def test_a_young_pod_does_not_matter_to_memory():
    chosen = (*pods(3), pod("web-4", age=100.0))
    seen = observe(hpa(memory(50)), 4, usage_of(chosen, 500_000), pods=chosen)
    again, now = later(seen, run(seen), pods=chosen)
    assert find_standing(again, run(again, now)) is not None


def test_a_decision_that_writes_is_not_steady():
    seen = observe(hpa(cpu(50)), 4, usage_of(pods(4), 50))
    first = run(seen)
    assert first.status_changed
    assert find_standing(seen, first) is None


@pytest.mark.parametrize(
    ("change", "is_covered"),
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"samples": (usage_of(pods(4), 51),)}, False, id="another value"),
        pytest.param({"samples": (usage_of(pods(3), 50),)}, False, id="a sample is missing"),
        pytest.param({"samples": (usage_of(pods(4), 50, age=400.0),)}, False, id="the samples are stale"),
        pytest.param({"samples": ()}, False, id="nothing was read"),
        pytest.param({"scale": scale(5)}, False, id="somebody scaled"),
        pytest.param({"pods": pods(5)}, False, id="a new pod"),
        pytest.param({"hpa": hpa(cpu(50))}, False, id="another object"),
    ],
)
def test_what_a_steady_decision_covers(change, is_covered):
    seen, decision, now = quiet()
    held = find_standing(seen, decision)
    assert held is not None
    again = msgspec.structs.replace(seen, **({"memory": decision.memory} | change))
    assert held.holds(again, now.timestamp() + 15) is is_covered


def two_metrics(queue=(4,), **how):
    """Return a decision on CPU and a queue that asks for as many replicas, in a row on the same inputs."""
    autoscaler = hpa(cpu(50), external(average(1)))
    readings = (usage_of(pods(4), 50), series(*queue, **how))
    first = observe(autoscaler, 4, *readings, pods=pods(4))
    seen, now = later(first, run(first), pods=pods(4))
    return seen, run(seen, now), now


@pytest.mark.parametrize(
    ("change", "is_covered"),
    [
        pytest.param(series(4), True, id="the same series"),
        pytest.param(series(3), False, id="another value"),
        pytest.param(series(2, 2), False, id="another number of series"),
        pytest.param(series(4, age=400.0), False, id="a stale series"),
        pytest.param(usage_of(pods(4), 50), False, id="samples of pods instead"),
        pytest.param(unreadable(), False, id="nothing could be read"),
    ],
)
def test_every_series_must_be_the_same_and_trusted(change, is_covered):
    seen, decision, now = two_metrics()
    held = find_standing(seen, decision)
    assert held is not None
    again = msgspec.structs.replace(seen, memory=decision.memory, samples=(seen.samples[0], change))
    assert held.holds(again, now.timestamp() + 15) is is_covered


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
def test_one_metric_with_rejected_samples_keeps_a_decision_from_being_repeated(order):
    stale = samples({"web-1": 50, "web-2": 50, "web-3": 50})
    late = msgspec.structs.replace(stale, samples={**stale.samples, "web-4": Sample(50, T - 900, 15.0)})
    metrics = [(pods_metric("1"), usage_of(pods(4), 1000)), (cpu(50), late)][::order]
    autoscaler = hpa(*(metric for metric, _ in metrics))
    first = observe(autoscaler, 4, *(reading for _, reading in metrics), pods=pods(4))
    seen, now = later(first, run(first), pods=pods(4))
    decision = run(seen, now)
    assert decision.scale_to is None
    assert find_standing(seen, decision) is None


@pytest.mark.parametrize(
    ("change", "is_covered"),
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"hpa": hpa(cpu(50))}, False, id="another object"),
        pytest.param({"scale": scale(5)}, False, id="another scale"),
        pytest.param({"scale": None}, False, id="no scale"),
        pytest.param({"after": -100.0}, False, id="a clock that went back"),
        pytest.param({"after": 1e9}, True, id="much later"),
    ],
)
def test_what_a_steady_decision_covers_without_pods_and_samples(change, is_covered):
    seen, decision, now = quiet()
    held = find_standing(seen, decision)
    assert held is not None
    given = {"hpa": seen.hpa, "scale": seen.scale, "after": 15.0} | change
    moment = now.timestamp() + given.pop("after")
    assert held.holds_alone(memory=decision.memory, now=moment, **given) is is_covered
    equal_scale = msgspec.structs.replace(seen.scale)
    assert held.holds_alone(seen.hpa, equal_scale, decision.memory, now.timestamp() + 15)


def test_an_event_that_may_be_repeated_ends_a_steady_decision():
    told = Memory(
        owner=OWNER,
        recommendations=(Recommendation(4, T - 15),),
        replicas=4,
        last_event_times={"Said": T - 100},
    )
    seen, decision, _ = quiet(memory=told)
    held = find_standing(seen, decision)
    assert held is not None
    assert held.until == pytest.approx(T - 100 + 300, abs=0.1)


@pytest.mark.parametrize("order", [1, -1], ids=["odd last", "odd first"])
@pytest.mark.parametrize(("age", "is_steady"), [(300.0, True), (100.0, False), (284.0, False)])
def test_one_young_pod_is_enough_to_decide_again(order, age, is_steady):
    chosen = (*pods(3), pod("web-4", age=900.0, started=T - age))[::order]
    seen, decision, _ = quiet(pods=chosen)
    assert (find_standing(seen, decision) is not None) is is_steady
