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
from trimtab.decide.horizontal.behavior.stabilization import (
    Windows,
    stabilize,
    stabilize_both_ways,
)
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
    short = stabilize(kept_of(history), desired, T, float(window), compact=True)
    whole = stabilize(whole_of(history), desired, T, float(window), compact=True)
    assert short.replicas == whole.replicas


@settings(max_examples=150, deadline=None)
@given(histories, st.integers(0, 20), st.integers(0, 20), st.integers(0, 3600), st.integers(0, 3600))
def test_what_is_forgotten_never_changes_two_windows(history, current, desired, up, down):
    windows = Windows(up=float(up), down=float(down))
    short = stabilize_both_ways(kept_of(history), current, desired, T, windows)
    whole = stabilize_both_ways(whole_of(history), current, desired, T, windows)
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
