"""Everybody has one turn per period, whatever comes in between."""

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


def autoscalers(many: int, namespaces: int = 50) -> list[HpaState]:
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


def play(turns: SyncSchedule, everyone: list[HpaState], until: float) -> dict[str, list[float]]:
    """Return when each had its turn."""
    taken: dict[str, list[float]] = defaultdict(list)
    while turns.next_at < until:
        now = turns.next_at
        for one in turns.next_due(everyone, now):
            taken[one.uid].append(now)
    return taken


def test_few_have_their_turns_together():
    everyone = autoscalers(FEW)
    turns = SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    assert play(turns, everyone, 40) == {one.uid: [0.0, 15.0, 30.0] for one in everyone}
    assert not turns.is_divided


def test_many_start_together_and_then_take_turns():
    everyone = autoscalers(FEW * 5)
    taken = play(SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0), everyone, 60)
    assert {times[0] for times in taken.values()} == {0.0}
    by_moment: dict[float, int] = defaultdict(int)
    for times in taken.values():
        for moment in times[1:]:
            by_moment[moment] += 1
    assert max(by_moment.values()) < len(everyone) / 3
    steps = {later - earlier for times in taken.values() for earlier, later in pairwise(times[1:])}
    assert steps == {PERIOD}


def test_those_of_one_namespace_share_a_turn():
    everyone = autoscalers(FEW * 2, namespaces=7)
    turns = SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    turns.next_due(everyone, 0.0)
    for _ in range(8):
        due = {one.uid for one in turns.next_due(everyone, turns.next_at)}
        places = {one.hpa.metadata.namespace for one in everyone if one.uid in due}
        assert due == {one.uid for one in everyone if one.hpa.metadata.namespace in places}


@pytest.mark.parametrize("pace", [0.0, 15.0, 60.0])
def test_without_a_pace_there_is_one_turn(pace):
    everyone = autoscalers(FEW * 5)
    assert play(SyncSchedule(SyncPeriods(PERIOD, pace), 0.0), everyone, 31) == {
        one.uid: [0.0, 15.0, 30.0] for one in everyone
    }


def test_starting_over_is_for_everybody():
    everyone = autoscalers(FEW * 5)
    turns = SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    play(turns, everyone, 4)
    turns.start_over(5.0)
    assert turns.next_at == 5.0
    assert turns.next_due(everyone, 5.0) == everyone


def test_a_late_turn_does_not_move_the_later_ones():
    turns = SyncSchedule(SyncPeriods(PERIOD, 2.0), 0.0)
    turns.next_due(autoscalers(1), 0.4)
    assert turns.next_at == PERIOD


@given(
    st.lists(st.sampled_from([0, FEW, FEW + 1, FEW * 3]), min_size=2, max_size=12),
    st.sampled_from([2.0, 4.0]),
)
def test_nobody_waits_longer_than_a_period_while_hpas_come_and_go(counts, pace):
    everyone = autoscalers(FEW * 3)
    turns = SyncSchedule(SyncPeriods(PERIOD, pace), 0.0)
    last: dict[str, float] = {}
    for many in counts:
        end = turns.next_at + PERIOD
        present = everyone[:many]
        last = {one.uid: last.get(one.uid, turns.next_at) for one in present}
        while turns.next_at < end:
            now = turns.next_at
            for one in turns.next_due(present, now):
                assert now - last[one.uid] <= PERIOD + 1e-6
                last[one.uid] = now
        assert all(end - at <= PERIOD + 1e-6 for at in last.values())
