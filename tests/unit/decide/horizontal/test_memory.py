"""Memory: what is kept between decisions, how small it stays, and how it comes back when lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import (
    NO_WINDOW,
    T,
    average,
    behavior,
    external,
    hpa,
    observe,
    rules,
    run,
    series,
)
from trimtab.decide.horizontal import Memory, memory
from trimtab.decide.horizontal.limits import Windows, highest_within, within_both_windows
from trimtab.decide.horizontal.memory import MOST_SCALE_EVENTS, Recommendation, ScaleEvent

histories = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3600)), max_size=40)


def kept_of(history):
    """Feed a history to `remember`, oldest first."""
    kept: tuple[Recommendation, ...] = ()
    for replicas, ago in sorted(history, key=lambda one: -one[1]):
        kept = memory.remember(kept, replicas, T - ago, 3600.0)
    return kept


def whole_of(history):
    return tuple(
        Recommendation(replicas, T - ago) for replicas, ago in sorted(history, key=lambda one: -one[1])
    )


@settings(max_examples=150, deadline=None)
@given(histories, st.integers(0, 20), st.integers(0, 3600))
def test_what_is_forgotten_never_changes_a_window(history, desired, window):
    """The short memory answers every window as the whole history does."""
    short = highest_within(kept_of(history), desired, T, float(window))
    assert short == highest_within(whole_of(history), desired, T, float(window))


@settings(max_examples=150, deadline=None)
@given(histories, st.integers(0, 20), st.integers(0, 20), st.integers(0, 3600), st.integers(0, 3600))
def test_what_is_forgotten_never_changes_two_windows(history, current, desired, up, down):
    windows = Windows(up=float(up), down=float(down))
    short = within_both_windows(kept_of(history), current, desired, T, windows)
    whole = within_both_windows(whole_of(history), current, desired, T, windows)
    assert short == whole


def test_a_steady_workload_remembers_one_recommendation():
    kept: tuple[Recommendation, ...] = ()
    for step in range(1000):
        kept = memory.remember(kept, 5, T + 15 * step, 3600.0)
    assert kept == (Recommendation(5, T + 15 * 999),)


def test_recommendations_older_than_every_window_are_dropped():
    kept = memory.remember((Recommendation(9, T - 3601),), 5, T, 3600.0)
    assert kept == (Recommendation(5, T),)


def test_scale_events_are_bounded_and_lose_no_change():
    events: tuple[ScaleEvent, ...] = ()
    for step in range(500):
        events = memory.add_event(events, 1, T + step)
    assert len(events) == MOST_SCALE_EVENTS
    assert sum(event.change for event in events) == 500


def test_scale_events_older_than_every_period_are_dropped():
    assert memory.add_event((ScaleEvent(3, T - 1801),), 1, T) == (ScaleEvent(1, T),)


def test_memory_is_written_compactly_and_read_back():
    full = Memory(
        uid="u",
        recommendations=(Recommendation(5, T), Recommendation(3, T + 15)),
        scale_up=(ScaleEvent(2, T),),
        strategy="OwnerReference",
        replicas=5,
        last_event_times={"PodSelectionFallback": T},
    )
    assert memory.loads(memory.dumps(full)) == full
    assert len(memory.dumps(Memory(uid="u", recommendations=(Recommendation(5, T),) * 10))) < 300


def test_without_memory_the_current_replicas_count_as_the_first_recommendation():
    decision = run(observe(hpa(external(average(100))), 6, series(100), memory=Memory()))
    assert (decision.desired, decision.memory.recommendations[0].replicas) == (6, 6)


@pytest.mark.parametrize(("before", "after", "up", "down"), [(2, 5, 3, 0), (5, 2, 0, 3)])
def test_a_rescale_is_remembered_by_direction(before, after, up, down):
    fast = behavior(rules(("Pods", 9, 15), window=0), rules(("Pods", 9, 15), window=0))
    autoscaler = hpa(external(average(100)), behavior=fast)
    decision = run(observe(autoscaler, before, series(after * 100), settings=NO_WINDOW))
    assert decision.desired == after
    assert sum(event.change for event in decision.memory.scale_up) == up
    assert sum(event.change for event in decision.memory.scale_down) == down


def test_a_rescale_that_failed_is_not_remembered():
    fast = behavior(rules(("Pods", 9, 15), window=0))
    seen = observe(hpa(external(average(100)), behavior=fast), 2, series(500))
    assert run(seen, error="conflict").memory.scale_up == ()


WINDOW = (Recommendation(6, T - 60),)


def latest_of(kept: Memory) -> Recommendation:
    assert kept.recommendations
    return kept.recommendations[-1]


@pytest.mark.parametrize(
    ("stored", "current", "up", "down"),
    [
        pytest.param(None, 6, (), (), id="no replicas stored: nothing is known to have changed"),
        pytest.param(6, 6, (), (), id="nothing changed"),
        pytest.param(4, 6, (ScaleEvent(2, T),), (), id="grown while away counts against the rates of growth"),
        pytest.param(
            8, 6, (), (ScaleEvent(2, T),), id="shrunk while away counts against the rates of shrinking"
        ),
    ],
)
def test_a_change_made_while_we_were_away_counts_as_a_scale_event(stored, current, up, down):
    before = Memory(recommendations=WINDOW, replicas=stored)
    after = memory.restore_memory(before, current, T)
    assert (after.scale_up, after.scale_down) == (up, down)
    assert after.replicas == (stored if stored is None else current)
    assert latest_of(after).replicas == 6


def test_a_change_made_while_we_were_away_keeps_earlier_events_and_starts_the_window():
    before = Memory(
        recommendations=(Recommendation(9, T - 30),), replicas=9, scale_down=(ScaleEvent(1, T - 60),)
    )
    after = memory.restore_memory(before, 7, T)
    assert after.scale_down == (ScaleEvent(1, T - 60), ScaleEvent(2, T))
    assert latest_of(after) == Recommendation(7, T)
    empty = memory.restore_memory(Memory(replicas=9), 7, T)
    assert (empty.recommendations, empty.replicas) == (None, 7)


@pytest.mark.parametrize(
    ("latest", "alive", "want"),
    [
        pytest.param(6, T, (Recommendation(6, T),), id="as recommended: the quiet time repeats it"),
        pytest.param(8, T, (Recommendation(8, T),), id="growth held back: its window goes on"),
        pytest.param(4, T, (Recommendation(4, T - 60),), id="shrinking held back: its window runs from then"),
        pytest.param(6, T - 60, (Recommendation(6, T - 60),), id="no quiet time"),
        pytest.param(6, T - 90, (Recommendation(6, T - 90),), id="a clock that was ahead"),
    ],
)
def test_the_latest_recommendation_reaches_to_the_last_sign_of_life(latest, alive, want):
    before = Memory(recommendations=(Recommendation(latest, T - 60),), replicas=6)
    assert memory.restore_memory(before, 6, alive).recommendations == want


def test_of_two_recommendations_at_one_time_the_later_entry_counts():
    before = Memory(recommendations=(Recommendation(4, T - 60), Recommendation(6, T - 60)), replicas=6)
    assert latest_of(memory.restore_memory(before, 6, T)) == Recommendation(6, T)
    reverse = Memory(recommendations=(Recommendation(6, T - 60), Recommendation(4, T - 60)), replicas=6)
    assert memory.restore_memory(reverse, 6, T).recommendations == reverse.recommendations


@pytest.mark.parametrize("order", [1, -1], ids=["lost last", "lost first"])
def test_good_values_reach_to_the_last_sign_of_life_and_lost_ones_do_not(order):
    good, lost = memory.LastGood("a", 3, T - 60), memory.LastGood("b", 4, T - 60, True)
    after = memory.restore_memory(Memory(last_good=(good, lost)[::order]), 6, T)
    assert {entry.key: entry.at for entry in after.last_good} == {"a": T, "b": T - 60}
    assert memory.restore_memory(Memory(), 6, T) == Memory()


def test_times_of_another_clock_are_shifted_and_never_later_than_the_last_sign_of_life():
    stored = Memory(
        recommendations=(Recommendation(6, T - 60),),
        scale_up=(ScaleEvent(1, T - 50),),
        scale_down=(ScaleEvent(1, T - 40),),
        last_good=(memory.LastGood("a", 1, T - 30),),
        rejected_since={"a": T - 20},
        last_event_times={"b": T - 1},
    )
    shifted = memory.take_over_memory(stored, T, skew=10.0)
    assert latest_of(shifted).at == T - 50
    assert (shifted.scale_up[0].at, shifted.scale_down[0].at) == (T - 40, T - 30)
    assert (shifted.last_good[0].at, shifted.rejected_since["a"]) == (T - 20, T - 10)
    assert shifted.last_event_times == {"b": T}
    assert memory.take_over_memory(Memory(), T) == Memory()


@pytest.mark.parametrize(
    ("ages", "want"),
    [
        pytest.param((50, 40), (50, 40, 0), id="all recent: at the end"),
        pytest.param((70, 40), (0, 40), id="over the outdated one"),
        pytest.param((80, 70, 40), (80, 0, 40), id="over the last outdated one"),
        pytest.param((60, 40), (60, 40, 0), id="on the edge is not outdated"),
    ],
)
def test_upstream_overwrites_the_last_outdated_entry(ages, want):
    kept = tuple(Recommendation(1, T - age) for age in ages)
    found = memory.overwrite_outdated(kept, 2, T, T - 60)
    assert [(entry.replicas, T - entry.at) for entry in found] == [
        (2 if age == 0 else 1, age) for age in want
    ]
    events = memory.overwrite_event(tuple(ScaleEvent(1, T - age) for age in ages), 2, T, 60.0)
    assert [(event.change, T - event.at) for event in events] == [(2 if age == 0 else 1, age) for age in want]


def test_upstream_keeps_an_event_outdated():
    (first, second) = memory.overwrite_event((ScaleEvent(1, T - 90), ScaleEvent(1, T - 70)), 5, T, 60.0)
    assert (first, second) == (ScaleEvent(1, T - 90, True), ScaleEvent(5, T))


def test_events_beyond_the_bound_are_merged_at_the_later_time():
    many = tuple(ScaleEvent(1, T + step) for step in range(MOST_SCALE_EVENTS))
    merged = memory.add_event(many, 1, T + 500)
    assert (len(merged), merged[0]) == (MOST_SCALE_EVENTS, ScaleEvent(2, T + 1))
    assert memory.add_event((ScaleEvent(3, T - 1800),), 1, T) == (ScaleEvent(3, T - 1800), ScaleEvent(1, T))


def test_memories_of_format_1_are_read():
    old = memory.loads(b'{"uid": "u", "told": {"A": 1.0}, "refused": {"k": 2.0}}')
    assert (old.last_event_times, old.rejected_since) == ({"A": 1.0}, {"k": 2.0})
    assert memory.loads(b'{"refused": {"k": 2.0}}').rejected_since == {"k": 2.0}
    assert (
        memory.loads(b'{"last_event_times": {"A": 3.0}}'.replace(b"last_event_times", b"lastEventTimes")).uid
        == ""
    )
