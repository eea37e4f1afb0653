"""The memory of an HPA in a new epoch: as stored, by our clock, and never after the moment of the decision."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.leases.epoch import ClockReading, Epoch, OwnClock, clock_name
from trimtab.decide.horizontal.memory import LastGood, Memory, Recommendation, ScaleEvent, dumps
from trimtab.operator.horizontal.inputs.hpa_memory import HpaMemory, loads

NOW, MONOTONIC = 1_000_000.0, 500.0
HOLDER = clock_name("first")
MOMENTS = st.floats(NOW - 4000, NOW + 4000)


def moments(memory: Memory) -> list[float]:
    return [
        *(one.at for one in memory.recommendations or ()),
        *(one.at for one in (*memory.scale_up, *memory.scale_down)),
        *(one.at for one in memory.last_good),
        *memory.last_event_times.values(),
    ]


@given(
    st.builds(
        Memory,
        clock=st.sampled_from(["", HOLDER]),
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
    st.none() | MOMENTS,
    st.none() | st.tuples(st.floats(-900, 900), st.floats(0, 30)),
    st.none() | st.integers(0, 9),
)
def test_nothing_is_remembered_after_the_moment_of_the_decision(stored, renewed, clock, current):
    """A moment a few microseconds later held a workload at zero: a window of 0 s reaches to it."""
    readings = {}
    if clock is not None:
        low = NOW - MONOTONIC + clock[0]
        readings = {HOLDER: ClockReading(low, low + clock[1])}
    memory = HpaMemory(stored=dumps(stored).decode())
    memory.load(Epoch(HOLDER, renewed, readings, OwnClock("us", NOW, MONOTONIC)), current, NOW, MONOTONIC)
    assert max(moments(memory.own), default=NOW) <= NOW
    assert memory.own.clock == clock_name("us")


def test_an_epoch_begins_once_with_what_is_stored():
    memory = HpaMemory(
        stored=dumps(Memory(replicas=5, recommendations=(Recommendation(5, NOW - 60),))).decode()
    )
    epoch = Epoch(HOLDER, NOW - 30)
    assert memory.load(epoch, 5, NOW, MONOTONIC)
    assert memory.own.recommendations == (Recommendation(5, NOW - 30),)
    memory.keep(Memory(replicas=7))
    assert not memory.load(epoch, 7, NOW + 15, MONOTONIC + 15)
    assert memory.own == Memory(replicas=7)
    memory.stored = dumps(Memory(replicas=3)).decode()
    assert memory.load(Epoch(HOLDER, NOW), 3, NOW + 30, MONOTONIC + 30)
    assert memory.own.replicas == 3


def test_a_dropped_first_decision_leaves_nothing_behind():
    memory = HpaMemory(stored=dumps(Memory(replicas=9)).decode())
    epoch = Epoch(HOLDER, NOW - 30)
    memory.load(epoch, 7, NOW, MONOTONIC)
    assert memory.own.scale_down
    memory.reload()
    memory.load(epoch, 9, NOW, MONOTONIC)
    assert memory.own.scale_down == ()


def test_a_memory_that_cannot_be_read_is_lost_and_not_fatal():
    assert loads("{") == loads("") == Memory()


EVENT = ScaleEvent(2, NOW - 60)
ONE, TWO = ((Recommendation(5, NOW - 60 - number) for number in range(count)) for count in (1, 2))


@pytest.mark.parametrize(
    ("clock", "skew", "times", "must_store"),
    [
        pytest.param("us", 0.0, {"scale_up": (EVENT,)}, False, id="our own clock dated it"),
        pytest.param("us", 30.0, {}, True, id="our clock was set since"),
        pytest.param("first", 0.0, {}, False, id="another clock, and nothing depends on its times"),
        pytest.param("first", 0.0, {"recommendations": tuple(ONE)}, False, id="a single recommendation"),
        pytest.param("first", 0.0, {"recommendations": tuple(TWO)}, True, id="a window of another clock"),
        pytest.param("first", 0.0, {"scale_up": (EVENT,)}, True, id="a rate upwards of another clock"),
        pytest.param("first", 0.0, {"scale_down": (EVENT,)}, True, id="a rate downwards of another clock"),
        pytest.param("first", 30.0, {}, True, id="another clock that differs"),
    ],
)
def test_a_memory_that_another_clock_dated_is_stored_again(clock, skew, times, must_store):
    """The next leader can convert the times of the last leader's clock, and perhaps of no other."""
    name = clock_name(clock)
    reading = {name: ClockReading(NOW - MONOTONIC - skew, NOW - MONOTONIC - skew)} if skew else {}
    memory = HpaMemory(stored=dumps(Memory(clock=name, replicas=5, **times)).decode())
    memory.load(Epoch("", None, reading, OwnClock("us", NOW, MONOTONIC)), 5, NOW, MONOTONIC)
    assert memory.must_store is must_store


def test_a_memory_that_was_stored_need_not_be_stored_again():
    memory = HpaMemory(must_store=True)
    memory.mark_stored()
    assert memory.must_store is False


def test_what_somebody_changed_in_the_stored_memory_is_stored_again():
    memory = HpaMemory(stored="a")
    seen = [(memory.update_stored(text), memory.must_store, memory.stored) for text in ("a", "b", "b")]
    assert seen == [(False, False, "a"), (True, True, "b"), (False, True, "b")]


@pytest.mark.parametrize(
    ("jump", "is_set"),
    [(0.0, False), (1.0, False), (-1.0, False), (1.5, True), (-100.0, True)],
)
def test_the_memory_moves_with_a_clock_that_is_set(jump, is_set):
    own = OwnClock("us", NOW, MONOTONIC)
    memory = HpaMemory(own=Memory(scale_up=(EVENT,)), epoch=Epoch(own=own))
    assert not memory.adjust_for_clock_jump(NOW, MONOTONIC)
    assert memory.adjust_for_clock_jump(NOW + 15 + jump, MONOTONIC + 15) is is_set
    assert memory.must_store is is_set
    assert memory.own.scale_up[0].at == EVENT.at + (jump if is_set else 0.0)
    assert memory.own.clock == (clock_name("us", jump) if is_set else "")
    assert not memory.adjust_for_clock_jump(NOW + 30 + jump, MONOTONIC + 30)


def test_a_scale_in_doubt_is_settled_by_the_next_read_of_the_replicas():
    epoch = Epoch(HOLDER, NOW - 30)
    memory = HpaMemory()
    memory.load(epoch, 4, NOW, MONOTONIC)
    memory.keep_in_doubt(Memory(replicas=4), NOW)
    assert not memory.load(epoch, None, NOW + 5, MONOTONIC + 5)
    assert memory.load(epoch, 8, NOW + 15, MONOTONIC + 15)
    assert [(event.change, event.at) for event in memory.own.scale_up] == [(4, NOW)]
    assert not memory.load(epoch, 8, NOW + 30, MONOTONIC + 30)


def test_a_decision_that_was_written_is_not_dropped():
    memory = HpaMemory(stored=dumps(Memory(replicas=9)).decode())
    epoch = Epoch(HOLDER, NOW - 30)
    memory.load(epoch, 9, NOW, MONOTONIC)
    memory.keep(Memory(replicas=7))
    memory.reload()
    assert not memory.load(epoch, 7, NOW, MONOTONIC)
    assert memory.own == Memory(replicas=7)


def test_only_a_new_epoch_asks_whether_the_replicas_are_those_of_the_last_leader():
    epoch = Epoch(HOLDER, NOW - 30)
    memory = HpaMemory(stored=dumps(Memory(replicas=9)).decode())
    assert memory.contradicts(epoch, 7)
    assert not memory.contradicts(epoch, 9)
    assert not HpaMemory().contradicts(epoch, 7)
    memory.load(epoch, 9, NOW, MONOTONIC)
    assert not memory.contradicts(epoch, 7)


def test_the_first_decision_of_an_elected_replica_needs_a_read():
    for is_elected in (True, False):
        memory = HpaMemory()
        memory.load(Epoch(is_elected=is_elected), 4, NOW, MONOTONIC)
        assert memory.is_confirmed is not is_elected


def test_a_preview_starts_from_what_is_stored_and_leaves_no_trace():
    stored = Memory(replicas=5, recommendations=(Recommendation(5, NOW - 60),))
    memory = HpaMemory(stored=dumps(stored).decode())
    assert memory.preview(None, NOW) == stored
    seen = memory.preview(7, NOW)
    assert [event.change for event in seen.scale_up] == [2]
    assert (memory.own, memory.epoch) == (Memory(), None)
