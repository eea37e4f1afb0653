"""When the samples of a source were first dated as they are, by our clock alone."""

import asyncio
from math import inf

from trimtab.clock import VirtualClock
from trimtab.decide.horizontal.arithmetic import NEVER
from trimtab.decide.horizontal.observation.samples import Move, PodSamples, Sample
from trimtab.model.metrics_api import MeasuredPod, PodMetrics
from trimtab.operator.horizontal.sample_moves import FORGOTTEN_AFTER, SampleMoves, oldest_move, with_moves

CLOCK = VirtualClock()


def played(*lists, every=2.0):
    """Return what was known of each list of dates, asked for every two seconds."""
    clock = VirtualClock()

    async def main():
        moves, found = SampleMoves(clock), []
        for dates in lists:
            found.append(dict(moves.note("source", dates, clock.monotonic())))
            await asyncio.sleep(every)
        return found

    return clock.run(main())


def test_a_date_keeps_the_time_when_it_was_first_seen():
    first, second, third = played({100.0}, {100.0, 110.0}, {100.0, 110.0})
    assert first == {100.0: Move(100.0, 0.0, None)}
    assert second == third == {100.0: Move(100.0, 0.0, None), 110.0: Move(110.0, 2.0, 0.0)}


def test_a_date_that_went_back_has_not_moved():
    *_, last = played({100.0}, {115.0}, {100.0})
    assert last == {100.0: Move(100.0, 4.0, None)}


def test_a_source_that_was_not_asked_for_long_is_new_again():
    first, second = played({100.0}, {100.0}, every=FORGOTTEN_AFTER + 2)
    assert second == first
    assert played({100.0}, {100.0}, {100.0}, every=FORGOTTEN_AFTER / 2)[-1] == first


def test_dates_of_usage_are_noted():
    items = [
        PodMetrics(metadata=MeasuredPod(name=name), timestamp=timestamp)
        for name, timestamp in (("a", "2026-01-01T00:00:00Z"), ("b", None), ("c", "yesterday"))
    ]
    assert list(SampleMoves(CLOCK).note_usage("shop", items, 0.0)) == [1767225600.0, -inf]


def test_moves_are_told_by_the_clock_of_the_decision():
    moves = {100.0: Move(100.0, 2.0, None), 90.0: Move(90.0, 4.0, 2.0)}
    samples = PodSamples(samples={"a": Sample(1, 100.0), "b": Sample(1, 90.0), "c": Sample(1, NEVER)})
    shown = with_moves(samples, moves, 1000.0)
    assert isinstance(shown, PodSamples)
    assert shown.moves == (
        Move(90.0, 1004.0, 1002.0),
        Move(100.0, 1002.0, None),
    )


def test_the_oldest_move_says_whether_all_samples_are_fresh():
    moved = {100.0: Move(100.0, 2.0, 0.0), 90.0: Move(90.0, 4.0, 2.0)}
    assert oldest_move(moved, 9.0) == 2.0
    assert oldest_move({}, 9.0) == 9.0, "undated samples are as new as their list"
    assert oldest_move(moved | {80.0: Move(80.0, 4.0, None)}, 9.0) == -inf


def test_a_date_that_cannot_be_read_is_of_any_age():
    items = [PodMetrics(metadata=MeasuredPod(name="a"), timestamp="yesterday")]
    assert oldest_move(SampleMoves(CLOCK).note_usage("shop", items, 0.0), 9.0) == -inf
