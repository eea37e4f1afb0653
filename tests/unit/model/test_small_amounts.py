"""Small amounts and long texts: units of durations, binary quantities below one, and what messages quote."""

from datetime import timedelta
from typing import Any

import pytest

from trimtab.model.json.shape import misfits
from trimtab.model.json.wire import Wire
from trimtab.model.labels.selector import LabelSelector, selector_problems
from trimtab.model.quantity import Quantity
from trimtab.model.times import format_duration, parse_duration, parse_long_duration


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("3000ns", 3),
        ("3us", 3),
        ("3µs", 3),
        ("3ms", 3_000),
        ("3s", 3_000_000),
        ("3m", 180_000_000),
        ("3h", 10_800_000_000),
        ("1h1m1s1ms1us", 3_661_001_001),
        ("-1m30s", -90_000_000),
        ("+1.5s", 1_500_000),
    ],
)
def test_every_unit_of_a_duration(text, microseconds):
    assert parse_duration(text) == parse_long_duration(text) == timedelta(microseconds=microseconds)


@pytest.mark.parametrize(
    ("text", "hours"), [("1w", 168), ("1d", 24), ("1w1d", 192), ("1w1d1h", 193), ("1d1h", 25), ("2w12h", 348)]
)
def test_weeks_and_days_of_a_long_duration(text, hours):
    assert parse_long_duration(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["0s", "0.5s", "1s", "59s", "1m", "1m1s", "1h", "1h1s", "1h30m", "-1h30m"])
def test_the_shortest_text_of_a_duration(text):
    assert format_duration(parse_duration(text)) == text


@pytest.mark.parametrize(
    ("text", "family", "canonical"),
    [
        pytest.param("0Ki", "BinarySI", "0", id="zero"),
        pytest.param("0.0000000000001Ki", "DecimalSI", "1n", id="rounded up to a nano"),
        pytest.param("0.0000000000018Ki", "DecimalSI", "2n", id="two nanos"),
        pytest.param("0.0009Ki", "DecimalSI", "921600u", id="below one"),
        pytest.param("0.0009765625Ki", "BinarySI", "1", id="exactly one"),
        pytest.param("1Ki", "BinarySI", "1Ki", id="a thousand and 24"),
    ],
)
def test_a_binary_amount_below_one_is_written_in_decimals(text, family, canonical):
    quantity = Quantity.parse(text)
    assert (quantity.format, str(quantity)) == (family, canonical)


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({"-" + "k" * 5000: "v"}, id="a long key"),
        pytest.param({"k": "-" + "v" * 5000}, id="a long value"),
        pytest.param({"good": "v", "k": "-" + "v" * 5000}, id="a long value last"),
        pytest.param({"k": "-" + "v" * 5000, "good": "v"}, id="a long value first"),
    ],
)
def test_a_long_label_is_cut_in_the_problem(labels):
    ((name, problem),) = selector_problems(LabelSelector(match_labels=labels))
    assert len(name) < 300
    assert len(problem) < 1000


def test_a_label_of_128_characters_is_quoted_whole():
    value = "-" + "v" * 127
    ((_, problem),) = selector_problems(LabelSelector(match_labels={"k": value}))
    assert value in problem


@pytest.mark.parametrize("value", [1, "text", [1], {"a": 1}, True])
def test_a_field_that_holds_anything_fits_anything(value):
    class Loose(Wire):
        """A type with a field that is not looked into, and a text after it."""

        anything: Any = None
        name: str = ""

    assert misfits({"anything": value}, Loose) == []
    assert [error.field for error in misfits({"anything": value, "name": 5}, Loose)] == ["name"]
