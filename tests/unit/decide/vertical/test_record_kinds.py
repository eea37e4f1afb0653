"""A record names each action as what it was."""

import pytest

from tests.unit.decide.vertical.policy_builders import pod, recommended, vpa, world
from tests.unit.decide.vertical.test_records import recorded
from trimtab.decide.vertical.records import read_update, replay_update, to_json
from trimtab.decide.vertical.update.actions import ActionResult


@pytest.mark.parametrize(
    ("mode", "kind"), [("Recreate", "evict"), ("InPlaceOrRecreate", "resize"), ("InPlace", "resize")]
)
def test_a_record_names_evictions_and_resizes(mode, kind):
    owner = vpa("base", recommended("4Gi"), mode=mode)
    record = recorded(world([owner], [pod(f"db-{place}") for place in range(3)])).record
    assert record.actions
    for made in (record, read_update(to_json(record)), replay_update(record)):
        (action, *_) = made.actions
        assert {action.kind for action in made.actions} == {kind}
        assert (action.pod, action.vpa, action.result) == ("shop/db-0", "shop/base", ActionResult.DONE)
        assert bool(action.operations) == (kind == "resize"), "an eviction changes nothing of the pod"
