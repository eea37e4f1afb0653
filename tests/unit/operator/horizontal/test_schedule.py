"""Every HPA is due once per sync period, whatever comes in between."""

from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.core.meta import CrossVersionObjectReference, ObjectMeta
from trimtab.model.hpa.types import HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec
from trimtab.operator.horizontal.inputs.hpa_state import HpaState
from trimtab.operator.horizontal.inputs.kinds import OWN_HPAS
from trimtab.operator.horizontal.schedule import FEW, SyncPeriods, SyncSchedule

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


def test_few_hpas_are_due_together():
    states = hpa_states(FEW)
    schedule = SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    assert play(schedule, states, 40) == {state.uid: [0.0, 15.0, 30.0] for state in states}
    assert not schedule.is_divided


def test_many_hpas_start_together_and_are_then_spread():
    states = hpa_states(FEW * 5)
    taken = play(SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0), states, 60)
    assert {times[0] for times in taken.values()} == {0.0}
    by_moment: dict[float, int] = defaultdict(int)
    for times in taken.values():
        for moment in times[1:]:
            by_moment[moment] += 1
    assert max(by_moment.values()) < len(states) / 3
    steps = {later - earlier for times in taken.values() for earlier, later in pairwise(times[1:])}
    assert steps == {PERIOD}


def test_hpas_of_one_namespace_share_a_slot():
    states = hpa_states(FEW * 2, namespaces=7)
    schedule = SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    schedule.next_due(states, 0.0)
    for _ in range(8):
        due = {state.uid for state in schedule.next_due(states, schedule.next_at)}
        places = {state.hpa.metadata.namespace for state in states if state.uid in due}
        assert due == {state.uid for state in states if state.hpa.metadata.namespace in places}


@pytest.mark.parametrize("pace", [0.0, 15.0, 60.0])
def test_without_usage_checks_there_is_one_slot(pace):
    states = hpa_states(FEW * 5)
    assert play(SyncSchedule(SyncPeriods(PERIOD, pace), 0.0), states, 31) == {
        state.uid: [0.0, 15.0, 30.0] for state in states
    }


def test_starting_over_makes_all_hpas_due():
    states = hpa_states(FEW * 5)
    schedule = SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    play(schedule, states, 4)
    schedule.start_over(5.0)
    assert schedule.next_at == 5.0
    assert schedule.next_due(states, 5.0) == states


def test_a_late_slot_does_not_delay_the_later_ones():
    schedule = SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    schedule.next_due(hpa_states(1), 0.4)
    assert schedule.next_at == PERIOD


@given(
    st.lists(st.sampled_from([0, FEW, FEW + 1, FEW * 3]), min_size=2, max_size=12),
    st.sampled_from([2.0, 4.0]),
)
def test_no_hpa_waits_longer_than_a_period_while_hpas_come_and_go(counts, pace):
    states = hpa_states(FEW * 3)
    schedule = SyncSchedule(SyncPeriods(PERIOD, pace), 0.0)
    last: dict[str, float] = {}
    for many in counts:
        end = schedule.next_at + PERIOD
        present = states[:many]
        last = {state.uid: last.get(state.uid, schedule.next_at) for state in present}
        while schedule.next_at < end:
            now = schedule.next_at
            for state in schedule.next_due(present, now):
                assert now - last[state.uid] <= PERIOD + 1e-6
                last[state.uid] = now
        assert all(end - at <= PERIOD + 1e-6 for at in last.values())
