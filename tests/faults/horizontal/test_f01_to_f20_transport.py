"""Faults of transport and watch, seen from a workload: it is scaled in the end, by what the server really holds."""

import json

import pytest

from tests.faults.horizontal.scene import becomes, first, held, is_watch, lists, load, queue, working
from tests.scenarios.horizontal.stage import Stage
from tests.support.clock import in_virtual_time
from tests.support.transport import failure, status
from trimtab.cluster.errors import TransportError, Unreachable
from trimtab.cluster.resource import DEPLOYMENTS, STATEFUL_SETS
from trimtab.cluster.transport import Request, Response

HPAS = "horizontalpodautoscalers"


def cutting(times):
    left = [times]

    def alter(line):
        if left[0] > 0:
            left[0] -= 1
            raise TransportError("cut in the middle of an event")
        return [line]

    return alter


@in_virtual_time
async def test_f01_a_watch_cut_in_an_event_is_taken_up_again(stage):
    await held(stage)
    async with working(stage) as actor:
        await becomes(stage, 5)
        alter = cutting(1)
        actor.line.alter = lambda _: alter
        await stage.pass_time(60)
        await stage.edit_hpa("web", minReplicas=7)
        assert await becomes(stage, 7) <= 2.0
        assert lists(actor, HPAS) == 1


@in_virtual_time
async def test_f02_watches_that_end_at_once_do_not_become_a_storm(stage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(60)
        actor.line.answer = lambda request: (
            Response(200, {"content-type": "application/json"}, b"") if is_watch(request) else None
        )
        before, known = len(actor.line.sent), lists(actor, HPAS)
        await stage.pass_time(120)
        watches = [one for one in actor.line.sent[before:] if is_watch(one, HPAS)]
        assert len(watches) < 15
        assert lists(actor, HPAS) == known
        actor.line.answer = lambda _: None
        load(stage, 900)
        await becomes(stage, 9, within=60)


@pytest.mark.parametrize("as_event", [False, True], ids=["as a status", "as an ERROR event"])
@in_virtual_time
async def test_f03_gone_means_one_list_and_no_gap(stage, as_event):
    await held(stage)
    gone = failure(410, "Expired")
    event = json.dumps({"type": "ERROR", "object": json.loads(gone)}).encode() + b"\n"
    answer = (
        Response(200, {"content-type": "application/json"}, event) if as_event else status(410, "Expired")
    )
    async with working(stage) as actor:
        await stage.pass_time(30)
        actor.line.answer = first(1, lambda request: answer if is_watch(request, HPAS) else None)
        await stage.pass_time(60)
        await stage.edit_hpa("web", minReplicas=8)
        await becomes(stage, 8)
        assert lists(actor, HPAS) == 2


@in_virtual_time
async def test_f04_a_silent_stall_is_noticed_and_nothing_is_scaled_down_meanwhile(stage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(45)
        actor.line.is_silent = is_watch
        await stage.edit_hpa("web", minReplicas=9)
        load(stage, 100)
        stalled = stage.clock.monotonic()
        seen: list[str] = []
        while stage.clock.monotonic() - stalled < 150:
            await stage.pass_time(5)
            seen += actor.operator.health()
            assert await stage.replicas("web") in {5, 9} or not _is_stale(actor)
        assert {HPAS, "pods"} & set(seen)
        actor.line.is_silent = lambda _: False
        await becomes(stage, 9, within=60)
        await stage.pass_time(120)
        assert not actor.operator.health()


def _is_stale(actor) -> bool:
    return any(cache.staleness() > 60 for cache in actor.operator._caches)


@in_virtual_time
async def test_f04_stale_for_longer_than_a_minute_nothing_is_decided(stage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(45)
        actor.line.is_silent = is_watch
        actor.line.answer = lambda request: (
            TransportError("dropped")
            if request.method == "GET" and ("limit" in dict(request.query) or is_watch(request))
            else None
        )
        await stage.pass_time(110)
        assert _is_stale(actor)
        load(stage, 100)
        await stage.pass_time(60)
        assert await stage.replicas("web") == 5
        actor.line.is_silent, actor.line.answer = (lambda _: False), (lambda _: None)
        await becomes(stage, 1, within=120)


@in_virtual_time
async def test_f05_a_write_that_is_never_answered_ends_by_deadline_and_holds_up_nobody(stage):
    await held(stage, "slow")
    await held(stage, "web")
    async with working(stage) as actor:
        await stage.pass_time(20)
        actor.line.is_hanging = lambda request: request.method == "PATCH" and "/slow/" in request.path
        load(stage, 800, "slow")
        load(stage, 800, "web")
        assert await becomes(stage, 8, "web") <= 16
        actor.line.is_hanging = lambda _: False
        assert await becomes(stage, 8, "slow", within=80) <= 60


@in_virtual_time
async def test_f06_events_that_come_twice_cost_no_extra_write(stage):
    await held(stage)
    async with working(stage) as actor:
        actor.line.alter = lambda _: lambda line: [line, line]
        await stage.pass_time(60)
        before = len(actor.line.writes)
        load(stage, 900)
        await becomes(stage, 9)
        await stage.follow("web")
        await stage.pass_time(60)
        assert sum(one.is_scale for one in actor.line.writes[before:]) == 1
        assert len(actor.line.writes) - before <= 4


def test_f07_an_older_copy_of_an_object_is_not_believed(both):
    async def scenario(stage: Stage) -> None:
        await held(stage, minReplicas=6, replicas=6)
        async with working(stage, period=1) as actor:
            history: list[bytes] = []

            def replay(line: bytes) -> list[bytes]:
                history.append(line)
                return [line, history[0]]

            actor.line.alter = lambda request: replay if is_watch(request, HPAS) else None
            actor.line.answer = first(1, lambda request: TransportError("cut") if is_watch(request) else None)
            await stage.edit_hpa("web", minReplicas=7)
            await becomes(stage, 7, within=60)
            await stage.edit_hpa("web", minReplicas=8)
            await becomes(stage, 8, within=60)
            load(stage, 100)
            await stage.clock.sleep(3)
            assert await stage.replicas("web") == 8

    both(scenario)


@in_virtual_time
async def test_f08_a_list_older_than_what_was_seen_is_refused(stage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(20)
        path = f"/apis/autoscaling.trimtab.dev/v2/namespaces/{stage.namespace}/{HPAS}"
        old = await stage.transport.request(next(one for one in actor.line.sent if one.path == path))
        await stage.edit_hpa("web", minReplicas=8)
        await becomes(stage, 8)
        load(stage, 100)
        lagging = [True]

        def lag(request):
            if not lagging[0] or request.path != path:
                return None
            return status(410, "Expired") if is_watch(request) else old

        actor.line.answer = lag
        await stage.pass_time(120)
        assert await stage.replicas("web") == 8
        lagging[0] = False
        await stage.edit_hpa("web", minReplicas=9)
        await becomes(stage, 9, within=60)


@in_virtual_time
async def test_f09_what_happened_while_nobody_looked_ends_as_a_fresh_start_would(stage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(20)
        actor.line.alter = lambda _: lambda _line: []
        actor.line.answer = lambda request: TransportError("cut") if is_watch(request) else None
        await stage.pass_time(60)
        await stage.client.delete(stage.resource, "web", stage.namespace)
        await stage.hpa("web", minReplicas=3, maxReplicas=4, metrics=[queue()])
        actor.line.alter, actor.line.answer = (lambda _: None), (lambda _: None)
        assert await becomes(stage, 4, within=120) <= 60


@pytest.mark.parametrize(
    "garbage",
    [b'{"type":', b"\xff\xfe", b'{"type":"STRANGE","object":{}}', b"[" * 5000, b"x" * 20_000_000],
    ids=["half", "not UTF-8", "unknown type", "nested", "20 MB"],
)
@in_virtual_time
async def test_f10_garbage_in_a_stream_costs_one_list_at_most(stage, garbage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(20)
        dirty = [garbage]
        actor.line.alter = lambda request: (
            (lambda line: [dirty.pop(), line] if dirty else [line]) if is_watch(request, HPAS) else None
        )
        await stage.pass_time(60)
        await stage.edit_hpa("web", minReplicas=8)
        await becomes(stage, 8)
        assert lists(actor, HPAS) <= 2


@in_virtual_time
async def test_f11_an_hour_of_quiet_costs_no_list(stage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(3600)
        await stage.edit_hpa("web", minReplicas=8)
        await becomes(stage, 8)
        assert {lists(actor, plural) for plural in (HPAS, "pods", "deployments")} == {1}


@pytest.mark.parametrize("retry", ["1", "30", None], ids=["after 1 s", "after 30 s", "whenever"])
@in_virtual_time
async def test_f13_a_server_that_throttles_is_obeyed_and_no_write_is_lost(stage, retry):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(20)
        load(stage, 900)
        headers = {"retry-after": retry} if retry else {}
        until = stage.clock.monotonic() + 30
        actor.line.answer = lambda request: (
            status(429, "TooManyRequests", **headers)
            if stage.clock.monotonic() < until and "metrics.k8s.io" not in request.path
            else None
        )
        before = len(actor.line.sent)
        await stage.pass_time(30)
        asked = [one for one in actor.line.sent[before:] if "metrics.k8s.io" not in one.path]
        assert len(asked) <= 30
        await becomes(stage, 9, within=60)


@pytest.mark.parametrize(
    ("answer", "per_second"),
    [
        pytest.param(Unreachable("connection refused"), 3.0, id="gone"),
        pytest.param(status(503, "ServiceUnavailable"), 12.0, id="503"),
    ],
)
@in_virtual_time
async def test_a_server_that_is_away_for_thirty_seconds_gets_few_requests(stage, answer, per_second):
    """45 per second from nine HPAs: an event that failed was due at once, and so was a status that failed."""
    for index in range(9):
        await held(stage, f"web{index}")
    async with working(stage, period=1) as actor:
        await stage.pass_time(10)
        for index in range(9):
            load(stage, 600, f"web{index}")  # scales, and events about them, that fail
        until = stage.clock.monotonic() + 30
        actor.line.answer = lambda _: answer if stage.clock.monotonic() < until else None
        actor.line.drop_all()
        before = len(actor.line.sent)
        await stage.pass_time(30)
        assert len(actor.line.sent) - before <= per_second * 30
        for index in range(9):
            assert await becomes(stage, 6, f"web{index}") <= 5


@pytest.mark.parametrize("retry", ["1", ""], ids=["1", "absent"])
@in_virtual_time
async def test_f13_the_first_scale_comes_soon_after_a_throttling_server_recovers(stage, retry):
    for index in range(9):
        await held(stage, f"web{index}")
    async with working(stage, period=1) as actor:
        await stage.pass_time(10)
        headers = {"retry-after": retry} if retry else {}
        until = stage.clock.monotonic() + 30
        actor.line.answer = lambda _: (
            status(429, "TooManyRequests", **headers) if stage.clock.monotonic() < until else None
        )
        actor.line.drop_all()
        await stage.pass_time(15)
        load(stage, 600, "web3")
        await stage.pass_time(15)
        assert await becomes(stage, 6, "web3") <= 5


@pytest.mark.parametrize(
    "answer",
    [
        status(500, "InternalError"),
        Response(502, {}, b"<html>Bad Gateway</html>"),
        status(503, "ServiceUnavailable"),
        status(504, "Timeout"),
        Response(200, {"content-type": "application/json"}, failure(500, "InternalError")),
        Response(200, {}, b"<html>captive portal</html>"),
        Response(200, {"content-type": "application/json"}, b"null"),
    ],
    ids=["500", "502", "503", "504", "200 with a Status", "200 with HTML", "null"],
)
@in_virtual_time
async def test_f14_a_sick_metrics_api_means_hold(stage, answer):
    await held(stage)
    async with stage.running() as actor:
        await stage.step(actor)
        load(stage, 100)
        actor.line.answer = lambda request: answer if "queue-web" in request.path else None
        await stage.steps(actor, 3)
        assert await stage.replicas("web") == 5
        assert (await stage.conditions("web"))["ScalingActive"] == ("False", "FailedGetExternalMetric")
        actor.line.answer = lambda _: None
        await stage.step(actor)
        assert await stage.replicas("web") == 1


def test_f15_a_users_number_is_not_overwritten_by_one_decided_before(both):
    async def scenario(stage: Stage) -> None:
        one_by_one = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}]}
        await held(stage, behavior={"scaleDown": one_by_one | {"stabilizationWindowSeconds": 0}})
        async with stage.running() as actor:
            await stage.step(actor)
            load(stage, 1000)
            meddled: list[bool] = []

            async def meddle(request, send):
                if request.path.endswith("/scale") and not meddled:
                    meddled.append(True)
                    await stage.scale("web", 30)
                return await send(request)

            stage.transport.around = meddle
            await stage.step(actor)
            assert meddled
            await stage.steps(actor, 3)
            # Decided anew, from 30: the policy lets one go. The old number was 10.
            assert await stage.replicas("web") == 29

    both(scenario)


@in_virtual_time
async def test_f16_a_revoked_verb_is_told_and_stops_nobody_else(stage):
    await held(stage, "web")
    await held(stage, "other")
    async with stage.running() as actor:
        actor.line.answer = lambda request: (
            status(403, "Forbidden") if request.path.endswith("/web/scale") else None
        )
        load(stage, 900, "web")
        load(stage, 900, "other")
        await stage.step(actor)
        assert (await stage.replicas("web"), await stage.replicas("other")) == (5, 9)
        assert (await stage.conditions("web"))["AbleToScale"] == ("False", "FailedUpdateScale")
        actor.line.answer = lambda _: None
        await stage.step(actor)
        assert await stage.replicas("web") == 9


@in_virtual_time
async def test_f16_a_kind_that_may_not_be_listed_stops_nobody_else(stage):
    await held(stage)
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
    await stage.hpa("db", scaleTargetRef=reference, metrics=[queue("db")])
    chosen = stage.settings()
    from tests.scenarios.horizontal.stage import Actor

    actor = Actor(stage, chosen)
    forbidden = STATEFUL_SETS.path(stage.namespace)
    actor.line.answer = lambda request: status(403, "Forbidden") if request.path == forbidden else None
    await actor.operator.start()
    try:
        load(stage, 900)
        await stage.step(actor)
        assert await stage.replicas("web") == 9
        assert "statefulsets" in actor.operator.health()
    finally:
        await actor.close()


@in_virtual_time
async def test_f17_after_an_outage_work_goes_on_without_a_storm(stage):
    await held(stage)
    async with working(stage) as actor:
        await stage.pass_time(30)
        actor.line.answer = lambda _: TransportError("connection refused")
        actor.line.drop_all()
        before = len(actor.line.sent)
        await stage.pass_time(60)
        kinds = 3
        assert len(actor.line.sent) - before <= 0.5 * 60 * kinds
        known = {plural: lists(actor, plural) for plural in (HPAS, "pods", "deployments")}
        actor.line.answer = lambda _: None
        load(stage, 900)
        await becomes(stage, 9, within=60)
        for plural, count in known.items():
            assert lists(actor, plural) <= count + 1


def test_f18_a_step_whose_answer_got_lost_is_not_taken_again(both):
    async def scenario(stage: Stage) -> None:
        policy = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}
        await held(stage, behavior={"scaleUp": policy})
        async with stage.running() as actor:
            await stage.step(actor)
            load(stage, 5000)
            lost: list[Request] = []

            async def lose(request, send):
                answer = await send(request)
                if request.path.endswith("/scale") and not lost:
                    lost.append(request)
                    raise TransportError("the answer got lost")
                return answer

            stage.transport.around = lose
            await stage.steps(actor, 5)
            assert lost
            assert await stage.replicas("web") == 7
            assert await stage.event_count("FailedRescale") == 0

    both(scenario)


@in_virtual_time
async def test_f19_a_partial_discovery_calls_no_kind_unknown(stage):
    await held(stage)
    async with stage.running() as actor:
        await stage.step(actor)
        actor.line.answer = lambda request: (
            status(503, "ServiceUnavailable") if request.path in {"/apis", "/api"} else None
        )
        load(stage, 900)
        await stage.step(actor)
        assert await stage.replicas("web") == 9
        assert (await stage.client.get(DEPLOYMENTS, "web", stage.namespace)).metadata.name == "web"
