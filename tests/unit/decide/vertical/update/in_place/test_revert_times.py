"""The time since which a resize is seen to wait: it is kept while the resize waits, and ends with it."""

from datetime import timedelta

import pytest

from tests.unit.decide.vertical.policy_builders import NOW
from tests.unit.decide.vertical.update.in_place.test_vpa_resizes import loop, requested
from trimtab.decide.vertical.update.loop_state import UpdaterState

SINCE = {"shop/db-0": NOW - timedelta(minutes=10)}


@pytest.mark.parametrize(
    ("minutes", "asked", "want"),
    [
        pytest.param(6, [("resize", "db-0")], {}, id="taken back"),
        pytest.param(1, [], SINCE, id="still waiting"),
    ],
)
def test_a_resize_that_is_taken_back_waits_no_more(minutes, asked, want):
    waiting = requested("deferred", timedelta(minutes=minutes), restarts=True)
    done, result = loop("InPlace", waiting, state=UpdaterState(resizes_first_seen=dict(SINCE)))
    assert done == asked
    assert result.state.resizes_first_seen == want
