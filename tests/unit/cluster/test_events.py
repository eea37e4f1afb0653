"""Events are counted instead of repeated, bounded, and never in anyone's way."""

import asyncio
import json

import msgspec
import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, status
from tests.unit.cluster.fake_objects import FakeObjects
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.events import EventBroadcaster, EventLimits
from trimtab.model.core.objects import ObjectReference

WEB = ObjectReference(
    kind="HorizontalPodAutoscaler", api_version="autoscaling/v2", namespace="shop", name="web", uid="u1"
)


def run(scenario, **limits):
    clock = VirtualClock()

    async def main() -> None:
        api = FakeObjects()
        client = Client(clock, AsgiTransport(api), seed=1)
        broadcaster = EventBroadcaster(client, "host_1", limits=EventLimits(**limits))
        task = asyncio.create_task(broadcaster.run())
        await scenario(api, broadcaster.recorder("trimtab.dev/horizontal"), clock)
        task.cancel()

    clock.run(main())


def sent(api):
    return [json.loads(request.body) for request in api.writes]


@pytest.mark.parametrize("code", [500, 503, 429])
def test_events_wait_while_the_server_fails_and_are_written_when_it_recovers(code):
    """Each event whose first write failed was sent again in every round: 27 requests per second of nine HPAs."""

    async def scenario(api, recorder, clock):
        api.fault = lambda request: Answer(code, status(code)) if clock.monotonic() < 60 else None
        for _ in range(60):
            for name in ("a", "b", "c"):
                recorder.event(WEB, "Warning", "FailedGetMetrics", name)
            await clock.sleep(1)
        assert len(api.requests) <= 60 if code == 429 else len(api.requests) <= 8
        await clock.sleep(60)
        assert recorder.broadcaster.dropped == 0
        assert len(api.by_path) == 3

    run(scenario)


def test_a_rejected_event_is_not_sent_again_in_every_round():
    async def scenario(api, recorder, clock):
        api.fault = lambda request: Answer(403, status(403, "Forbidden"))
        for _ in range(60):
            recorder.event(WEB, "Warning", "FailedGetMetrics", "a")
            await clock.sleep(1)
        assert len(api.requests) <= 3

    run(scenario)


def test_an_event_has_the_fields_of_its_api():
    async def scenario(api, recorder, clock):
        recorder.event(WEB, "Normal", "SuccessfulRescale", "New size: 3", action="Rescale")
        await clock.sleep(1)
        (event,) = sent(api)
        assert api.writes[0].path == "/apis/events.k8s.io/v1/namespaces/shop/events"
        assert event.pop("metadata")["name"].startswith("web.")
        assert event == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "type": "Normal",
            "reason": "SuccessfulRescale",
            "action": "Rescale",
            "note": "New size: 3",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "trimtab.dev/horizontal",
            "reportingInstance": "host_1",
            "regarding": {
                "kind": "HorizontalPodAutoscaler",
                "apiVersion": "autoscaling/v2",
                "namespace": "shop",
                "name": "web",
                "uid": "u1",
            },
        }

    run(scenario)


def test_a_repeated_event_becomes_a_series_written_now_and_then():
    async def scenario(api, recorder, clock):
        for _ in range(120):
            recorder.event(WEB, "Warning", "FailedGetMetric", "no data")
            await clock.sleep(1)
        await clock.sleep(40)
        events = sent(api)
        assert len(events) <= 7
        assert events[-1] == {"series": {"count": 120, "lastObservedTime": "2026-01-01T00:01:59.000000Z"}}
        assert len({request.path for request in api.writes}) == 2

    run(scenario)


def test_an_event_about_a_newer_version_of_the_object_is_a_repetition():
    """RH-M8: each status write makes a new version; 40 syncs made 26 Events, none counted, and then silence."""

    async def scenario(api, recorder, clock):
        for version in range(40):
            newer = msgspec.structs.replace(WEB, resource_version=str(version))
            recorder.event(newer, "Warning", "FailedGetExternalMetric", "no data")
            await clock.sleep(15)
        recorder.event(newer, "Normal", "SuccessfulRescale", "New size: 8")
        await clock.sleep(40)
        created = [json.loads(request.body) for request in api.writes if request.method == "POST"]
        assert [event["reason"] for event in created] == ["FailedGetExternalMetric", "SuccessfulRescale"]
        assert created[0]["regarding"]["resourceVersion"] == "0"
        assert api.by_path[_path(api, "FailedGetExternalMetric")]["series"]["count"] == 40
        assert recorder.broadcaster.dropped == 0

    run(scenario)


@pytest.mark.parametrize(
    "other", [{"uid": "u2"}, {"api_version": "autoscaling.trimtab.dev/v2"}, {"name": "mail"}]
)
def test_the_same_words_about_another_object_are_another_event(other):
    """An object recreated under its name, and a native and an own HPA of one name, are told and limited apart."""

    async def scenario(api, recorder, clock):
        for about in (WEB, msgspec.structs.replace(WEB, **other)):
            for number in range(25):
                recorder.event(about, "Warning", f"X{number}", "y")
        await clock.sleep(1)
        assert [request.method for request in api.writes] == ["POST"] * 50
        assert recorder.broadcaster.dropped == 0

    run(scenario)


def _path(api, reason):
    (found,) = [path for path, event in api.by_path.items() if event["reason"] == reason]
    return found


def test_after_a_long_pause_it_is_a_new_event():
    async def scenario(api, recorder, clock):
        recorder.event(WEB, "Warning", "X", "y")
        await clock.sleep(400)
        recorder.event(WEB, "Warning", "X", "y")
        await clock.sleep(1)
        assert [request.method for request in api.writes] == ["POST", "POST"]

    run(scenario)


def test_one_talkative_object_is_silenced_and_others_are_not():
    async def scenario(api, recorder, clock):
        for number in range(100):
            recorder.event(WEB, "Normal", f"Chatter{number}", "again")
        recorder.event(ObjectReference(kind="Pod", namespace="shop", name="other"), "Normal", "X", "y")
        await clock.sleep(1)
        assert len(api.writes) == 26
        assert recorder.broadcaster.dropped == 75
        await clock.sleep(300)
        recorder.event(WEB, "Normal", "Chatter", "later")
        await clock.sleep(1)
        assert len(api.writes) == 27

    run(scenario)


def test_the_queue_is_bounded_when_the_server_is_away():
    async def scenario(api, recorder, clock):
        api.fault = lambda request: Answer(200, complete=False, then=asyncio.sleep(10_000))
        for number in range(100):
            recorder.event(
                ObjectReference(kind="Pod", namespace="shop", name=f"p{number}"), "Normal", "X", "y"
            )
        assert recorder.broadcaster.dropped == 90
        await clock.sleep(1000)
        assert recorder.broadcaster.dropped == 90, "the others wait for the server"

    run(scenario, waiting=10)


def test_without_the_new_group_the_core_group_is_used_from_then_on():
    async def scenario(api, recorder, clock):
        api.fault = lambda request: (
            Answer(404, b"404 page not found") if "events.k8s.io" in request.path else None
        )
        recorder.event(WEB, "Normal", "X", "y")
        await clock.sleep(1)
        recorder.event(WEB, "Normal", "X", "y")
        recorder.event(WEB, "Normal", "X", "z")
        await clock.sleep(60)
        assert [request.path.split("/")[1] for request in api.requests] == ["apis", "api", "api", "api"]
        first, _, count = sent(api)
        assert first["involvedObject"]["name"] == "web"
        assert first["message"] == "y"
        assert count == {"count": 2, "lastTimestamp": "2026-01-01T00:00:01Z"}

    run(scenario)


def test_a_missing_namespace_is_no_reason_to_leave_the_group():
    async def scenario(api, recorder, clock):
        missing = status(404, "NotFound", 'namespaces "shop" not found', details={"kind": "namespaces"})
        api.fault = lambda request: Answer(404, missing)
        recorder.event(WEB, "Normal", "X", "y")
        await clock.sleep(1)
        assert len(api.requests) == 1
        assert recorder.broadcaster.dropped == 1

    run(scenario)


def test_a_series_whose_event_expired_starts_anew():
    async def scenario(api, recorder, clock):
        recorder.event(WEB, "Normal", "X", "y")
        await clock.sleep(100)
        api.by_path.clear()
        recorder.event(WEB, "Normal", "X", "y")
        await clock.sleep(1)
        assert [request.method for request in api.requests] == ["POST", "PATCH", "POST"]

    run(scenario)


def test_a_long_note_is_cut_and_strange_objects_do_no_harm():
    async def scenario(api, recorder, clock):
        recorder.event(WEB, "Normal", "X", "ä" * 2000)
        recorder.event(ObjectReference(kind="Node", name="n"), "Normal", "X", "y")
        recorder.event(ObjectReference(kind="Pod", namespace="../x", name="n"), "Normal", "X", "y")
        await clock.sleep(1)
        long, node = sent(api)
        assert len(long["note"].encode()) <= 1024
        assert node["metadata"]["namespace"] == "default"
        assert recorder.broadcaster.dropped == 1

    run(scenario)
