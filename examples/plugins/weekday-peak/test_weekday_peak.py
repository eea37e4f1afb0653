"""The estimator remembers each weekday by itself."""

import msgspec
import pytest
from weekday_peak import DAY, weekday_peak

from trimtab.plugins import EstimatorInput, UsageSample
from trimtab.plugins.estimator import LARGEST_MEMORY
from trimtab.plugins.testing import check_estimator

MONDAY = 20_000 * DAY - (20_000 - 4) % 7 * DAY  # day 4 of 1970 was a Monday


def days(*cores, start=MONDAY):
    """Feed a sample every ten minutes, day by day, and return the answers at noon of each day."""
    memory, answers = None, []
    for number, amount in enumerate(cores):
        for minute in range(0, DAY, 600):
            now = start + number * DAY + minute
            sample = UsageSample(now, "cpu", amount)
            seen = EstimatorInput(
                namespace="shop",
                name="web",
                container="main",
                now=now,
                histograms={},
                samples=(sample,),
                memory=memory,
            )
            answer = weekday_peak(seen)
            memory = msgspec.json.decode(msgspec.json.encode(answer.memory))
            if minute == DAY // 2:
                answers.append(answer)
    return answers


def test_a_monday_gets_what_mondays_used_and_a_tuesday_what_tuesdays_used():
    answers = days(2.0, 0.5, *[0.5] * 5, 0.5, 0.5)
    assert answers[7].amounts["cpu"].target == pytest.approx(2.0, rel=0.06)
    assert answers[7].reason == "the highest p99 of the last 1 Mondays"
    assert answers[8].amounts["cpu"].target == pytest.approx(0.5, rel=0.06)


def test_the_first_week_keeps_the_built_in_amounts():
    answers = days(*[1.0] * 7)
    assert all(answer.amounts == {} for answer in answers)
    assert answers[0].reason == "no Monday seen yet"


def test_more_than_ever_before_counts_at_once():
    answers = days(*[1.0] * 7, 3.0)
    assert answers[7].amounts["cpu"].target == pytest.approx(3.0, rel=0.06)


def test_a_peak_is_forgotten_after_four_weeks():
    answers = days(4.0, *[1.0] * 35)
    assert answers[28].amounts["cpu"].target == pytest.approx(4.0, rel=0.06)
    assert answers[35].amounts["cpu"].target == pytest.approx(1.0, rel=0.06)


def test_its_memory_stays_small():
    answers = days(*[0.01 * 1.3**number for number in range(40)])
    assert len(msgspec.json.encode(answers[-1].memory)) < LARGEST_MEMORY / 4


def test_it_keeps_the_protocol():
    check_estimator(weekday_peak)
