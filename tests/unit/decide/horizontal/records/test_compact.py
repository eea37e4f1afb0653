"""Packed records: the same bytes as before, in a fraction of the memory."""

import gc
import tracemalloc
from datetime import timedelta

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import NOW, cpu, hpa, observe, pods, run, samples, usage_of
from tests.unit.decide.horizontal.records.test_record import CASES
from trimtab.decide.horizontal import PodSamples, Record, Sample, after_status, decide
from trimtab.decide.horizontal.records import record
from trimtab.decide.horizontal.records.compact import PackedRecord, pack, unpack
from trimtab.decide.horizontal.status.conditions import as_dry_run

MOST_BYTES_PER_RECORD = 360
"""What a packed record of ten pods takes beside its ground; it was 900 when each kept its own status and memory."""

MOST_BYTES_PER_POD = 24
"""What one more pod adds to a packed record; whole, it adds 200."""

READINGS = {
    "of other pods than were seen": samples({"web-1": 50, "gone": 60}),
    "in another order than the pods": samples({"web-4": 50, "web-3": 60, "web-2": 70, "web-1": 80}),
    "of no pod": samples({}),
    "of different ages": PodSamples(
        samples={f"web-{number}": Sample(50, 1000.5 + number, 15.0) for number in range(1, 5)}
    ),
    "of different windows": PodSamples(
        samples={f"web-{number}": Sample(50, 1000.0, float(number)) for number in range(1, 5)}
    ),
    "beyond 64 bits": samples({"web-1": 2**70}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_packed_record_comes_back_to_the_byte(name):
    whole = Record(observation=CASES[name], decision=run(CASES[name]))
    assert record.dumps(unpack(pack(whole))) == record.dumps(whole)


@pytest.mark.parametrize("name", READINGS)
def test_samples_come_back(name):
    seen = observe(hpa(cpu(50)), 4, READINGS[name])
    whole = Record(observation=seen, decision=run(seen))
    assert record.dumps(unpack(pack(whole))) == record.dumps(whole)


@pytest.mark.parametrize(("scale_error", "status_error"), [("conflict", None), (None, "gone"), ("a", "b")])
def test_what_became_of_a_decision_is_kept(scale_error, status_error):
    seen = CASES["a rescale"]
    decision = run(seen, error=scale_error)
    if status_error:
        decision = after_status(seen, decision, status_error)
    whole = Record(observation=seen, decision=decision, scale_error=scale_error, status_error=status_error)
    assert record.dumps(unpack(pack(whole))) == record.dumps(whole)


def test_a_dry_run_stays_one():
    seen = CASES["a rescale"]
    whole = Record(observation=seen, decision=as_dry_run(seen, decide(seen, NOW)), is_dry_run=True)
    assert record.dumps(unpack(pack(whole))) == record.dumps(whole)


def test_records_in_a_row_share_what_they_agree_in():
    seen = observe(hpa(cpu(50)), 4, usage_of(pods(4), 50))
    again = msgspec.structs.replace(seen, pods=(*seen.pods,))
    first = pack(Record(observation=seen, decision=run(seen)))
    second = pack(Record(observation=again, decision=run(again)), first)
    assert second.base is first.base


def rounds(number: int, turns: int) -> list[Record]:
    """Return what the rounds of one HPA leave behind: each has other usage, and sees the status of the last."""
    seen = observe(hpa(cpu(50), high=200), number, usage_of(pods(number), 50))
    left: list[Record] = []
    for turn in range(turns):
        read = samples({pod.name: 48 + turn % 5 for pod in seen.pods})
        decision = decide(msgspec.structs.replace(seen, samples=(read,)), NOW + timedelta(seconds=turn))
        left.append(Record(observation=msgspec.structs.replace(seen, samples=(read,)), decision=decision))
        stored = msgspec.structs.replace(
            seen.hpa,
            metadata=msgspec.structs.replace(seen.hpa.metadata, resource_version=str(10**9 + turn)),
            status=decision.status,
        )
        seen = msgspec.structs.replace(seen, hpa=stored, memory=decision.memory)
    return left


def in_a_row(whole: list[Record]) -> list[PackedRecord]:
    packed: list[PackedRecord] = []
    for one in whole:
        packed.append(pack(one, packed[-1] if packed else None))
    return packed


def kept_bytes(number: int) -> int:
    """Return what ten packed records of so many pods take, without the pods and what was there before."""
    whole = rounds(number, 12)
    packed = in_a_row(whole[:2])
    gc.collect()
    tracemalloc.start()
    for one in whole[2:]:
        packed.append(pack(one, packed[-1]))
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return taken


def test_every_record_of_a_row_comes_back_to_the_byte():
    whole = rounds(4, 12)
    packed = in_a_row(whole)
    assert [record.dumps(unpack(one)) for one in packed] == [record.dumps(one) for one in whole]
    assert len({id(one.base) for one in packed}) <= 2  # the first saw no status yet


def test_a_round_more_adds_a_few_hundred_bytes():
    assert kept_bytes(10) / 10 < MOST_BYTES_PER_RECORD


def test_a_pod_more_adds_a_few_bytes_to_a_packed_record():
    assert (kept_bytes(110) - kept_bytes(10)) / 10 / 100 < MOST_BYTES_PER_POD
