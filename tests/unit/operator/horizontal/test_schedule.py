"""Every HPA is due once per sync period, on a phase of its own or of its namespace."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.core.meta import CrossVersionObjectReference, ObjectMeta
from trimtab.model.hpa.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec
from trimtab.operator.horizontal.hpa_state import HpaState
from trimtab.operator.horizontal.kinds import OWN_HPAS
from trimtab.operator.horizontal.look import SyncPeriods
from trimtab.operator.horizontal.loop import (
    TIMER_SECONDS,
    SlotSchedule,
    SyncSchedule,
    TimerSchedule,
    make_schedule,
    slot_of,
)

PERIOD = 15.0
SPEC = HorizontalPodAutoscalerSpec(
    scale_target_ref=CrossVersionObjectReference(kind="Deployment", name="web"), max_replicas=3
)


def hpa_states(many: int, namespaces: int = 50) -> list[HpaState]:
    return [
        HpaState(
            OWN_HPAS,
            HorizontalPodAutoscaler(
                metadata=ObjectMeta(
                    name=f"web-{number}", namespace=f"shop-{number % namespaces}", uid=f"{number}"
                ),
                spec=SPEC,
            ),
        )
        for number in range(many)
    ]


def play(schedule: SyncSchedule, states: list[HpaState], until: float) -> dict[str, list[float]]:
    """Return when each HPA was due."""
    taken: dict[str, list[float]] = defaultdict(list)
    while schedule.next_at < until:
        now = schedule.next_at
        for state in schedule.next_due(states, now):
            taken[state.uid].append(now)
    return taken


def steps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.parametrize("many", [1, 2, 30, 200, 1000])
@pytest.mark.parametrize("pace", [2.0, 4.0, 0.0])
def test_all_start_together_and_are_spread_from_the_first_hpa_on(many, pace):
    """Fewer than 200 HPAs shared one phase, so that all of them were late together."""
    states = hpa_states(many)
    periods = SyncPeriods(PERIOD, pace)
    taken = play(make_schedule(periods, 0.0), states, 5 * PERIOD)
    assert {times[0] for times in taken.values()} == {0.0}
    assert all(steps(times[1:]) == pytest.approx([PERIOD] * len(times[2:])) for times in taken.values())
    phases = Counter(round(times[1] % PERIOD, 6) for times in taken.values())
    assert max(phases.values()) <= max(1, len(states) / 3), "no phase has most of them"
    assert len(phases) == min(many, periods.slots) or many == 2


def test_the_phase_of_an_hpa_survives_a_restart():
    states = hpa_states(30)
    first, second = (make_schedule(SyncPeriods(PERIOD, 2.0), at) for at in (0.0, 100.0))
    before, after = play(first, states, 30.0), play(second, states[::-1], 130.0)
    assert {uid: [at + 100 for at in times] for uid, times in before.items()} == after


def test_hpas_of_one_namespace_share_a_slot():
    states = hpa_states(400, namespaces=7)
    schedule = SlotSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    schedule.next_due(states, 0.0)
    for _ in range(8):
        due = {state.uid for state in schedule.next_due(states, schedule.next_at)}
        places = {state.hpa.metadata.namespace for state in states if state.uid in due}
        assert due == {state.uid for state in states if state.hpa.metadata.namespace in places}


@pytest.mark.parametrize(
    ("sync", "pace", "slots"),
    [
        pytest.param(15.0, 2.0, 8, id="a slot is not longer than the pause between checks"),
        pytest.param(15.0, 5.0, 3),
        pytest.param(15.0, 0.0, 8, id="without checks a slot takes 2 s"),
        pytest.param(15.0, 15.0, 8, id="checks no more often than syncs are no checks"),
        pytest.param(1.0, 2.0, 1, id="a short period is one slot"),
        pytest.param(3.0, 2.0, 2),
    ],
)
def test_the_period_is_divided_by_the_time_between_checks(sync, pace, slots):
    periods = SyncPeriods(sync, pace)
    assert (periods.slots, periods.slot) == (slots, sync / slots)
    assert SyncPeriods(sync, pace, has_timers=True).slots == 1


@pytest.mark.parametrize("has_timers", [False, True])
def test_starting_over_makes_all_hpas_due(has_timers):
    states = hpa_states(100)
    schedule = make_schedule(SyncPeriods(PERIOD, 2.0, has_timers=has_timers), 0.0)
    play(schedule, states, 4)
    schedule.start_over(5.0)
    assert schedule.next_at == 5.0
    assert schedule.next_due(states, 5.0) == states


def test_a_late_slot_does_not_delay_the_later_ones():
    schedule = SlotSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    schedule.next_due(hpa_states(1), 0.4)
    assert schedule.next_at == PERIOD / 8


def test_an_hpa_is_due_when_a_window_or_a_rate_ends():
    early, late = states = hpa_states(2)
    schedule = SlotSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    schedule.next_due(states, 0.0)
    while slot_of(late, 8) == (place := round(schedule.next_at / 1.875) % 8) or slot_of(early, 8) == place:
        schedule.next_due([], schedule.next_at)
    early.edge_at, late.edge_at = schedule.next_at, schedule.next_at + 0.1
    assert schedule.next_due(states, schedule.next_at) == [early]


@given(
    st.lists(st.sampled_from([0, 1, 7, 60]), min_size=2, max_size=12),
    st.sampled_from([2.0, 4.0, 0.0]),
    st.booleans(),
)
def test_no_hpa_waits_longer_than_a_period_while_hpas_come_and_go(counts, pace, has_timers):
    states = hpa_states(60)
    schedule = make_schedule(SyncPeriods(PERIOD, pace, has_timers=has_timers), 0.0)
    longest = PERIOD + (TIMER_SECONDS if has_timers else 0) + 1e-6
    last: dict[str, float] = {}
    for many in counts:
        end = schedule.next_at + PERIOD
        present = states[:many]
        last = {state.uid: last.get(state.uid, schedule.next_at) for state in present}
        while schedule.next_at < end:
            now = schedule.next_at
            for state in schedule.next_due(present, now):
                assert now - last[state.uid] <= longest
                last[state.uid] = now
        assert all(end - at <= longest for at in last.values())


@given(st.lists(st.floats(0, 40), min_size=1, max_size=20), st.integers(0, 19), st.floats(0, 40))
def test_upstreams_timers_run_from_the_creation_of_each_hpa(created, place, changed):
    """As upstream's queue: an HPA is due a period after it was created, and a change in between moves nothing."""
    states = hpa_states(len(created))
    schedule = TimerSchedule(PERIOD, 0.0)
    schedule.next_due([], 0.0)
    taken: dict[str, list[float]] = defaultdict(list)
    events = [(at, state) for at, state in zip(created, states, strict=True)]
    born, edited = (
        dict(zip((state.uid for state in states), created, strict=True)),
        states[place % len(states)],
    )
    events.append((max(changed, born[edited.uid]), edited))
    present: list[HpaState] = []
    for at, state in sorted(events, key=lambda event: event[0]):
        _take(schedule, present, at, taken)
        schedule.note_reconciled([state], at)
        present += [state] if state not in present else []
    _take(schedule, present, 120.0, taken)
    for uid, times in taken.items():
        wanted = [born[uid] + PERIOD * number for number in range(1, len(times) + 1)]
        assert times == [pytest.approx(at, abs=TIMER_SECONDS + 1e-6) for at in wanted]
        assert len(times) >= (120 - born[uid]) // PERIOD - 1


def test_upstreams_next_sync_is_a_period_after_the_end_of_the_last():
    (state,) = hpa_states(1)
    schedule = TimerSchedule(PERIOD, 0.0)
    taken = []
    while schedule.next_at < 70:
        now = schedule.next_at
        if schedule.next_due([state], now):
            taken.append(now)
            state.start_reconcile(now, is_sync=True).finish(now + 0.4)
            state.start_reconcile(now + 1, is_sync=False).finish(now + 2)  # an edit moves nothing
    assert steps(taken) == pytest.approx([PERIOD + 0.4] * 4, abs=TIMER_SECONDS + 1e-6)


def _take(
    schedule: TimerSchedule, present: list[HpaState], until: float, taken: dict[str, list[float]]
) -> None:
    while schedule.next_at < until:
        now = schedule.next_at
        for state in schedule.next_due(present, now):
            taken[state.uid].append(now)
