"""The status of a VPA without a new recommendation keeps what is stored."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import vpa
from tests.unit.decide.vertical.recommend.test_minor_changes import status
from trimtab.model.core.meta import Condition
from trimtab.operator.vertical.recommender.feeder import UnsupportedConfig
from trimtab.operator.vertical.recommender.status_builder import unsupported_change, waiting_change

FOR = Condition(type="ComputedFor", status="True", reason="For:this:share")
STORED = msgspec.structs.replace(status(generation=4), conditions=(FOR,))
VPA = msgspec.structs.replace(vpa("base"), status=STORED)


def unsupported(vpa_object):
    return unsupported_change(vpa_object, UnsupportedConfig("Why", "because"), 5_000_000_000)


def waiting(vpa_object):
    return waiting_change(vpa_object, 5_000_000_000)


@pytest.mark.parametrize(
    ("make", "kind", "reason"),
    [(unsupported, "ConfigUnsupported", "Why"), (waiting, "FetchingHistory", "")],
)
def test_the_last_recommendation_and_what_it_was_for_stay(make, kind, reason):
    change = make(VPA)
    assert change.vpa is VPA
    assert change.status.recommendation == STORED.recommendation
    assert change.status.condition("ComputedFor") == FOR
    assert change.status.observed_generation == VPA.metadata.generation, "O1: the edit was seen"
    (found,) = [condition for condition in change.status.conditions if condition.type == kind]
    assert (found.status, found.reason) == ("True", reason)
    written = msgspec.structs.replace(VPA, status=change.status)
    assert make(written) is None
