"""Records and memories that earlier programs wrote, in format 1, are still read.

The records in `tests/data/records/format-1.jsonl` were written by the last program that wrote format 1.
"""

import json
from pathlib import Path

import pytest

from trimtab.decide.horizontal import Memory, explain, replay
from trimtab.decide.horizontal import memory as memories
from trimtab.decide.horizontal.records import format_1, record
from trimtab.model.json.wire import WireError

RECORDS = Path(__file__, "../../../../../data/records/format-1.jsonl").resolve().read_bytes().splitlines()

RENAMED = """
rivals readings refused told trail lowest highest counted extra surge fallback asked stop why right isRefused
refuseAbsurdSamples tellExternalChanges tellExtraPods tellIgnoredFields
"""
VALUES = ["standIn", "unread", "gone"]


def scalars(data):
    if isinstance(data, dict | list):
        values = data.values() if isinstance(data, dict) else data
        return [scalar for value in values for scalar in scalars(value)]
    return [data]


def names(data):
    if isinstance(data, dict):
        return {*data, *(name for value in data.values() for name in names(value))}
    return {name for value in data for name in names(value)} if isinstance(data, list) else set()


@pytest.mark.parametrize("line", RECORDS, ids=range(len(RECORDS)))
def test_a_record_replays_to_the_same_decision(line):
    known = record.loads(line)
    written = record.dumps(known)
    assert record.dumps(replay(known)) == written
    assert record.dumps(record.loads(written)) == written
    assert explain(known).summary


@pytest.mark.parametrize("line", RECORDS, ids=range(len(RECORDS)))
def test_no_value_is_lost(line):
    old, new = json.loads(line), json.loads(record.dumps(record.loads(line)))
    assert new["version"] == 3
    added = 0 if "gates" in old["observation"] else len(new["observation"]["gates"])
    # The version and two later rulings are new, and a switch is gone.
    added += 3 - ("omitFailedMetrics" in names(old))
    assert len(scalars(new)) == len(scalars(old)) + added
    assert (
        names(new) & {"trail", "rivals", "readings", "told", "refused", "lowest", "asked", "stop", "why"}
        == set()
    )


@pytest.mark.parametrize("name", RENAMED.split())
def test_the_records_have_every_name_that_changed(name):
    assert any(name in names(json.loads(line)) for line in RECORDS)


@pytest.mark.parametrize("value", VALUES)
def test_the_records_have_every_value_that_changed(value):
    assert any(value in scalars(json.loads(line)) for line in RECORDS)


def test_the_reworded_event():
    message = "replicas went from 3 to 5 by another hand than this autoscaler's"
    new = format_1.upgrade(
        {"decision": {"events": [{"reason": "ReplicasChangedElsewhere", "message": message}]}}
    )
    assert new["decision"]["events"][0]["message"] == "replicas changed from 3 to 5 outside this autoscaler"


@pytest.mark.parametrize(
    "text", ["{}", "[]", "3", '{"observation":3,"decision":[]}', '{"observation":{"owners":[1],"memory":2}}']
)
def test_what_is_not_a_record_is_named(text):
    with pytest.raises(WireError):
        record.loads(text)


MEMORY_1 = (
    '{"uid":"uid-of-hpa","clock":"a","recommendations":[[4,100.0]],"scaleUp":[[2,90.0]],"strategy":"LabelSelector",'
    '"replicas":4,"lastGood":[["k",3,80.0]],"refused":{"key":70.0},"told":{"MetricLost":60.0}}'
)


def test_a_memory_that_an_hpa_still_carries():
    memory = memories.loads(MEMORY_1)
    assert (memory.replicas, memory.rejected_since, memory.last_event_times) == (
        4,
        {"key": 70.0},
        {"MetricLost": 60.0},
    )
    assert memories.loads(memories.dumps(memory)) == memory


@pytest.mark.parametrize("line", RECORDS, ids=range(len(RECORDS)))
def test_the_memories_of_the_records(line):
    stored = json.dumps(json.loads(line)["decision"].get("memory", {}))
    assert memories.loads(stored) == record.loads(line).decision.memory


def test_a_new_memory_has_no_old_names():
    written = memories.dumps(Memory(rejected_since={"key": 1.0}, last_event_times={"MetricLost": 2.0}))
    assert json.loads(written) == {"rejectedSince": {"key": 1.0}, "lastEventTimes": {"MetricLost": 2.0}}
