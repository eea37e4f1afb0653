"""A sample of random hand-overs in every run; `make hand-overs` plays ten thousand."""

import pytest

from tests.faults.horizontal.hand_overs import play

FOUND_SOMETHING = {
    4: "a hand-over read what one copy stored by the clock of another",
    5: "a size that no status told of was counted at the wrong moment",
    10: "a clock that was set left what was stored behind",
    20: "a release was taken for the release of another copy",
    43: "an epoch began with the replicas of a lagging watch",
    48: "a clock was judged by two looks that lay two minutes apart",
}
"""Seeds of schedules that once broke a promise, and why."""


@pytest.mark.parametrize("seed", FOUND_SOMETHING, ids=str)
def test_windows_rates_and_zeros_hold_through_every_hand_over(seed):
    broken, happened = play(seed)
    assert broken == [], "\n".join(happened)
