"""Records replay to the same bytes, and records of format 1 are read."""

from pathlib import Path

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
from trimtab.decide.vertical.compat import DEFAULT, VPA_1_8
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
from trimtab.decide.vertical.update.actions import ActionResult
from trimtab.decide.vertical.update.loop_state import UpdaterSettings, UpdaterState
from trimtab.model.feature_gates import FeatureGates
from trimtab.model.json import wire

FORMAT_1 = (Path(__file__).parents[3] / "data/records/vertical-format-1.jsonl").read_bytes().splitlines()
"""Written by the code of format 1: update loops, then admissions."""
UPDATES = [line for line in FORMAT_1 if b'"verdicts":' in line]
ADMISSIONS = [line for line in FORMAT_1 if line not in UPDATES]


def recorded(seen, state=None, settings=None, gates=ALL_GATES, compat=DEFAULT, api=None):
    api = api or Recorder()
    loop = recorded_loop(seen, state or UpdaterState(), NOW, settings or UpdaterSettings(), gates, compat)
    try:
        action = next(loop)
        while True:
            action = loop.send(api(action))
    except StopIteration as end:
        return end.value


@pytest.mark.parametrize("compat", [DEFAULT, VPA_1_8], ids=["default", "vpa-1.8"])
@pytest.mark.parametrize("outcome", list(ActionResult))
def test_a_record_of_an_update_loop_replays_to_the_same_bytes(compat, outcome):
    seen = world(
        [vpa("base", recommended("4Gi"), mode="InPlaceOrRecreate")],
        [pod(f"db-{place}") for place in range(3)],
    )
    first = recorded(seen, compat=compat, api=Recorder(db_0=outcome))
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


def test_a_record_from_before_the_ledger_is_read_and_decided_again():
    data = wire.to_builtins(recorded(seen_by_all()).record)
    for part in ("stateBefore", "stateAfter"):
        data[part].pop("disruptions", None)
    data["compat"].pop("disruptions_last_until_ready")
    for action in data["actions"]:
        action["annotationsBefore"] = {}
    read = read_update(wire.encode(data))
    again = replay_update(read)
    assert [(action.kind, action.pod) for action in again.actions] == [
        (action.kind, action.pod) for action in read.actions
    ]


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


@pytest.mark.parametrize("data", UPDATES)
def test_an_update_record_of_format_1_replays_to_the_result_that_was_recorded(data):
    former, read = msgspec.json.decode(data), read_update(data)
    assert read.version == VERSION == 2
    again = replay_update(read)
    assert to_json(again) == to_json(read)
    assert [action.pod for action in again.actions] == [action["pod"] for action in former["actions"]]
    assert list(wire.to_builtins(again.pod_results)) == former["verdicts"]
    assert list(wire.to_builtins(again.events)) == former["events"]


@pytest.mark.parametrize("data", ADMISSIONS)
def test_an_admission_record_of_format_1_replays_to_the_patch_that_was_recorded(data):
    read = read_admission(data)
    again = replay_admission(read)
    assert to_json(again) == to_json(read)
    assert list(again.operations) == msgspec.json.decode(data)["operations"]


@pytest.mark.parametrize(
    ("former", "wanted"),
    [
        pytest.param(
            {"brake": {"refusals": {"u": {"until": "2026-01-15T12:00:00Z", "count": 2}}}},
            {"evictionLimits": {"backoffs": {"u": {"until": "2026-01-15T12:00:00Z", "count": 2}}}},
            id="a refused eviction",
        ),
        pytest.param(
            {"brake": {"trials": {"c": {"fruitless": 2}}}},
            {"evictionLimits": {"trials": {"c": {"ineffective": 2}}}},
            id="evictions without effect",
        ),
        pytest.param(
            {
                "requested": {
                    "u": {"kind": "return", "at": "2026-01-15T12:00:00Z", "told": "x", "isSeen": True}
                }
            },
            {
                "evictionLimits": {},
                "disruptions": {
                    "u": {
                        "kind": "revert",
                        "requestedAt": "2026-01-15T12:00:00Z",
                        "reportedStatus": "x",
                        "isObserved": True,
                    }
                },
            },
            id="a resize taken back",
        ),
        pytest.param(
            {
                "requested": {
                    "u": {
                        "kind": "resize",
                        "at": "2026-01-15T12:00:00Z",
                        "lostAt": "2026-01-15T12:00:00Z",
                        "isRead": True,
                    }
                }
            },
            {
                "evictionLimits": {},
                "disruptions": {
                    "u": {
                        "kind": "resize",
                        "requestedAt": "2026-01-15T12:00:00Z",
                        "responseLostAt": "2026-01-15T12:00:00Z",
                        "isChecked": True,
                    }
                },
            },
            id="a lost response",
        ),
        pytest.param(
            {"resizesSeen": {"p": "2026-01-15T12:00:00Z"}},
            {"evictionLimits": {}, "resizesFirstSeen": {"p": "2026-01-15T12:00:00Z"}},
            id="a resize under way",
        ),
        pytest.param(
            {"conflictsTold": [["a", "b", "c"]]},
            {"evictionLimits": {}, "reportedConflicts": [["a", "b", "c"]]},
            id="a conflict of scopes",
        ),
    ],
)
def test_each_field_of_the_state_of_format_1_is_read(former, wanted):
    record = {**msgspec.json.decode(UPDATES[0]), "before": former}
    read = read_update(msgspec.json.encode(record)).state_before
    assert msgspec.json.decode(wire.encode(read)) == wanted


def test_a_record_of_an_unknown_format_is_rejected():
    data = msgspec.json.encode({**msgspec.json.decode(UPDATES[0]), "version": 3})
    with pytest.raises(wire.WireError, match="records of format 3 cannot be read"):
        read_update(data)
