"""Status writes: what is written at once, what waits and for how long, and how many writes that saves."""

import random
from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import (
    NOW,
    OWNER,
    T,
    average,
    cpu,
    cpu_value,
    external,
    hpa,
    later,
    losing,
    observe,
    pods,
    run,
    series,
    unreadable,
    usage_of,
)
from trimtab.decide.horizontal.memory import EMPTY, Memory, Recommendation, ScaleEvent, resume
from trimtab.decide.horizontal.standing import Stored, must_write, without_values
from trimtab.decide.horizontal.status import generations
from trimtab.model.hpa.types import HorizontalPodAutoscalerStatus

CPU = hpa(cpu(100))
MAX_AGE = 75.0


def status_of(percent: int, replicas: int = 4) -> HorizontalPodAutoscalerStatus:
    """Return the status at that utilization, whose target is 100 %."""
    status: HorizontalPodAutoscalerStatus = run(
        observe(CPU, replicas, usage_of(pods(replicas), percent))
    ).status
    return status


STORED = status_of(100)


def changed(old: HorizontalPodAutoscalerStatus, kind: str, **fields) -> HorizontalPodAutoscalerStatus:
    """Return the status with another condition of that type."""
    conditions = tuple(
        msgspec.structs.replace(condition, **fields) if condition.type == kind else condition
        for condition in old.conditions
    )
    return msgspec.structs.replace(old, conditions=conditions)


@pytest.mark.parametrize(
    ("new", "is_substance"),
    [
        pytest.param(STORED, False, id="nothing"),
        pytest.param(status_of(103), False, id="a value"),
        pytest.param(changed(STORED, "AbleToScale", message="pod 7 of 9"), False, id="a text"),
        pytest.param(msgspec.structs.replace(STORED, current_replicas=5), True, id="replicas"),
        pytest.param(msgspec.structs.replace(STORED, desired_replicas=5), True, id="desired"),
        pytest.param(msgspec.structs.replace(STORED, last_scale_time=NOW), True, id="a scale"),
        pytest.param(msgspec.structs.replace(STORED, observed_generation=2), True, id="a generation"),
        pytest.param(changed(STORED, "ScalingLimited", status="True"), True, id="a condition's status"),
        pytest.param(changed(STORED, "AbleToScale", reason="DryRun"), True, id="a condition's reason"),
        pytest.param(
            changed(STORED, "AbleToScale", last_transition_time=NOW.replace(year=2020)),
            True,
            id="a condition's time",
        ),
        pytest.param(
            msgspec.structs.replace(STORED, conditions=STORED.conditions[1:]),
            True,
            id="a condition that is gone",
        ),
        pytest.param(msgspec.structs.replace(STORED, current_metrics=()), True, id="no value"),
    ],
)
def test_everything_but_values_and_texts_is_substance(new, is_substance):
    assert (without_values(STORED) != without_values(new)) is is_substance


def test_a_metric_with_another_name_or_kind_of_value_is_substance():
    one, other = external(average(100), name="mail"), external(average(100), name="jobs")
    before, after = (run(observe(hpa(metric), 4, series(400))).status for metric in (one, other))
    assert without_values(before) != without_values(after)
    ratio = run(observe(hpa(cpu_value("100m")), 4, usage_of(pods(4), 100))).status
    assert without_values(STORED) != without_values(ratio)


def reason(
    seen, decision, memory=None, *, max_age=MAX_AGE, has_other=False, keeps_memory=True, is_inherited=False
):
    stored = Stored(
        seen.hpa.status, lambda: seen.memory if memory is None else memory, is_inherited, has_other
    )
    return must_write(stored, decision, keeps_memory=keeps_memory, max_age=max_age)


def next_sync(percent, seconds=15):
    """Return what the sync after one at 100 % sees and decides."""
    first = run(observe(CPU, 4, usage_of(pods(4), 100)))
    seen, when = later(
        observe(CPU, 4), first, seconds, samples=(usage_of(pods(4), percent, age=20.0 - seconds),), replicas=4
    )
    return seen, run(seen, when)


@pytest.mark.parametrize(
    ("percent", "seconds", "max_age", "want"),
    [
        pytest.param(100, 3600, MAX_AGE, None, id="nothing changed: nothing is ever written"),
        pytest.param(103, 15, MAX_AGE, None, id="a value waits"),
        pytest.param(103, 73, MAX_AGE, None, id="until it is old"),
        pytest.param(103, 75, MAX_AGE, "age", id="it is old"),
        pytest.param(103, 15, None, "age", id="without a limit nothing waits"),
        pytest.param(100, 15, None, None, id="what is the same is not written"),
    ],
)
def test_values_wait_until_the_stored_ones_are_old(percent, seconds, max_age, want):
    assert reason(*next_sync(percent, seconds), max_age=max_age) == want


def test_another_reason_is_written_although_nothing_else_differs():
    seen, decision = next_sync(100)
    assert not decision.status_changed
    assert reason(seen, decision, has_other=True) == "substance"


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({}, None, id="extended it is the same"),
        pytest.param({"owner": EMPTY.owner}, "memory", id="another owner"),
        pytest.param(
            {"recommendations": (Recommendation(5, T - 60), Recommendation(4, T))},
            "memory",
            id="another recommendation",
        ),
        pytest.param({"scale_up": (ScaleEvent(1, T),)}, "memory", id="another event"),
        pytest.param({"is_asking": False}, "memory", id="metrics were lost"),
        pytest.param({"policies": {"p": 1}}, "memory", id="R4-2: a policy"),
    ],
)
def test_what_a_replica_that_takes_over_would_not_know_is_written_at_once(changes, want):
    """R4-2, R4-4: whole memories are compared, so that no field is forgotten."""
    seen, decision = next_sync(100)
    stored = msgspec.structs.replace(seen.memory, **changes)
    assert reason(seen, decision, stored) == want
    assert reason(seen, decision, stored, keeps_memory=False) is None
    assert reason(seen, decision, Memory()) == "memory", "as after kubectl replace"


@pytest.mark.parametrize(("seconds", "want"), [(45, None), (46, "memory")])
def test_who_takes_over_writes_a_quiet_hpa_once(seconds, want):
    seen, decision = next_sync(100, seconds)
    assert reason(seen, decision, is_inherited=True) == want
    assert reason(seen, decision) is None


def test_a_metric_that_is_lost_is_written_and_what_is_left_out_is_what_resuming_gives():
    last = losing(cpu(100), "LastGood")
    first = run(observe(hpa(last), 4, usage_of(pods(4), 100)))
    seen, when = later(observe(hpa(last), 4), first, samples=(unreadable(),))
    lost = run(seen, when)
    assert reason(seen, lost, first.memory) == "memory"
    quiet, when = later(observe(hpa(last), 4), first, samples=(usage_of(pods(4), 101),))
    decision = run(quiet, when)
    assert reason(quiet, decision, first.memory) is None
    assert resume(first.memory, OWNER, 4, decision.now) == decision.memory


def uniform(draw: random.Random, _before: float) -> float:
    return draw.uniform(0.95, 1.05)


def per_pod(draw: random.Random, _before: float) -> float:
    return sum(draw.uniform(0.95, 1.05) for _ in range(10)) / 10


def walk(draw: random.Random, before: float) -> float:
    return min(max(before + draw.uniform(-0.02, 0.02), 0.95), 1.05)


@pytest.mark.parametrize("noise", [uniform, per_pod, walk])
def test_noise_of_five_percent_costs_at_most_a_quarter_of_the_writes(noise: Callable[..., float]):
    """Count writes per HPA-hour of real decisions, at levels of usage from 30 % to 105 % of the target."""
    hours, ours, theirs = 4, 0, 0
    workers = pods(4, cpu=1000)
    levels = [0.3, 0.5, 0.6, 0.7, 0.8, 0.95, 1.0, 1.05]
    for level in levels:
        draw, factor = random.Random(level), 1.0
        autoscaler = hpa(cpu(100), low=4)
        seen, memory = observe(autoscaler, 4, pods=workers), EMPTY
        newest = autoscaler.status
        for number in range(hours * 240):
            factor = noise(draw, factor)
            when = NOW + timedelta(seconds=15 * number)
            used = usage_of(workers, round(level * factor * 1000), age=20.0 - number * 15.0)
            seen = msgspec.structs.replace(seen, samples=(used,))
            decision = run(seen, when)
            assert decision.desired == 4
            theirs += generations.must_write(decision.status, newest)
            newest = decision.status
            stored = seen.hpa.status
            if reason(seen, decision, memory) is not None:
                ours, stored, memory = ours + 1, decision.status, decision.memory
            seen = msgspec.structs.replace(
                seen, hpa=msgspec.structs.replace(autoscaler, status=stored), memory=decision.memory
            )
    per_hour = hours * len(levels)
    figures = f"{ours / per_hour:.1f} writes per HPA-hour, {theirs / per_hour:.1f} in every sync"
    print(f"{noise.__name__}: {figures}")  # noqa: T201 - the figures of docs/performance.md, shown by `pytest -rP`
    assert ours <= theirs / 4
