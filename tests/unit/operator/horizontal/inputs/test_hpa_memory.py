"""The memory of an HPA in a new epoch: as stored, by our clock, and never after the moment of the decision."""

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
