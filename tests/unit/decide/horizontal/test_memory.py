"""Memory: what is kept between decisions, how small it stays, and how it comes back when lost."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.decide.horizontal.builders import (
    NO_WINDOW,
    OWNER,
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
        owner=OWNER,
        at=T + 15,
        is_asking=True,
        recommendations=(Recommendation(5, T), Recommendation(3, T + 15)),
        scale_up=(ScaleEvent(2, T),),
        strategy="OwnerReference",
        replicas=5,
        last_event_times={"PodSelectionFallback": T},
    )
    assert memory.loads(memory.dumps(full)) == full
    assert len(memory.dumps(Memory(owner=OWNER, recommendations=(Recommendation(5, T),) * 10))) < 300


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


OTHER = memory.Owner("uid-of-hpa", "apps", "Deployment", "other")


def known(*recommendations, ago=0.0, **fields):
    """Make a memory of the decision `ago` seconds ago."""
    entries = tuple(Recommendation(replicas, T - age) for replicas, age in recommendations)
    given = {"owner": OWNER, "at": T - ago, "is_asking": True, "recommendations": entries}
    return Memory(**(given | fields))


def latest_of(kept):
    return kept.recommendations[-1]


def ages(kept):
    return [(entry.replicas, T - entry.at) for entry in kept.recommendations]


def test_extending_repeats_the_last_decision():
    good, lost = memory.LastGood("a", 3, T - 60), memory.LastGood("b", 4, T - 60, True)
    before = known((9, 200), (5, 60), ago=60, last_good=(good, lost), policies={"p": 1})
    after = memory.extend(before, T)
    assert ages(after) == [(9, 200), (5, 0)]
    assert (after.at, {entry.key: entry.at for entry in after.last_good}) == (T, {"a": T, "b": T - 60})
    assert memory.extend(after, T - 30) == after, "time does not go back"
    assert memory.extend(memory.extend(before, T - 30), T) == after, "many small steps are one"


def test_extending_recommends_nothing_while_nothing_was_recommended():
    """While metrics are lost windows run on, as upstream's."""
    before = known((9, 200), (5, 60), ago=30, is_asking=False)
    after = memory.extend(before, T)
    assert (ages(after), after.at) == ([(9, 200), (5, 60)], T)


@pytest.mark.parametrize(
    ("stored", "current", "want"),
    [
        pytest.param(known((9, 200), (5, 60), ago=60), 9, [(9, 200), (5, 0)], id="prompt: repeated"),
        pytest.param(known((5, 60), ago=60), 5, [(5, 0)], id="prompt, nothing held"),
        pytest.param(
            known((9, 200), (5, 60), ago=60, is_asking=False),
            9,
            [(9, 200), (5, 60)],
            id="prompt, metrics lost: windows run on",
        ),
        pytest.param(known((3, 200), (9, 60), ago=60), 5, [(3, 200), (9, 60), (5, 0)], id="growth held back"),
        pytest.param(
            known((5, 91), ago=91), 9, [(5, 91), (9, 0)], id="an outage: the size counts as recommended"
        ),
        pytest.param(
            known((9, 700), (1, 600), ago=600),
            9,
            [(1, 600), (9, 0)],
            id="R4-6: an outage as long as the window",
        ),
        pytest.param(Memory(), 4, [(4, 0)], id="nothing stored: upstream's start"),
        pytest.param(known((9, 20), owner=OTHER), 4, [(4, 0)], id="R4-7: another target"),
        pytest.param(known((9, 20), owner=memory.Owner("u")), 4, [(4, 0)], id="another HPA of the same name"),
    ],
)
def test_what_a_stored_memory_is_worth(stored, current, want):
    after = memory.resume(msgspec.structs.replace(stored, replicas=current), OWNER, current, T)
    assert ages(after) == want
    assert (after.owner, after.replicas) == (OWNER, current)


def test_a_memory_of_another_target_keeps_nothing_but_the_strategy():
    stored = known(
        (9, 20), owner=OTHER, scale_up=(ScaleEvent(1, T - 5),), strategy="OwnerReference", policies={"p": 1}
    )
    assert memory.resume(stored, OWNER, 4, T) == memory.start(OWNER, 4, T, "OwnerReference")


def test_a_size_that_the_memory_does_not_know_is_recommended_and_limits_its_own_direction():
    after = memory.resume(known((4, 30), ago=30, replicas=4), OWNER, 6, T)
    assert latest_of(after) == Recommendation(6, T)
    assert (after.scale_up, after.scale_down) == ((ScaleEvent(2, T, is_found=True),), ())
    after = memory.resume(known((8, 30), ago=30, replicas=8), OWNER, 6, T)
    assert (after.scale_up, after.scale_down) == ((), (ScaleEvent(2, T, is_found=True),))
    assert memory.found(known((6, 30), replicas=None), 6, T).scale_up == ()


@pytest.mark.parametrize(
    ("current", "asked", "events", "allowed"),
    [
        pytest.param(3, 8, {"scale_down": (ScaleEvent(5, T - 1, is_found=True),)}, 5, id="W3: a hand took 5"),
        pytest.param(
            3, 8, {"scale_down": (ScaleEvent(5, T - 1),)}, 8, id="we took 5, and may give them back"
        ),
        pytest.param(5, 8, {"scale_up": (ScaleEvent(2, T - 1, is_found=True),)}, 5, id="2 of 2 were added"),
        pytest.param(9, 2, {"scale_up": (ScaleEvent(5, T - 1, is_found=True),)}, 7, id="a hand gave 5"),
        pytest.param(
            9, 2, {"scale_down": (ScaleEvent(2, T - 1, is_found=True),)}, 9, id="2 of 2 were removed"
        ),
    ],
)
def test_a_change_that_was_found_limits_and_frees_nothing(current, asked, events, allowed):
    two = rules(("Pods", 2, 60), window=0)
    seen = observe(
        hpa(external(average(100)), high=20, behavior=behavior(two, two)),
        current,
        series(asked * 100),
        memory=known((current, 15), ago=15, replicas=current, **events),
    )
    assert run(seen).desired == allowed


def test_no_time_is_later_than_now():
    """The last holder's clock was ahead by 600 s at least, and so is all that it wrote.

    Cut to now, pods that were removed long before freed a growth of as many for the whole period.
    """
    ahead = known(
        (9, -500),
        (6, -600),
        ago=-600,
        replicas=9,
        scale_up=(ScaleEvent(1, T + 550),),
        scale_down=(ScaleEvent(1, T + 450), ScaleEvent(1, T + 601)),
        last_good=(memory.LastGood("a", 1, T + 590),),
    )
    after = memory.resume(ahead, OWNER, 9, T)
    assert ages(after) == [(9, 100), (6, 0)]
    assert [event.at for event in (*after.scale_up, *after.scale_down)] == [T - 50, T - 150, T]
    assert (after.last_good[0].at, after.at) == (T - 10, T)


SYNC = 15


@settings(max_examples=300, deadline=None)
@given(
    asks=st.lists(st.integers(1, 12), min_size=1, max_size=25),
    then=st.lists(st.integers(1, 12), min_size=1, max_size=30),
    syncs_away=st.integers(0, 40),
    up=st.sampled_from([0, 60, 120]),
    down=st.sampled_from([0, 60, 300, 600]),
    current=st.integers(1, 12),
)
def test_no_decision_goes_beyond_that_of_a_perfect_memory(asks, then, syncs_away, up, down, current):
    """A perfect memory knows all that was asked. The sizes that a hand-over forgets are held longer, not shorter."""
    windows = Windows(up=float(up), down=float(down))
    perfect: list[Recommendation] = []
    own = memory.start(OWNER, current, T)
    now = T
    for ask in asks:
        now += SYNC
        own = memory.recommend(own, ask, now)
        perfect.append(Recommendation(ask, now))
    stored = own
    for _ in range(syncs_away):  # in a prompt hand-over the metrics ask for what they did
        now += SYNC
        perfect.append(Recommendation(asks[-1], now))
    own = memory.resume(stored, OWNER, current, now)
    for ask in then:
        now += SYNC
        allowed = within_both_windows(own.recommendations or (), current, ask, now, windows)
        ideal = within_both_windows([Recommendation(current, T), *perfect], current, ask, now, windows)
        if allowed < current:
            assert ideal <= allowed, "it shrinks further"
        if allowed > current:
            assert ideal >= allowed, "it grows further"
        own = memory.recommend(own, ask, now)
        perfect.append(Recommendation(ask, now))


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


@pytest.mark.parametrize("text", ["", "{", "[]", '{"recommendations": 3}', '{"owner": 5}'])
def test_a_memory_that_cannot_be_read_is_empty(text):
    assert memory.loads(text) == Memory()
