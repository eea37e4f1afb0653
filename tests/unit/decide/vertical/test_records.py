"""Records replay to the same bytes."""

import msgspec
import pytest

from tests.unit.decide.vertical.policy_builders import (
    ALL_GATES,
    LEADER,
    NOW,
    Recorder,
    limit_range,
    pod,
    raw_pod,
    recommended,
    vpa,
    world,
)
from tests.unit.decide.vertical.test_explain import SCOPES, seen_by_all
from trimtab.decide.vertical.records import (
    VERSION,
    read_admission,
    read_update,
    record_admission,
    recorded_loop,
    replay_admission,
    replay_update,
    to_json,
)
from trimtab.decide.vertical.rules import Rules
from trimtab.decide.vertical.update.actions import ActionResult
from trimtab.decide.vertical.update.loop_state import UpdaterSettings, UpdaterState
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire


def recorded(seen, state=None, settings=None, gates=ALL_GATES, rules=Rules.TRIMTAB, api=None):
    api = api or Recorder()
    loop = recorded_loop(seen, state or UpdaterState(), NOW, settings or UpdaterSettings(), gates, rules)
    try:
        action = next(loop)
        while True:
            action = loop.send(api(action))
    except StopIteration as end:
        return end.value


@pytest.mark.parametrize("rules", [Rules.TRIMTAB, Rules.VPA_1_8], ids=["default", "vpa-1.8"])
@pytest.mark.parametrize("outcome", list(ActionResult))
def test_a_record_of_an_update_loop_replays_to_the_same_bytes(rules, outcome):
    seen = world(
        [vpa("base", recommended("4Gi"), mode="InPlaceOrRecreate")],
        [pod(f"db-{place}") for place in range(3)],
    )
    first = recorded(seen, rules=rules, api=Recorder(db_0=outcome))
    data = to_json(first.record)
    read = read_update(data)
    assert to_json(read) == data
    assert to_json(replay_update(read)) == data
    assert read.version == VERSION
    assert read.actions


def test_a_second_loop_replays_from_the_state_the_first_left():
    seen = seen_by_all()
    first = recorded(seen, api=Recorder(db_0=ActionResult.REFUSED))
    second = recorded(seen, first.record.state_after)
    assert to_json(replay_update(read_update(to_json(second.record)))) == to_json(second.record)


def test_replay_shows_where_another_setting_decides_otherwise():
    record = recorded(seen_by_all()).record
    without_gate = wire.convert({**wire.to_builtins(record), "gates": FeatureGates().__dict__}, type(record))
    assert record.actions
    assert to_json(replay_update(without_gate)) != to_json(record)


@pytest.mark.parametrize(
    "raw",
    [raw_pod(labels=LEADER, limits={"memory": "3Gi"}), {"spec": []}, None],
    ids=["a leader", "nonsense", "nothing"],
)
def test_a_record_of_an_admission_replays_to_the_same_bytes(raw):
    seen = world(
        [vpa("leader", recommended("8Gi"), scope="leader")],
        scopes=SCOPES,
        ranges=[limit_range(max={"memory": "4Gi"})],
    )
    answer, record = record_admission(raw, "shop", seen, ALL_GATES)
    data = to_json(record)
    assert to_json(replay_admission(read_admission(data))) == data
    assert record.operations == answer.operations


@pytest.mark.parametrize("version", [2, VERSION + 1])
def test_a_record_of_another_version_is_rejected(version):
    data = msgspec.json.encode({**wire.to_builtins(recorded(seen_by_all()).record), "version": version})
    with pytest.raises(wire.WireError, match=f"the record has version {version}, this program reads version"):
        read_update(data)


@pytest.mark.parametrize("rules", list(Rules))
def test_a_record_names_its_rules(rules):
    assert msgspec.json.decode(to_json(recorded(seen_by_all(), rules=rules).record))["rules"] == rules.value
