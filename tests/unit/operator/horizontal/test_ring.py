"""The ring shows every record as it was, however it keeps it."""

import pytest

from tests.unit.decide.horizontal.builders import cpu, hpa, observe, pods, run, usage_of
from trimtab.decide.horizontal import Record, record
from trimtab.operator.horizontal.ring import WHOLE, RecordRing


def made(number: int) -> list[Record]:
    records = []
    for usage in range(40, 40 + number):
        seen = observe(hpa(cpu(50)), 4, usage_of(pods(4), usage))
        records.append(Record(observation=seen, decision=run(seen)))
    return records


@pytest.mark.parametrize("most", [0, 1, 2, 3, 20])
def test_the_newest_are_kept_and_shown_oldest_first(most):
    records, ring = made(25), RecordRing(most)
    for one in records:
        ring.append(one)
    want = [record.dumps(one) for one in records[25 - most :]]
    assert [record.dumps(one) for one in ring] == want
    assert [record.dumps(one) for one in reversed(ring)] == want[::-1]
    assert [record.dumps(one) for one in ring[-3:]] == want[-3:]
    assert len(ring) == most


def test_the_newest_are_the_very_records_that_came_in():
    records, ring = made(5), RecordRing(4)
    for one in records:
        ring.append(one)
    assert all(ring[-place] is records[-place] for place in range(1, WHOLE + 1))


def test_an_empty_ring_is_false_and_has_no_last_record():
    ring = RecordRing(20)
    assert not ring
    with pytest.raises(IndexError):
        ring[-1]
