"""Reads are retried, writes are not; preconditions, fences and throttling hold (faults F13 to F18, F25)."""

import asyncio
import json
from contextlib import suppress

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, status
from tests.unit.cluster.fake_objects import FakeObjects
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.client import (
    Client,
    DeleteOptions,
    ListOptions,
    PatchType,
    Preconditions,
    retry_on_conflict,
)
from trimtab.cluster.discovery import Served
from trimtab.cluster.resource import DEPLOYMENTS, PODS
from trimtab.cluster.scale import read_scale, scale_of, write_scale
from trimtab.cluster.transport import Request
from trimtab.model.core.workloads import ReplicationController, Workload
from trimtab.model.json import wire
from trimtab.model.status import Status

WEB = Served("apps", "v1", "deployments", "Deployment", True, frozenset({"scale"}))
CONFIG_MAPS = PODS.untyped()


def run(scenario, **options):
    clock = VirtualClock()

    async def main() -> object:
        api = FakeObjects()
        return await scenario(api, Client(clock, AsgiTransport(api), seed=1, **options), clock)

    return clock.run(main())


def pod(name="a", **meta):
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "shop", **meta}}


def test_an_object_lives_from_create_to_delete():
    async def scenario(api, client, _):
        made = await client.create(PODS, pod(), "shop")
        assert made.metadata.resource_version == "101"
        assert (await client.get(PODS, "a", "shop")).metadata.uid == made.metadata.uid
        whole = await client.get(PODS.untyped(), "a", "shop")
        await client.update(PODS, "a", "shop", {**whole, "extra": 1})
        patched = await client.patch(PODS.untyped(), "a", "shop", {"metadata": {"labels": {"x": "y"}}})
        assert patched["extra"] == 1
        assert patched["metadata"]["labels"] == {"x": "y"}
        await client.delete(PODS, "a", "shop")
        with pytest.raises(errors.NotFound):
            await client.get(PODS, "a", "shop")

    run(scenario)


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.Unavailable),
        (504, "Timeout", errors.ServerTimeout),
        (418, "", errors.ApiError),
    ],
)
def test_a_status_becomes_the_error_of_its_meaning(code, reason, kind):
    async def scenario(api, client, _):
        details = {"name": "a", "kind": "pods", "causes": [{"field": "spec.x", "message": "no"}]}
        api.fault = lambda request: Answer(code, status(code, reason, "because", details=details))
        with pytest.raises(kind) as caught:
            await client.create(PODS, pod(), "shop")
        error = caught.value
        assert type(error) is kind
        assert (error.code, error.reason, error.message) == (code, reason, "because")
        assert error.details.causes[0].field == "spec.x"
        assert str(error) == f"creating pods shop: because ({code})"

    run(scenario)


def test_an_error_page_of_a_proxy_is_kept_short():
    async def scenario(api, client, _):
        api.fault = lambda request: Answer(403, b"<html>\n" + b"nope " * 1000)
        with pytest.raises(errors.Forbidden) as caught:
            await client.get(PODS, "a", "shop")
        assert len(str(caught.value)) < 300
        assert "\n" not in str(caught.value)

    run(scenario)


def test_f14_a_good_status_with_a_failure_inside_is_a_failure():
    async def scenario(api, client, _):
        api.fault = lambda request: Answer(200, status(500, "InternalError", "hidden"))
        with pytest.raises(errors.ServerError, match="hidden"):
            await client.get(PODS, "a", "shop")

    run(scenario)


def test_a_read_is_tried_four_times_and_a_write_once():
    async def scenario(api, client, _):
        api.fault = lambda request: Answer(503)
        with pytest.raises(errors.Unavailable):
            await client.get(PODS, "a", "shop")
        assert len(api.requests) == 4
        with pytest.raises(errors.Unavailable):
            await client.patch(PODS, "a", "shop", {})
        assert len(api.requests) == 5

    run(scenario)


def test_f18_a_write_whose_answer_is_lost_is_not_sent_again():
    async def scenario(api, client, _):
        await client.create(PODS, pod(), "shop")

        def swallow(request):
            api._serve(request)
            raise ConnectionResetError

        api.fault = swallow
        with pytest.raises(errors.TransportError, match="PATCH"):
            await client.patch(PODS, "a", "shop", {"extra": 1})
        assert len(api.writes) == 2

    run(scenario)


def test_f13_a_write_waits_out_a_429_and_is_not_lost():
    async def scenario(api, client, clock):
        answers = [
            Answer(429, status(429, "TooManyRequests"), headers=[("retry-after", "7")]) for _ in range(3)
        ]
        api.fault = lambda request: answers.pop() if answers else None
        await client.create(PODS, pod(), "shop")
        assert 21 <= clock.monotonic() <= 21 * 1.25
        assert len(api.requests) == 4

    run(scenario)


def test_f13_after_ten_429_the_caller_is_told():
    async def scenario(api, client, _):
        api.fault = lambda request: Answer(429, status(429, "TooManyRequests"))
        with pytest.raises(errors.TooManyRequests):
            await client.get(PODS, "a", "shop")
        assert len(api.requests) == 10

    run(scenario)


def test_f13_many_waiting_callers_send_one_request_per_retry_after():
    async def scenario(api, client, clock):
        await client.create(PODS, pod(), "shop")
        end = clock.monotonic() + 20
        throttle = Answer(429, status(429, "TooManyRequests"), headers=[("retry-after", "1")])
        api.fault = lambda request: throttle if clock.monotonic() < end else None
        await asyncio.gather(*(client.get(PODS, "a", "shop") for _ in range(3)))
        assert len(api.requests) <= 1 + 3 + 20 + 3

    run(scenario)


@pytest.mark.parametrize("hanging", ["reads", "watches"])
def test_f13_requests_that_hang_after_a_429_delay_no_write(hanging):
    """Each held the gate for 10 s after the server had recovered: the first scale came 18 s after 30 s of 429."""

    async def scenario(api, client, clock):
        await client.create(PODS, pod(), "shop")
        throttle = Answer(429, status(429, "TooManyRequests"), headers=[("retry-after", "1")])

        async def fault(request):
            if clock.monotonic() < 30:
                return throttle
            if "stuck" in request.path:
                await asyncio.Event().wait()
            return None

        async def hang():
            path = "/api/v1/namespaces/stuck/pods"
            if hanging == "reads":
                await client.read("reading", path, dict)
            async with client.sender.watch("watching", Request("GET", path, [("watch", "true")])):
                pass

        api.fault = fault
        with pytest.raises(errors.TooManyRequests):
            await client.get(PODS, "a", "shop")
        await clock.sleep(29 - clock.monotonic())
        stuck = [asyncio.ensure_future(hang()) for _ in range(3)]
        await asyncio.sleep(0)
        await client.patch(PODS, "a", "shop", {"metadata": {"labels": {"x": "y"}}})
        assert clock.monotonic() <= 35
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)

    run(scenario)


def test_f13_a_response_ends_the_wait_of_the_other_requests():
    async def scenario(api, client, clock):
        await client.create(PODS, pod(), "shop")
        throttle = Answer(429, status(429, "TooManyRequests"), headers=[("retry-after", "10")])

        async def fault(request):
            if request.method == "PATCH" and clock.monotonic() < 0.1:
                return throttle
            if request.path.endswith("/late"):
                await clock.sleep(0.5)
            return None

        api.fault = fault
        late = asyncio.ensure_future(client.read("reading", "/late", dict))
        await asyncio.sleep(0)
        throttled = asyncio.ensure_future(client.patch(PODS, "a", "shop", {"extra": 1}))
        await clock.sleep(0.1)
        await client.get(PODS, "a", "shop")
        assert clock.monotonic() == pytest.approx(0.5)
        await throttled
        assert 10 <= clock.monotonic() <= 12.5
        with pytest.raises(errors.NotFound):
            await late

    run(scenario)


@pytest.mark.parametrize("throttled", [1, 20])
@pytest.mark.parametrize("retry_after", ["1", "30"])
def test_f13_a_webhook_that_throttles_one_namespace_delays_the_others_by_a_second(throttled, retry_after):
    """One scale that was answered 429 with Retry-After 30 delayed those of other namespaces by 11 to 22 s."""

    async def scenario(api, client, clock):
        await client.create(PODS, pod(), "shop")
        throttle = Answer(429, status(429, "TooManyRequests"), headers=[("retry-after", retry_after)])
        api.fault = lambda request: throttle if "/namespaces/noisy/" in request.path else None

        async def keep_writing(name):
            while True:
                with suppress(errors.TooManyRequests):
                    await client.patch(PODS, name, "noisy", {"extra": 1})

        noisy = [asyncio.ensure_future(keep_writing(f"web{number}")) for number in range(throttled)]
        delays = []
        for second in range(60):
            await clock.sleep(1.0)
            began = clock.monotonic()
            await client.patch(PODS, "a", "shop", {"extra": second})
            delays.append(clock.monotonic() - began)
        assert max(delays) <= 1.01
        for task in noisy:
            task.cancel()
        await asyncio.gather(*noisy, return_exceptions=True)

    run(scenario)


@pytest.mark.parametrize(("retry_after", "most"), [("1", 60), ("10", 10)])
def test_f13_an_overloaded_server_gets_one_request_per_retry_after(retry_after, most):
    """After the first round, which leaves before anyone knows, and two more that tell an overload."""

    async def scenario(api, client, clock):
        throttle = Answer(429, status(429, "TooManyRequests"), headers=[("retry-after", retry_after)])
        api.fault = lambda request: throttle

        async def keep_reading(name):
            while True:
                with suppress(errors.TooManyRequests):
                    await client.get(PODS, name, "shop")

        first = [asyncio.ensure_future(keep_reading(f"web{number}")) for number in range(20)]
        await clock.sleep(0.5)
        later = [asyncio.ensure_future(keep_reading(f"api{number}")) for number in range(20)]
        await clock.sleep(60.0)
        assert len(api.requests) <= 20 + most
        for task in first + later:
            task.cancel()
        await asyncio.gather(*first, *later, return_exceptions=True)

    run(scenario)


def test_a_disruption_budget_is_answered_at_once_and_holds_nobody_back():
    async def scenario(api, client, clock):
        cause = {"causes": [{"reason": "DisruptionBudget"}], "retryAfterSeconds": 10}
        api.fault = lambda request: (
            Answer(429, status(429, "TooManyRequests", details=cause)) if "eviction" in request.path else None
        )
        with pytest.raises(errors.TooManyRequests) as caught:
            await client.evict("a", "shop", preconditions=Preconditions(uid="u", resource_version="5"))
        assert caught.value.retry_after == 10
        await client.create(PODS, pod(), "shop")
        assert clock.monotonic() == 0
        sent = json.loads(api.requests[0].body)
        assert sent["deleteOptions"] == {"preconditions": {"uid": "u", "resourceVersion": "5"}}

    run(scenario)


def test_a_rate_limit_spreads_requests():
    async def scenario(api, client, clock):
        api.fault = lambda request: Answer(200, pod())
        await asyncio.gather(*(client.get(PODS, "a", "shop") for _ in range(25)))
        assert clock.monotonic() == pytest.approx(4.0)

    run(scenario, qps=5, burst=5)


@pytest.mark.parametrize(
    ("how", "body", "want"),
    [
        (PatchType.MERGE, {"x": 1}, {"x": 1, "metadata": {"uid": "u", "resourceVersion": "5"}}),
        (
            PatchType.STRATEGIC,
            {"metadata": {"labels": {}}},
            {"metadata": {"labels": {}, "uid": "u", "resourceVersion": "5"}},
        ),
        (
            PatchType.JSON,
            [{"op": "remove", "path": "/x"}],
            [
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "add", "path": "/metadata/resourceVersion", "value": "5"},
                {"op": "remove", "path": "/x"},
            ],
        ),
    ],
)
def test_preconditions_go_into_the_patch(how, body, want):
    async def scenario(api, client, _):
        api.fault = lambda request: Answer(200, pod())
        await client.patch(PODS, "a", "shop", body, how=how, preconditions=Preconditions("u", "5"))
        assert json.loads(api.requests[0].body) == want
        assert api.requests[0].headers["content-type"] == how.value
        assert api.requests[0].query["fieldManager"] == "trimtab"

    run(scenario)


def test_delete_with_a_precondition_spares_the_successor():
    async def scenario(api, client, _):
        await client.create(PODS, pod(), "shop")
        with pytest.raises(errors.Conflict):
            await client.delete(PODS, "a", "shop", options=DeleteOptions(Preconditions(uid="someone-else")))
        assert len(api.by_path) == 1

    run(scenario)


def test_resize_goes_to_its_subresource():
    async def scenario(api, client, _):
        api.fault = lambda request: Answer(200, pod())
        await client.resize("a", "shop", {"containers": []}, preconditions=Preconditions(uid="u"))
        assert api.requests[0].path == "/api/v1/namespaces/shop/pods/a/resize"
        assert api.requests[0].headers["content-type"] == PatchType.STRATEGIC.value

    run(scenario)


def test_f15_a_conflict_reads_and_decides_again():
    async def scenario(api, client, _):
        await client.create(
            DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 5}}, "shop"
        )
        reads = []

        async def step():
            scale = await read_scale(client, WEB, "web", "shop")
            reads.append(scale.spec.replicas)
            if len(reads) == 1:  # a user changes the replicas in between
                await client.patch(DEPLOYMENTS, "web", "shop", {"spec": {"replicas": 30}})
            expected = Preconditions(scale.metadata.uid, scale.metadata.resource_version)
            return await write_scale(
                client, WEB, "web", "shop", scale.spec.replicas * 2, preconditions=expected
            )

        assert (await retry_on_conflict(step)).spec.replicas == 60
        assert reads == [5, 30]

    run(scenario)


def test_f15_a_conflict_that_stays_is_raised():
    async def scenario(api, client, _):
        tries = []

        async def step():
            tries.append(1)
            raise errors.Conflict("x", Status(code=409))

        with pytest.raises(errors.Conflict):
            await retry_on_conflict(step)
        assert len(tries) == 5

    run(scenario)


class Door:
    def __init__(self, left):
        self.left = left

    def may_write(self):
        return self.left > 0

    def time_left(self):
        return self.left


def test_f25_a_closed_fence_lets_reads_pass_and_no_write():
    async def scenario(api, client, _):
        door = Door(5.0)
        fenced = client.fenced(door)
        await fenced.create(PODS, pod(), "shop")
        door.left = 0.0
        await fenced.get(PODS, "a", "shop")
        sent = len(api.requests)
        for write in (
            lambda: fenced.create(PODS, pod("b"), "shop"),
            lambda: fenced.update(PODS, "a", "shop", pod()),
            lambda: fenced.patch(PODS, "a", "shop", {}),
            lambda: fenced.delete(PODS, "a", "shop"),
            lambda: fenced.evict("a", "shop"),
            lambda: fenced.resize("a", "shop", {}),
        ):
            with pytest.raises(errors.Fenced):
                await write()
        assert len(api.requests) == sent
        await client.delete(PODS, "a", "shop")

    run(scenario)


def test_f25_a_write_that_waited_for_its_turn_is_checked_when_it_leaves():
    async def scenario(api, client, clock):
        door = Door(5.0)
        throttle = [Answer(429, status(429, "TooManyRequests"), headers=[("retry-after", "3")])]
        api.fault = lambda request: throttle.pop() if throttle else None
        write = asyncio.create_task(client.fenced(door).create(PODS, pod(), "shop"))
        await clock.sleep(1)
        door.left = 0.0
        with pytest.raises(errors.Fenced):
            await write
        assert not api.by_path

    run(scenario)


def test_f25_a_slow_write_is_given_up_before_the_lease_may_be_lost():
    async def scenario(api, client, clock):
        api.fault = lambda request: Answer(200, complete=False, then=asyncio.sleep(1000))
        with pytest.raises(errors.TransportError):
            await client.fenced(Door(4.0)).patch(PODS, "a", "shop", {})
        assert clock.monotonic() == pytest.approx(4.0)

    run(scenario)


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "%2e%2e", "../../secrets/x"])
def test_a_name_cannot_climb_out_of_its_path(name):
    with pytest.raises(ValueError, match="cannot be the name"):
        PODS.path("shop", name)


def test_a_namespaced_object_needs_its_namespace():
    with pytest.raises(ValueError, match="needs a namespace"):
        PODS.path(None, "a")


def test_a_list_joins_its_pages():
    async def scenario(api, client, _):
        def pages(request):
            token = request.query.get("continue", "")
            number = int(token or 0)
            more = str(number + 1) if number < 2 else ""
            return Answer(
                200, {"metadata": {"resourceVersion": "9", "continue": more}, "items": [pod(f"p{number}")]}
            )

        api.fault = pages
        listing = await client.list(PODS, ListOptions("shop"))
        assert [one.name for one in listing.items] == ["p0", "p1", "p2"]
        assert listing.resource_version == "9"

    run(scenario)


def test_a_list_of_null_is_empty():
    async def scenario(api, client, _):
        api.fault = lambda request: Answer(200, {"metadata": {"resourceVersion": "9"}, "items": None})
        assert (await client.list(PODS)).items == ()

    run(scenario)


@pytest.mark.parametrize(
    ("thing", "want"),
    [
        pytest.param(
            wire.convert(
                {
                    "metadata": {"name": "web", "uid": "u", "resourceVersion": "3"},
                    "spec": {"replicas": 4, "selector": {"matchLabels": {"b": "1", "a": "2"}}},
                    "status": {"replicas": 3},
                },
                Workload,
            ),
            (4, 3, "a=2,b=1"),
            id="a Deployment",
        ),
        pytest.param(
            wire.convert({"spec": {"selector": {}}}, Workload), (1, 0, ""), id="replicas default to one"
        ),
        pytest.param(
            wire.convert({"spec": {"replicas": 0, "selector": {"b": "1", "a": "2"}}}, ReplicationController),
            (0, 0, "a=2,b=1"),
            id="a ReplicationController",
        ),
    ],
)
def test_a_cached_object_says_what_its_scale_would(thing, want):
    scale = scale_of(thing)
    assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == want
    assert scale.metadata == thing.metadata
