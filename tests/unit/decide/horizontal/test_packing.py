"""Packed records: the same bytes as before, in a fraction of the memory."""

import gc
import tracemalloc

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import NOW, cpu, hpa, observe, pods, run, samples, usage_of
from tests.unit.decide.horizontal.test_record import CASES
from trimtab.decide.horizontal import PodSamples, Record, Sample, after_status, decide, record
from trimtab.decide.horizontal.dryrun import only_told
from trimtab.decide.horizontal.packing import pack, unpack

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
    whole = Record(observation=seen, decision=only_told(seen, decide(seen, NOW)), is_dry_run=True)
    assert record.dumps(unpack(pack(whole))) == record.dumps(whole)


def test_records_in_a_row_share_their_pods():
    seen = observe(hpa(cpu(50)), 4, usage_of(pods(4), 50))
    again = msgspec.structs.replace(seen, pods=(*seen.pods,))
    first = pack(Record(observation=seen, decision=run(seen)))
    second = pack(Record(observation=again, decision=run(again)), first)
    assert second.seen.pods is first.seen.pods


def kept_bytes(number: int) -> int:
    """Return what ten packed records of so many pods take, without the pods."""
    seen = observe(hpa(cpu(50)), number, usage_of(pods(number), 50))
    whole = [
        Record(
            observation=msgspec.structs.replace(
                seen, readings=(samples({pod.name: 40 + turn for pod in seen.pods}),)
            ),
            decision=run(seen),
        )
        for turn in range(10)
    ]
    gc.collect()
    tracemalloc.start()
    packed = [pack(whole[0])]
    for one in whole[1:]:
        packed.append(pack(one, packed[-1]))
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return taken


def test_a_pod_more_adds_a_few_bytes_to_a_packed_record():
    assert (kept_bytes(110) - kept_bytes(10)) / 10 / 100 < MOST_BYTES_PER_POD
