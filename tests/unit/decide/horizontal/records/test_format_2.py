"""Records in format 2 are still read, with the rulings and the default of a gate that their programs had."""

import json

import pytest

from tests.unit.decide.horizontal.builders import average, external, hpa, observe, run, series
from trimtab.decide.horizontal import Record, replay
from trimtab.decide.horizontal.records import format_2, record
from trimtab.model.json.wire import WireError

SEEN = observe(hpa(external(average(100))), 4, series(400))


def in_format_2(**observation):
    """Return a record as a program that wrote format 2 would have, without what it did not know."""
    data = json.loads(record.dumps(Record(observation=SEEN, decision=run(SEEN))))
    for condition in data["decision"]["status"]["conditions"]:
        del condition["observedGeneration"]
    data["observation"] |= observation
    return data | {"version": 2}


def test_a_record_replays_to_the_same_decision():
    known = record.loads(json.dumps(in_format_2()))
    assert not known.observation.compat.condition_generations
    assert record.dumps(replay(known)) == record.dumps(known)


@pytest.mark.parametrize("gates", [{}, {"hpa_selection_strategy": True}], ids=["none", "another"])
def test_a_gate_that_is_not_named_has_its_old_default(gates):
    assert not record.loads(json.dumps(in_format_2(gates=gates))).observation.gates.hpa_scale_to_zero


def test_a_gate_that_is_named_stays():
    named = {"hpa_scale_to_zero": True}
    assert record.loads(json.dumps(in_format_2(gates=named))).observation.gates.hpa_scale_to_zero


@pytest.mark.parametrize("broken", [{}, {"observation": 5}, {"observation": {"compat": 5, "gates": []}}])
def test_what_is_no_record_is_left_to_the_decoder(broken):
    assert format_2.upgrade(broken) == {**broken, "version": 3}
    with pytest.raises(WireError):
        record.loads(json.dumps(broken | {"version": 2}))
