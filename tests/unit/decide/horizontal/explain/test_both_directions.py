"""Words and times of an explanation hold for growing as for shrinking."""

import pytest

from tests.unit.decide.horizontal.builders import (
    OWNER,
    T,
    average,
    behavior,
    cpu,
    explained,
    external,
    hpa,
    observe,
    pod,
    pods,
    rules,
    series,
    usage_of,
)
from trimtab.decide.horizontal import Code, Memory
from trimtab.decide.horizontal.memory import Recommendation

QUEUE = external(average(100))
QUICK = rules(("Percent", 100, 15), window=300)
BOTH_WINDOWS = behavior(up=QUICK, down=QUICK)


def held(load, *remembered):
    """Observe 4 replicas whose metrics ask for another number, with (replicas, seconds ago) in the window."""
    memory = Memory(
        owner=OWNER,
        recommendations=tuple(Recommendation(replicas, T - ago) for replicas, ago in remembered),
        replicas=4,
    )
    return explained(observe(hpa(QUEUE, behavior=BOTH_WINDOWS), 4, series(load), memory=memory))


@pytest.mark.parametrize(
    ("load", "reason", "words"),
    [
        pytest.param(700, Code.UP_WINDOW, "more than 4", id="up"),
        pytest.param(100, Code.DOWN_WINDOW, "fewer than 4", id="down"),
    ],
)
@pytest.mark.parametrize(
    ("remembered", "until"),
    [
        pytest.param([(4, 60)], "12:04:00", id="one recommendation"),
        pytest.param([(4, 200), (4, 60)], "12:04:00", id="the last of two"),
        pytest.param([(4, 60), (4, 200)], "12:04:00", id="the last of two, listed first"),
    ],
)
def test_a_window_holds_until_its_last_recommendation_leaves_it(load, reason, words, remembered, until):
    told = held(load, *remembered)
    assert told.reason == reason
    assert told.next_step == f"the metrics must ask for {words} until 2026-01-15T{until}Z"


@pytest.mark.parametrize(
    ("load", "other", "until"),
    [
        pytest.param(700, 7, "12:02:00", id="up: a recommendation of more does not hold"),
        pytest.param(100, 1, "12:02:00", id="down: a recommendation of fewer does not hold"),
    ],
)
def test_recommendations_of_the_same_direction_do_not_hold(load, other, until):
    told = held(load, (4, 180), (other, 60))
    assert told.next_step.endswith(f"until 2026-01-15T{until}Z")


def test_a_metric_names_every_gap_in_its_samples():
    measured = pods(4)
    unready = (pod("young-1", ready="False"), pod("young-2", ready="False"))
    going = (pod("going-1", phase="Failed"), pod("going-2", phase="Failed"), pod("going-3", phase="Failed"))
    everyone = (*measured, *unready, *going)
    told = explained(
        observe(hpa(cpu(50), high=20), 6, usage_of((*measured[:3], *unready, *going), 50), pods=everyone)
    )
    notes = told.metrics[0].notes
    assert [note for note in notes if note[0].isdigit()] == [
        "2 unready",
        "1 without a sample",
        "3 failed or going",
    ]
