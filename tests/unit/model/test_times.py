"""Durations are read and written as Kubernetes flags spell them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.times import (
    ZERO_TIME,
    ZERO_TIME_NS,
    format_duration,
    format_micro_time,
    format_ns,
    format_time,
    from_ns,
    int32_seconds,
    parse_duration,
    parse_long_duration,
    parse_ns,
    parse_time,
    to_ns,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15),
        ("5m0s", 300),
        ("1h30m", 5400),
        ("100ms", 0.1),
        ("0", 0),
        ("1.5h", 5400),
        ("-1m", -60),
        (".5s", 0.5),
    ],
)
def test_a_duration_means_its_seconds(text, seconds):
    assert parse_duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "15", "s", "15 s", "1d", "١s", "1s\n", "1e3s", "9" * 40 + "h"])
def test_what_is_no_duration_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**7))
def test_writing_and_reading_give_the_same_duration(seconds):
    span = timedelta(seconds=seconds)
    assert parse_duration(format_duration(span)) == span


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("8d", timedelta(days=8)),
        ("1w", timedelta(weeks=1)),
        ("1w2d3h", timedelta(days=9, hours=3)),
        ("36h", timedelta(hours=36)),
        ("2d1.5h", timedelta(days=2, minutes=90)),
        ("0", timedelta()),
    ],
)
def test_a_long_duration_has_weeks_and_days_before_the_rest(text, want):
    assert parse_long_duration(text) == want


@pytest.mark.parametrize("text", ["", "d", "3h2d", "2d1w", "1y", "9" * 30 + "w"])
def test_what_is_no_long_duration_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="write it as 8d, 36h or 1h30m"):
        parse_long_duration(text)


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        (0, "0s"),
        (15, "15s"),
        (60, "1m"),
        (3600, "1h"),
        (3661, "1h1m1s"),
        (0.5, "0.5s"),
        (-90, "-1m30s"),
        (7200.25, "2h0.25s"),
    ],
)
def test_a_duration_is_written_as_short_as_possible(seconds, want):
    assert format_duration(timedelta(seconds=seconds)) == want


def test_a_duration_may_have_64_characters_and_not_more():
    assert parse_duration("0." + "0" * 61 + "s") == timedelta()
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration("0." + "0" * 62 + "s")


NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "want_ns"),
    [
        ("2026-01-15T12:00:00Z", 0),
        ("2026-01-15t12:00:00z", 0),
        ("2026-01-15T12:00:00.5Z", 500_000_000),
        ("2026-01-15T12:00:00.123456789Z", 123_456_789),
        ("2026-01-15T12:00:00.1234567899Z", 123_456_789),
        ("2026-01-15T14:30:00+02:30", 0),
        ("2026-01-15T09:15:00-02:45", 0),
    ],
)
def test_a_time_is_read_to_the_nanosecond_in_any_zone(text, want_ns):
    assert parse_ns(text) - to_ns(NOON) == want_ns
    assert parse_time(text) == NOON + timedelta(microseconds=want_ns // 1000)


@pytest.mark.parametrize(
    "text", ["", "2026-01-15", "2026-01-15T12:00:00", "2026-13-01T00:00:00Z", "2026-01-15T12:00:00Z\n"]
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match=r"RFC 3339|month"):
        parse_time(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_outside_of_all_years_is_refused(text):
    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        parse_time(text)


@given(st.integers(-62_135_596_800 * 10**9, 253_402_300_799 * 10**9))
def test_nanoseconds_read_back(moment_ns):
    assert parse_ns(format_ns(moment_ns)) == moment_ns
    assert to_ns(from_ns(moment_ns)) == moment_ns // 1000 * 1000


def test_times_are_written_as_the_api_does():
    moment = NOON + timedelta(microseconds=1)
    assert (format_time(moment), format_micro_time(moment)) == (
        "2026-01-15T12:00:00Z",
        "2026-01-15T12:00:00.000001Z",
    )
    east = NOON.astimezone(timezone(timedelta(hours=3)))
    assert (format_time(east), format_micro_time(east)) == (
        "2026-01-15T12:00:00Z",
        "2026-01-15T12:00:00.000000Z",
    )
    assert format_time(ZERO_TIME) == "0001-01-01T00:00:00Z"
    assert (to_ns(ZERO_TIME), from_ns(ZERO_TIME_NS)) == (ZERO_TIME_NS, ZERO_TIME)
    assert (format_ns(0), format_ns(1), format_ns(100_000_000)) == (
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00.000000001Z",
        "1970-01-01T00:00:00.1Z",
    )


@pytest.mark.parametrize(
    ("count", "want"), [(5, 5), (-5, -5), (2**31 - 1, 2**31 - 1), (2**31, 2**31 - 1), (-(2**40), 1 - 2**31)]
)
def test_seconds_of_the_api_are_cut_to_32_bits(count, want):
    assert int32_seconds(count) == timedelta(seconds=want)
