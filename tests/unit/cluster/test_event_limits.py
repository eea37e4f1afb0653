"""Limits of events: what is cut, counted, dropped and forgotten, in virtual time."""

import json
from itertools import pairwise

import msgspec
import pytest

from tests.unit.cluster.fake_api import Answer, status
from tests.unit.cluster.test_events import WEB, run, sent
from trimtab.cluster.events import EventLimits
from trimtab.model.core.objects import ObjectReference


def pod(number):
    return ObjectReference(kind="Pod", namespace="shop", name=f"p{number}", uid=f"u{number}")


def test_the_limits_are_client_gos():
    limits = EventLimits()
    assert (limits.waiting, limits.remembered) == (1000, 4096)
    assert (limits.series_gap, limits.series_pace) == (360.0, 30.0)
    assert (limits.burst, limits.refill) == (25, 300.0)
    assert (limits.similar, limits.similar_gap) == (10, 600.0)


def test_from_the_tenth_note_on_events_of_one_reason_are_one_series():
    """An event with a new note in every sync used up the object's allowance, and a rescale was not reported."""

    async def scenario(api, recorder, clock):
        for number in range(40):
            recorder.event(WEB, "Warning", "FailedGetMetrics", f"request {number} failed")
            await clock.sleep(15)
        recorder.event(WEB, "Normal", "SuccessfulRescale", "New size: 3")
        await clock.sleep(1)
        created = [json.loads(request.body) for request in api.writes if request.method == "POST"]
        notes = [event["note"] for event in created]
        assert notes[:9] == [f"request {number} failed" for number in range(9)]
        assert notes[9:] == ["(combined from similar events): request 9 failed", "New size: 3"]
        assert sent(api)[-2]["series"]["count"] > 25
        assert recorder.broadcaster.dropped == 0

    run(scenario)


@pytest.mark.parametrize(("pause", "is_combined"), [(600, True), (601, False)])
def test_after_ten_minutes_without_a_similar_event_none_is_combined(pause, is_combined):
    async def scenario(api, recorder, clock):
        for number in range(12):
            recorder.event(WEB, "Warning", "FailedGetMetrics", f"request {number} failed")
        await clock.sleep(pause)
        recorder.event(WEB, "Warning", "FailedGetMetrics", "request 12 failed")
        await clock.sleep(1)
        assert sent(api)[-1]["note"].startswith("(combined") is is_combined

    run(scenario)


@pytest.mark.parametrize(
    "other",
    [
        {"about": pod(1)},
        {"kind": "Normal"},
        {"reason": "FailedGetScale"},
    ],
)
def test_only_events_of_one_object_type_and_reason_are_similar(other):
    async def scenario(api, recorder, clock):
        event = {"about": WEB, "kind": "Warning", "reason": "FailedGetMetrics"}
        for number in range(12):
            recorder.event(**event, note=f"request {number} failed")
        recorder.event(**(event | other), note="request 12 failed")
        await clock.sleep(1)
        assert sent(api)[-1]["note"] == "request 12 failed"

    run(scenario)


@pytest.mark.parametrize(
    ("note", "want"),
    [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1021 + "..."),
        ("ä" * 512, "ä" * 512),
        ("ä" * 513, "ä" * 510 + "..."),
    ],
)
def test_a_note_is_cut_to_1024_bytes(note, want):
    async def scenario(api, recorder, clock):
        recorder.event(WEB, "Normal", "X", note)
        await clock.sleep(1)
        assert sent(api)[0]["note"] == want

    run(scenario)


def test_words_are_cut_to_128_bytes_and_the_reason_is_the_default_action():
    async def scenario(api, recorder, clock):
        recorder.event(WEB, "Normal", "R" * 200, "y")
        await clock.sleep(1)
        (event,) = sent(api)
        assert event["reason"] == event["action"] == "R" * 125 + "..."

    run(scenario)


def test_an_event_of_the_core_group_has_the_older_fields():
    async def scenario(api, recorder, clock):
        api.fault = lambda request: Answer(404) if "events.k8s.io" in request.path else None
        recorder.event(WEB, "Warning", "X", "y", action="Z")
        await clock.sleep(1)
        (event,) = sent(api)
        metadata = event.pop("metadata")
        assert metadata["namespace"] == "shop"
        assert event.pop("involvedObject")["uid"] == "u1"
        assert event == {
            "apiVersion": "v1",
            "kind": "Event",
            "type": "Warning",
            "reason": "X",
            "action": "Z",
            "message": "y",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:00Z",
            "count": 1,
            "reportingComponent": "trimtab.dev/horizontal",
            "reportingInstance": "host_1",
            "source": {"component": "trimtab.dev/horizontal"},
        }

    run(scenario)


@pytest.mark.parametrize(("pause", "methods"), [(360, ["POST", "PATCH"]), (361, ["POST", "POST"])])
def test_a_series_goes_on_for_six_minutes(pause, methods):
    async def scenario(api, recorder, clock):
        recorder.event(WEB, "Normal", "X", "y")
        await clock.sleep(pause)
        recorder.event(WEB, "Normal", "X", "y")
        await clock.sleep(60)
        assert [request.method for request in api.writes] == methods

    run(scenario)


def test_the_count_of_a_series_is_written_every_half_minute():
    async def scenario(api, recorder, clock):
        times = []
        api.fault = lambda request: times.append(clock.monotonic())
        for _ in range(100):
            recorder.event(WEB, "Normal", "X", "y")
            await clock.sleep(1)
        assert times == [0, 30, 60, 90]
        counts = [event["series"]["count"] for event in sent(api)[1:]]
        assert counts == [31, 61, 91]

    run(scenario)


def test_an_object_may_have_one_more_event_every_five_minutes():
    async def scenario(api, recorder, clock):
        for number in range(30):
            recorder.event(WEB, "Normal", f"X{number}", "y")
        dropped = [recorder.broadcaster.dropped]
        for seconds in (299, 1, 1, 599):
            await clock.sleep(seconds)
            recorder.event(WEB, "Normal", f"After{clock.monotonic()}", "y")
            dropped.append(recorder.broadcaster.dropped)
        assert dropped == [5, 6, 6, 7, 7]

    run(scenario)


def test_an_object_that_was_quiet_for_long_has_its_burst_again_and_no_more():
    async def scenario(api, recorder, clock):
        for round_number in range(2):
            for number in range(30):
                recorder.event(WEB, "Normal", f"X{round_number}/{number}", "y")
            await clock.sleep(100 * 300)
        assert recorder.broadcaster.dropped == 10

    run(scenario)


def test_only_the_latest_series_are_remembered():
    async def scenario(api, recorder, clock):
        for number in range(6):
            recorder.event(pod(number), "Normal", "X", "y")
        await clock.sleep(60)
        for number in (5, 0):
            recorder.event(pod(number), "Normal", "X", "y")
        await clock.sleep(60)
        assert [request.method for request in api.writes] == ["POST"] * 6 + ["PATCH", "POST"]
        assert len(recorder.broadcaster._series) <= 4
        assert len(recorder.broadcaster._allowances) <= 4

    run(scenario, remembered=4)


def test_series_and_allowances_of_the_past_are_forgotten():
    async def scenario(api, recorder, clock):
        for number in range(6):
            recorder.event(pod(number), "Normal", "X", "y")
        await clock.sleep(8000)
        recorder.event(WEB, "Normal", "X", "y")
        assert len(recorder.broadcaster._series) == 1
        assert len(recorder.broadcaster._allowances) == 1

    run(scenario)


def test_a_flush_writes_what_waits_and_counts_what_fails():
    async def scenario(api, recorder, clock):
        recorder.event(WEB, "Normal", "X", "y")
        await clock.sleep(1)
        recorder.event(WEB, "Normal", "X", "y")  # not due before half a minute
        recorder.event(pod(1), "Normal", "X", "y")
        await recorder.broadcaster.flush()
        assert [request.method for request in api.writes] == ["POST", "PATCH", "POST"]
        api.fault = lambda request: Answer(500, status(500))
        recorder.event(pod(2), "Normal", "X", "y")
        await recorder.broadcaster.flush()
        assert recorder.broadcaster.dropped == 1

    run(scenario)


def test_events_of_one_moment_have_different_names():
    async def scenario(api, recorder, clock):
        long = msgspec.structs.replace(WEB, name="n" * 253)
        for number in range(20):
            recorder.event(long, "Normal", f"X{number}", "y")
        await clock.sleep(1)
        names = [json.loads(request.body)["metadata"]["name"] for request in api.writes]
        assert len(set(names)) == 20
        assert max(map(len, names)) <= 253

    run(scenario)


def test_while_the_server_fails_one_event_is_tried_at_growing_distances():
    async def scenario(api, recorder, clock):
        times = []

        def fault(request):
            times.append(clock.monotonic())
            return Answer(500, status(500))

        api.fault = fault
        for number in range(5):
            recorder.event(pod(number), "Normal", "X", "y")
        await clock.sleep(100)
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert 1 <= pauses[0] <= 2
        assert pauses[3] > 4
        assert max(pauses) <= 60
        failing = len(times)
        api.fault = None
        await clock.sleep(61)
        assert len(api.by_path) == 5
        assert recorder.broadcaster.dropped == 0
        assert failing <= 12

    run(scenario)
