"""From a ratio to replicas: gaps may hold a change back, and never reverse it, in both directions."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.decide.horizontal.builders import pods
from trimtab.decide.horizontal.metrics.pods import (
    Groups,
    ProposalOutcome,
    Tolerance,
    replicas_from_ratio,
)

PROPOSED, WITHIN, FILLED, UNSURE = (
    ProposalOutcome.PROPOSED,
    ProposalOutcome.WITHIN_TOLERANCE,
    ProposalOutcome.WITHIN_AFTER_FILLING,
    ProposalOutcome.DIRECTION_UNSURE,
)
INT32_MAX = 2**31 - 1
AT_FOUR: Any = SimpleNamespace(current=4, tolerance=Tolerance(up=0.1, down=0.1))


def groups(ready, unready=0, missing=0):
    made = Groups()
    made.ready, made.unready, made.missing = list(pods(ready)), list(pods(unready)), list(pods(missing))
    return made


@pytest.mark.parametrize(
    ("ratio", "counted", "filled", "want"),
    [
        pytest.param(2.0, (4,), None, (8, PROPOSED), id="no gaps, up"),
        pytest.param(0.5, (4,), None, (2, PROPOSED), id="no gaps, down"),
        pytest.param(1.1, (4,), None, (4, WITHIN), id="on the edge of the tolerance"),
        pytest.param(0.5, (4, 9), None, (2, PROPOSED), id="unready pods do not matter going down"),
        pytest.param(1.0, (4, 9), None, (4, WITHIN), id="nor at the target"),
        pytest.param(2.0, (4, 2), (1.5, 6), (9, PROPOSED), id="unready pods count as 0 going up"),
        pytest.param(2.0, (4, 0, 2), (1.5, 6), (9, PROPOSED), id="missing pods count going up"),
        pytest.param(0.25, (4, 0, 2), (0.5, 6), (3, PROPOSED), id="missing pods count going down"),
        pytest.param(2.0, (4, 9), (1.1, 13), (4, FILLED), id="within tolerance after filling"),
        pytest.param(0.5, (4, 0, 4), (0.9, 8), (4, FILLED), id="within tolerance after filling, down"),
        pytest.param(2.0, (4, 9), (0.5, 13), (4, UNSURE), id="filling reverses a growth"),
        pytest.param(0.5, (4, 0, 9), (2.0, 13), (4, UNSURE), id="filling reverses a shrinking"),
        pytest.param(0.8, (4, 0, 9), (0.7, 13), (4, UNSURE), id="below target, yet more replicas"),
        pytest.param(1.5, (1, 1), (1.3, 2), (4, UNSURE), id="above target, yet fewer replicas"),
        pytest.param(1.5, (1, 1), (2.0, 2), (4, PROPOSED), id="above target, the same replicas"),
    ],
)
def test_replicas_from_a_ratio_at_four_replicas(ratio, counted, filled, want):
    asked = []

    def with_gaps(*, counts_unready):
        asked.append(counts_unready)
        return filled

    usage: Any = SimpleNamespace(ratio=ratio, groups=groups(*counted), with_gaps=with_gaps)
    found = replicas_from_ratio(usage, AT_FOUR)
    assert (found.replicas, found.outcome) == want
    assert found.filled_ratio == (filled[0] if filled else None)
    assert asked == ([ratio > 1.0 and len(counted) > 1 and counted[1] > 0] if filled else [])


def test_replicas_stop_at_the_largest_number():
    usage: Any = SimpleNamespace(ratio=1e9, groups=groups(4), with_gaps=None)
    found = replicas_from_ratio(usage, AT_FOUR)
    assert found.replicas == INT32_MAX
