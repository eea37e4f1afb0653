"""The ring shows every record as it was, however it keeps it."""

from math import inf

import msgspec
import pytest

from tests.unit.decide.horizontal.builders import T, cpu, hpa, observe, pods, run, usage_of
from tests.unit.operator.horizontal.fakes import hpa_state
from trimtab.decide.horizontal import Record
from trimtab.decide.horizontal.observation.samples import FetchFailure
from trimtab.decide.horizontal.records import record
from trimtab.metrics.queries import PodUsage
from trimtab.operator.horizontal.hpa_state import RecordHistory


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


@pytest.mark.parametrize("place", [0, 1])
def test_queries_are_kept_for_their_spec_and_selector_unless_one_failed(place):
    """The kind of the one that failed may be installed later."""
    state = hpa_state()
    spec, usage = state.hpa.spec, PodUsage("shop")
    state.keep_query_per_metric(spec, "app=web", (usage,))
    assert state.query_per_metric(spec, "app=web") == (usage,)
    assert state.query_per_metric(spec, "app=other") is None
    assert state.query_per_metric(msgspec.structs.replace(spec), "app=web") is None
    failed: list[PodUsage | FetchFailure] = [usage, usage]
    failed[place] = FetchFailure(message="no such kind")
    state.keep_query_per_metric(spec, "app=web", tuple(failed))
    assert state.query_per_metric(spec, "app=web") is None


def test_a_status_that_fails_is_tried_again_later_and_later_and_at_once_after_a_success():
    state = hpa_state()
    delays = []
    for _ in range(7):
        state.note_status_failure(100.0)
        delays.append(state.next_status_at - 100.0)
    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    state.note_status_written()
    assert state.next_status_at < 0
    state.note_status_failure(100.0)
    assert state.next_status_at == 101.0


def test_a_warning_is_new_once_and_again_after_it_changed():
    state = hpa_state()
    assert state.new_warnings("a", "", "") == ("a", "", "")
    assert state.new_warnings("a", "b", "") == ("", "b", "")
    assert state.new_warnings("c", "b", "d") == ("c", "", "d")
    assert state.new_warnings("c", "b", "d") == ("", "", "")
    assert state.new_warnings("", "", "") == ("", "", "")
    assert state.new_warnings("c", "b", "d") == ("c", "b", "d")


def test_a_request_that_was_replaced_does_not_finish_the_newer_one():
    state = hpa_state()
    first = state.start_reconcile(0.0)
    second = state.start_reconcile(1.0)
    first.finish(1.0)
    assert state.is_busy
    second.finish(2.0)
    assert not state.is_busy


def test_an_edge_makes_an_hpa_due_once_and_survives_earlier_syncs():
    """A sync in which the decision stood forgot when its window would end."""
    state = hpa_state()
    state.edge_at = 101.0
    assert [state.start_reconcile(at).hpa_state.edge_at for at in (100.0, 101.0)] == [101.0, inf]
