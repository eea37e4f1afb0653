"""What renewals of a Lease show of their holders' clocks, and as of when a stored memory is taken up."""

from math import inf

import pytest

from trimtab.cluster.leases.epoch import (
    RENEWAL_SECONDS,
    ClockReading,
    Epoch,
    OwnClock,
    clock_name,
    split_clock_name,
)

OURS = 1_000_000.0
"""Our wall clock is ahead of our monotonic one by this much in all cases."""


def seen(*renewals: tuple[float, float | None, float]) -> ClockReading:
    """Return what renewals show: true moment, look before, look after; the holder's clock is 100 s ahead of ours."""
    readings = [ClockReading.of_renewal(OURS + at + 100, before, after) for at, before, after in renewals]
    reading = readings[0]
    for later in readings[1:]:
        reading = reading.and_then(later)
    return reading


@pytest.mark.parametrize(
    ("reading", "least", "most"),
    [
        pytest.param(seen((10, 8, 12)), -100 - 2, -100 + 2, id="one renewal is as exact as the looks"),
        pytest.param(seen((10, 8, 12), (20, 19.5, 24)), -100, -100 + 2, id="two are more exact"),
        pytest.param(
            seen((10, 8, 12), (60, 12, 90)), -100 - 2, -100 + 2, id="two minutes blind spoil nothing"
        ),
        pytest.param(seen((10, None, 12)), -100, -98, id="a first look shows a clock that is ahead"),
    ],
)
def test_the_skew_of_a_clock_that_is_ahead(reading, least, most):
    assert least <= reading.skew(OURS + 95, 95.0) <= most


@pytest.mark.parametrize(
    ("said", "before", "after", "skew"),
    [
        pytest.param(10, 8, 12, 0.0, id="clocks that agree"),
        pytest.param(10, 14, 15, 0.0, id="a renewal that was under way for five seconds"),
        pytest.param(10, 16, 17, 7.0, id="one that would have been given up: the clock is behind"),
        pytest.param(10, None, 4000, 0.0, id="an old renewal at the first look: it is old, not wrong"),
        pytest.param(13.5, 8, 12, -1.5, id="a date in the future: the clock is ahead"),
        pytest.param(12.5, 8, 12, 0.0, id="half a second is no difference"),
    ],
)
def test_when_clocks_count_as_equal(said, before, after, skew):
    reading = ClockReading.of_renewal(OURS + said, before, after)
    assert reading.skew(OURS + after, float(after)) == pytest.approx(skew)


def test_a_clock_that_is_set_is_known_by_what_it_shows_since():
    first = ClockReading.of_renewal(OURS + 10, 8, 12)
    later = ClockReading.of_renewal(OURS + 20 + 300, 18, 22)
    assert first.and_then(later) == later


def test_a_reading_is_bounded_by_the_time_that_a_renewal_may_take():
    reading = ClockReading.of_renewal(OURS + 10, 8, 12)
    assert (reading.low, reading.high) == (OURS - 2, OURS + 2 + RENEWAL_SECONDS)
    assert ClockReading.of_renewal(OURS + 10, None, 12).high == inf


def test_an_epoch_is_never_taken_up_as_of_later_than_now():
    """A renewTime in the future stopped all growth until then."""
    holder = clock_name("first")
    unknown = Epoch(holder, OURS + 900)
    assert unknown.last_alive(OURS + 50, 50.0) == OURS + 50
    known = Epoch(holder, OURS + 10 + 900, {holder: ClockReading.of_renewal(OURS + 10 + 900, 8, 12)})
    assert known.last_alive(OURS + 50, 50.0) == pytest.approx(OURS + 12, abs=2)


def test_what_another_clock_dated_is_moved_by_that_clock_alone():
    clocks = {
        clock_name("ahead"): ClockReading.of_renewal(OURS + 10 + 100, 8, 12),
        clock_name("right"): ClockReading.of_renewal(OURS + 20, 18, 22),
    }
    epoch = Epoch(clock_name("right"), OURS + 20, clocks)
    assert epoch.skew(clock_name("right"), OURS + 30, 30.0) == 0.0
    assert epoch.skew(clock_name("ahead"), OURS + 30, 30.0) == pytest.approx(-100, abs=2)
    assert epoch.skew(clock_name("never seen"), OURS + 30, 30.0) == 0.0


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        pytest.param(clock_name("a"), (clock_name("a"), 0.0), id="a clock that was never set"),
        pytest.param(clock_name("a", 100.0), (clock_name("a"), 100.0), id="one that was set forward"),
        pytest.param(clock_name("a", -0.5), (clock_name("a"), -0.5), id="one that was set back"),
        pytest.param("a+b", ("a+b", 0.0), id="what cannot be read is a name"),
        pytest.param("a+inf", ("a+inf", 0.0), id="nor is what no clock can be set by"),
        pytest.param("", ("", 0.0), id="a memory without a clock"),
    ],
)
def test_the_name_of_a_clock_says_by_how_much_it_was_set(name, parts):
    assert split_clock_name(name) == parts


def test_a_clock_that_drifts_keeps_its_name_and_one_that_is_set_gets_another():
    clock = OwnClock("a", OURS, 0.0)
    assert clock.name(OURS + 60.9, 60.0) == clock_name("a")
    assert clock.name(OURS + 170.0, 70.0) == clock_name("a", 100.0)
    assert clock.name(OURS + 180.5, 80.0) == clock_name("a", 100.0)
    assert clock.name(OURS + 90.0, 90.0) == clock_name("a")


def test_what_was_dated_before_a_clock_was_set_is_not_read_by_the_time_after():
    """It was: the Lease showed the clock after it was set, and the memory had been stored before."""
    name = clock_name("set")
    epoch = Epoch(clock_name("set", 100.0), OURS + 120, {name: ClockReading.of_renewal(OURS + 20, 18, 22)})
    assert epoch.skew(name, OURS + 30, 30.0) == 0.0
    assert epoch.skew(clock_name("set", 100.0), OURS + 30, 30.0) == pytest.approx(-100, abs=2)
    assert epoch.last_alive(OURS + 30, 30.0) == pytest.approx(OURS + 20, abs=2)
