"""Durations are read and written as Kubernetes flags spell them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.times import format_duration, parse_duration


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
