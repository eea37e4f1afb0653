"""The memory of an HPA in an epoch: resumed once from what is stored, and kept from then on."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.clock import VirtualClock
from trimtab.cluster.leases.fence import Epoch
from trimtab.decide.horizontal.memory import EMPTY, LastGood, Memory, Owner, Recommendation, ScaleEvent, dumps
from trimtab.operator.horizontal.hpa_state import HpaMemory

CLOCK = VirtualClock()
NOW = CLOCK.now().timestamp()
OWNER = Owner("u", "apps", "Deployment", "web")
QUIET = 90.0
MOMENTS = st.floats(NOW - 4000, NOW + 4000)


def epoch_at(seconds: float = 0.0) -> Epoch:
    clock = VirtualClock()
    clock.advance(seconds)
    return Epoch(clock)


def stored(ago: float = 30.0, **fields: object) -> Memory:
    recommendations = (Recommendation(5, NOW - ago),)
    memory = Memory(owner=OWNER, at=NOW - ago, is_asking=True, recommendations=recommendations, replicas=5)
    return msgspec.structs.replace(memory, **fields)


def of(memory: Memory) -> HpaMemory:
    found = HpaMemory()
    found.set_stored(dumps(memory).decode())
    return found


def moments(memory: Memory) -> list[float]:
    return [
        memory.at,
        *(entry.at for entry in memory.recommendations or ()),
        *(entry.at for entry in (*memory.scale_up, *memory.scale_down)),
        *(entry.at for entry in memory.last_good),
        *memory.last_event_times.values(),
    ]


@given(
    st.builds(
        Memory,
        owner=st.just(OWNER),
        at=MOMENTS,
        is_asking=st.booleans(),
        replicas=st.none() | st.integers(0, 9),
        recommendations=st.none()
        | st.lists(st.builds(Recommendation, st.integers(0, 9), MOMENTS), max_size=4).map(tuple),
        scale_up=st.lists(st.builds(ScaleEvent, st.integers(1, 9), MOMENTS), max_size=3).map(tuple),
        scale_down=st.lists(st.builds(ScaleEvent, st.integers(1, 9), MOMENTS), max_size=3).map(tuple),
        last_good=st.lists(st.builds(LastGood, st.just("m"), st.integers(0, 9), MOMENTS), max_size=1).map(
            tuple
        ),
        last_event_times=st.dictionaries(st.sampled_from(["a", "b"]), MOMENTS, max_size=2),
    ),
    st.integers(0, 9),
)
def test_nothing_is_remembered_after_the_moment_of_the_decision(memory, current):
    """A moment a few microseconds later held a workload at zero: a window of 0 s reaches to it."""
    found = of(memory)
    found.load(epoch_at(), OWNER, current, QUIET)
    assert max(moments(found.own)) <= NOW


def test_an_epoch_begins_once_with_what_is_stored():
    found, epoch = of(stored()), epoch_at()
    assert found.load(epoch, OWNER, 5, QUIET)
    assert found.own.recommendations == (Recommendation(5, NOW),)
    found.keep(Memory(replicas=7))
    assert not found.load(epoch, OWNER, 7, QUIET)
    assert found.own == Memory(replicas=7)
    found.set_stored(dumps(stored(replicas=3)).decode())
    assert found.load(epoch_at(), OWNER, 3, QUIET)
    assert found.own.replicas == 3


@pytest.mark.parametrize(
    ("quiet", "want"),
    [(90.0, (Recommendation(5, NOW - 600), Recommendation(9, NOW))), (630.0, (Recommendation(5, NOW),))],
)
def test_a_longer_gap_is_quiet_where_syncs_are_rare(quiet, want):
    found = of(stored(600.0, replicas=9))
    found.load(epoch_at(), OWNER, 9, quiet)
    assert found.own.recommendations == want


def test_a_memory_is_resumed_when_the_replicas_are_known():
    """A scale that cannot be read says nothing, and its decisions leave the memory as it was."""
    found, epoch = of(stored(600.0)), epoch_at()
    assert found.load(epoch, OWNER, None, QUIET)
    assert found.own == stored(600.0)
    found.keep(found.own)
    assert found.load(epoch, OWNER, 9, QUIET)
    assert found.own.recommendations is not None
    assert found.own.recommendations[-1] == Recommendation(9, NOW)
    assert not found.load(epoch, OWNER, 9, QUIET)


def test_the_decision_starts_afresh_for_an_edited_target():
    found = of(stored())
    other = Owner("u", "apps", "Deployment", "other")
    found.load(epoch_at(), other, 4, QUIET)
    assert found.own.owner == OWNER, "the decision sees the old owner, and clears its mark of zero"


def test_a_dropped_first_decision_leaves_nothing_behind():
    found, epoch = of(stored(replicas=9)), epoch_at()
    found.load(epoch, OWNER, 7, QUIET)
    assert found.own.scale_down
    found.reload()
    found.load(epoch, OWNER, 9, QUIET)
    assert found.own.scale_down == ()


def test_a_decision_that_was_written_is_not_dropped():
    found, epoch = of(stored()), epoch_at()
    found.load(epoch, OWNER, 5, QUIET)
    found.keep(Memory(replicas=6))
    found.reload()
    assert not found.load(epoch, OWNER, 6, QUIET)
    assert found.own == Memory(replicas=6)


def test_a_scale_in_doubt_is_settled_by_the_next_read_of_the_replicas():
    found, epoch = HpaMemory(), epoch_at()
    found.load(epoch, OWNER, 4, QUIET)
    found.keep_in_doubt(stored(0.0, replicas=4))
    assert not found.load(epoch, OWNER, None, QUIET)
    assert found.load(epoch, OWNER, 8, QUIET)
    assert [(event.change, event.at, event.is_found) for event in found.own.scale_up] == [(4, NOW, True)]
    assert not found.load(epoch, OWNER, 8, QUIET)


@pytest.mark.parametrize(("replicas", "contradicts"), [(5, False), (6, True)])
def test_a_new_epoch_doubts_a_target_that_the_last_leader_left_otherwise(replicas, contradicts):
    found, epoch = of(stored()), epoch_at()
    assert found.contradicts(epoch, replicas) is contradicts
    assert not HpaMemory().contradicts(epoch, replicas), "nothing is known"
    found.load(epoch, OWNER, 5, QUIET)
    assert not found.contradicts(epoch, replicas)


def test_under_the_rules_of_kubernetes_an_epoch_starts_without_memory():
    found, epoch = of(stored()), epoch_at()
    assert found.load(epoch, OWNER, 6, None)
    assert found.own == EMPTY
    found.keep(Memory(replicas=6))
    assert not found.load(epoch, OWNER, 6, None)
    assert found.own == Memory(replicas=6)


def test_what_was_written_is_what_is_stored():
    found, memory = HpaMemory(), stored()
    text = dumps(memory).decode()
    assert found.set_stored(text)
    found.mark_written(memory, text)
    assert found.read_stored() is memory
    assert not found.set_stored(text)
    assert found.set_stored("")
    assert found.read_stored() == EMPTY
    found.mark_written(memory, text)
    assert found.read_stored() == EMPTY, "the server dropped it"


def test_the_first_write_of_an_epoch_is_known():
    """All HPAs are written in the first sync of a leader, and would be again in the same sync each time."""
    found, epoch = of(stored()), epoch_at()
    found.load(epoch, OWNER, 5, QUIET)
    found.mark_written(stored(), "")
    found.keep(stored())
    assert found.is_first_write
    found.mark_written(stored(), "")
    assert not found.is_first_write


def test_a_viewer_sees_what_the_living_operator_has():
    assert of(stored(30.0)).preview(NOW) == stored(0.0)
