"""Records: an observation and its decision survive JSON, and deciding again gives the same bytes."""

import json

import pytest

from tests.unit.decide.horizontal.builders import (
    NOW,
    average,
    cpu,
    external,
    hpa,
    marked,
    observe,
    pods,
    run,
    series,
    tolerant,
    unreadable,
    usage_of,
)
from tests.unit.decide.horizontal.explain.test_reason import STANDING_STILL
from trimtab.decide.horizontal import (
    Record,
    Rules,
    after_status,
    decide,
    replay,
)
from trimtab.decide.horizontal.records import record

CASES = {str(reason): seen for reason, seen in STANDING_STILL.items()} | {
    "a rescale": observe(hpa(cpu(50)), 4, usage_of(pods(4), 90)),
    "a rescale in the kubernetes setting": observe(
        hpa(cpu(50)), 4, usage_of(pods(4), 90), rules=Rules.KUBERNETES_1_36
    ),
    "no replicas to divide by": observe(
        hpa(external(average(10)), low=0, status=marked()), 0, series(0), pods=()
    ),
    "a value beyond 64 bits": observe(hpa(external(average(10))), 4, series(9e18, 9e18)),
    "an endless tolerance": observe(hpa(external(average(10)), behavior=tolerant(up="1e400")), 4, series(90)),
    "a partial failure": observe(hpa(cpu(50), external(average(10))), 4, unreadable(), series(90)),
}


@pytest.mark.parametrize("name", CASES)
def test_deciding_again_from_a_record_gives_the_same_bytes(name):
    seen = CASES[name]
    written = record.dumps(Record(observation=seen, decision=run(seen)))
    read = record.loads(written)
    assert record.dumps(read) == written
    assert record.dumps(replay(read)) == written


@pytest.mark.parametrize(
    ("scale_error", "status_error"), [("conflict", None), (None, "conflict"), ("a", "b")]
)
def test_failed_writes_are_part_of_the_record(scale_error, status_error):
    seen = CASES["a rescale"]
    decision = run(seen, error=scale_error)
    if status_error:
        decision = after_status(seen, decision, status_error)
    written = record.dumps(
        Record(observation=seen, decision=decision, scale_error=scale_error, status_error=status_error)
    )
    assert record.dumps(replay(record.loads(written))) == written


def test_a_record_of_another_version_is_refused():
    data = json.loads(record.dumps(Record(observation=observe(), decision=decide(observe(), NOW))))
    with pytest.raises(record.UnknownRecordError, match="version 99"):
        record.loads(json.dumps(data | {"version": 99}))


def test_a_record_of_ten_pods_is_a_few_kilobytes():
    seen = observe(hpa(cpu(50)), 10, usage_of(pods(10), 50))
    assert len(record.dumps(Record(observation=seen, decision=run(seen)))) < 6000


def test_a_failed_status_write_is_the_error_of_a_finished_decision():
    seen = CASES["a rescale"]
    decision = after_status(seen, run(seen), "the object has been modified")
    assert decision.error == "failed to update status for web: the object has been modified"
    assert decision.events[-1].reason == "FailedUpdateStatus"


def test_a_failed_status_write_comes_before_the_last_event_of_a_failed_computation():
    seen = observe(hpa(cpu(50)), 4, unreadable())
    decision = after_status(seen, run(seen), "the object has been modified")
    assert [one.reason for one in decision.events][-2:] == [
        "FailedUpdateStatus",
        "FailedComputeMetricsReplicas",
    ]
    assert decision.error.startswith("failed to compute desired number of replicas")
