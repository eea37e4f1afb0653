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
    230: "what a leader took over unchanged stayed dated by a clock that the next one had never seen",
    354: "the leader's clock was set, and it crashed before it had stored anything by the new time",
    953: "the same as 230, and the clock of the next leader had been set",
}
"""Seeds of schedules that once broke a promise, and why."""


@pytest.mark.parametrize("seed", FOUND_SOMETHING, ids=str)
def test_windows_rates_and_zeros_hold_through_every_hand_over(seed):
    broken, happened = play(seed)
    assert broken == [], "\n".join(happened)
