"""The ring shows every record as it was, however it keeps it."""

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import T, cpu, hpa, observe, pods, run, usage_of
from trimtab.decide.horizontal import Record
from trimtab.decide.horizontal.records import record
from trimtab.operator.horizontal.inputs.hpa_state import RecordHistory


def made(number: int) -> list[Record]:
    records = []
    for usage in range(40, 40 + number):
        seen = observe(hpa(cpu(50)), 4, usage_of(pods(4), usage))
        records.append(Record(observation=seen, decision=run(seen)))
    return records


@pytest.mark.parametrize("most", [0, 1, 2, 3, 20])
def test_the_newest_are_kept_and_shown_oldest_first(most):
    records, ring = made(25), RecordHistory(most)
    for one in records:
        ring.append(one)
    want = [record.dumps(one) for one in records[25 - most :]]
    assert [record.dumps(one) for one in ring] == want
    assert [record.dumps(one) for one in reversed(ring)] == want[::-1]
    assert [record.dumps(one) for one in ring[-3:]] == want[-3:]
    assert len(ring) == most


def test_a_ring_that_is_not_full_forgets_nothing():
    ring = RecordHistory(20)
    for number, one in enumerate(made(20), start=1):
        ring.append(one)
        assert len(ring) == number


def test_the_newest_is_the_very_record_that_came_in():
    records, ring = made(5), RecordHistory(4)
    for one in records:
        ring.append(one)
        assert ring[-1] is one


def test_only_newer_records_are_shown_to_whoever_knows_the_others():
    ring = RecordHistory(4)
    for number, one in enumerate(made(5)):
        decision = msgspec.structs.replace(one.decision, now=T + number)
        ring.append(msgspec.structs.replace(one, decision=decision))
    assert [one.decision.now for one in ring.newer_than(T + 2)] == [T + 3, T + 4]
    assert [one.decision.now for one in ring.newer_than(T - 1)] == [T + 1, T + 2, T + 3, T + 4]
    assert ring.newer_than(T + 4) == []


def test_an_empty_ring_is_false_and_has_no_last_record():
    ring = RecordHistory(20)
    assert not ring
    with pytest.raises(IndexError):
        ring[-1]
