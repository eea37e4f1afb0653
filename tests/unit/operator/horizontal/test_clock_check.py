"""The clock check: a source counts by its newest sample, whichever of its answers came last."""

from itertools import permutations

import pytest

from trimtab.clock import VirtualClock
from trimtab.decide.horizontal.rules import HpaSettings
from trimtab.operator.horizontal.clock_check import FORGOTTEN_AFTER, NEWEST_WITHIN, SET_SECONDS, ClockCheck

AHEAD = -180.0
"""By how much the server is ahead of us: our clock would be three minutes fast."""


def checked(clock: VirtualClock) -> ClockCheck:
    return ClockCheck(clock, lambda: AHEAD, HpaSettings())


@pytest.mark.parametrize("ages", list(permutations((180.0, 0.0, 600.0))), ids=str)
def test_an_old_metric_of_a_source_does_not_make_our_clock_wrong(ages):
    clock = VirtualClock()

    async def main() -> None:
        check = checked(clock)
        check.note_samples("external", clock.now().timestamp())
        for _ in range(8):
            await clock.sleep(15)
            for age in ages:
                check.note_samples("external", clock.now().timestamp() - age)
                assert check.offset() == 0.0

    clock.run(main())


def test_our_clock_is_wrong_once_no_new_sample_agrees_with_it():
    clock = VirtualClock()

    async def main() -> None:
        check = checked(clock)
        check.note_samples("external", clock.now().timestamp())
        await clock.sleep(NEWEST_WITHIN)
        check.note_samples("external", clock.now().timestamp() - 185)
        assert check.offset() == 0.0
        await clock.sleep(1)
        check.note_samples("external", clock.now().timestamp() - 185)
        assert check.offset() == AHEAD
        await clock.sleep(FORGOTTEN_AFTER + 1)
        check.note_samples("pods", clock.now().timestamp())
        assert check.offset() == 0.0

    clock.run(main())


def test_a_source_that_agreed_with_us_is_no_witness_after_a_while():
    """Another source and the server date us fast; the one that does not answer any more objects to it for 300 s."""
    clock = VirtualClock()
    clock.advance(1000)
    check = checked(clock)
    check.note_samples("pods", clock.now().timestamp())
    for passed, offset in ((FORGOTTEN_AFTER, 0.0), (1.0, AHEAD)):
        clock.advance(passed)
        check.note_samples("external", clock.now().timestamp() + AHEAD - 5)
        assert check.offset() == offset


def test_sources_that_do_not_answer_any_more_are_forgotten():
    clock = VirtualClock()
    check = checked(clock)
    for number in range(3):
        check.note_samples(f"external-{number}", clock.now().timestamp())
        clock.advance(FORGOTTEN_AFTER + 1)
    check.note_samples("pods", clock.now().timestamp())
    assert list(check._newest) == ["pods"]


@pytest.mark.parametrize(
    ("jump", "is_checked"), [(0.0, False), (SET_SECONDS, False), (SET_SECONDS + 0.5, True), (-90.0, True)]
)
def test_a_clock_that_was_set_is_checked_at_once(jump, is_checked):
    clock = VirtualClock()
    asked: list[float] = []

    def server() -> float | None:
        asked.append(clock.monotonic())
        return None

    check = ClockCheck(clock, server, HpaSettings())
    check.offset_at(clock.now().timestamp() + jump, clock.monotonic())
    assert bool(asked) is is_checked


def test_a_wrong_clock_is_reported_once_and_so_is_a_right_one(caplog):
    caplog.set_level("INFO")
    clock = VirtualClock()
    ahead: list[float | None] = [AHEAD]
    check = ClockCheck(clock, lambda: ahead[0], HpaSettings())
    for _ in range(3):
        check.note_samples("external", clock.now().timestamp() + AHEAD - 5)
    assert check.offset() == AHEAD
    assert "clock" in check.problem()
    ahead[0] = 0.0
    for _ in range(3):
        check.note_samples("external", clock.now().timestamp())
    assert (check.offset(), check.problem()) == (0.0, "")
    assert [record.getMessage() for record in caplog.records] == ["clock is wrong", "clock is right again"]
