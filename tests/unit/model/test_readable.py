"""Amounts and spans as people read them, without exponents and without more digits than they can use."""

from datetime import timedelta

import pytest

from trimtab.model.readable import counted, readable_amount, readable_span


@pytest.mark.parametrize(
    ("resource", "thousandths", "want"),
    [
        ("cpu", 250, "250m"),
        ("cpu", 2000, "2"),
        ("cpu", 1013, "1013m"),
        ("cpu", 18_218, "18.2 cores"),
        ("cpu", 1_330_000, "1,330 cores"),
        ("cpu", 10**14, "100,000,000,000 cores"),
        ("memory", 0, "0 B"),
        ("memory", 262_144_000 * 1000, "250 MiB"),
        ("memory", 9_616_998_332 * 1000, "8.96 GiB"),
        ("memory", 2**60 * 1000, "1,024 PiB"),
        ("hugepages-2Mi", 4000, "4"),
    ],
)
def test_an_amount_is_written_for_people(resource, thousandths, want):
    """The page of a VPA said 1.33e+03 cores."""
    assert readable_amount(resource, thousandths) == want


@pytest.mark.parametrize(
    ("seconds", "want"),
    [(0, "0 s"), (45, "45 s"), (90, "1 min 30 s"), (43_200, "12 h"), (108_000, "1 d 6 h"), (86_460, "1 d")],
)
def test_a_span_is_written_in_its_two_largest_units(seconds, want):
    """The explanation of a pod said 12:00:00."""
    assert readable_span(timedelta(seconds=seconds)) == want


@pytest.mark.parametrize(
    ("number", "nouns", "want"),
    [
        (0, ("decision",), "0 decisions"),
        (1, ("decision",), "1 decision"),
        (2, ("decision",), "2 decisions"),
        (1, ("query", "queries"), "1 query"),
        (3, ("query", "queries"), "3 queries"),
    ],
)
def test_a_noun_has_the_number_that_is_counted(number, nouns, want):
    """`trimtab replay` said `1 decisions came out the same`."""
    assert counted(number, *nouns) == want
