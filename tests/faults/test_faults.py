"""Faults F01 to F19 on the wire: in the end the cache equals the server, and the server was not stormed."""

import json

import pytest

from tests.client_suite.objects import config_map
from tests.faults.conftest import MAPS
from tests.faults.proxy import Alter, Cut, Half, Silence, Status, Swallow
from tests.support.transport import failure
from trimtab.cluster import errors
from trimtab.cluster.client import Preconditions, retry_on_conflict
from trimtab.cluster.discovery import Discovery
from trimtab.cluster.transport import Deadlines, Request

GONE = Status(410, failure(410, "Expired"))
THROTTLE = Status(429, failure(429, "TooManyRequests"), {"Retry-After": "1"})


def times(count, fault, *verbs):
    """Return a fault that happens to the first `count` requests of these verbs."""
    left = [count]

    def choose(request):
        if request.verb in verbs and left[0] > 0:
            left[0] -= 1
            return fault
        return None

    return choose


async def start(behind):
    await behind.api.follow(behind.informer)
    return behind.informer


@pytest.mark.parametrize("after", [0, 1, 5])
async def test_f01_watches_cut_inside_an_event(behind, after):
    informer = await start(behind)
    behind.proxy.fault = times(3, Cut(after), "WATCH")
    behind.proxy.drop_all()
    await behind.change(12)
    await behind.agree()
    assert informer.counts.lists == 1


async def test_f02_watches_that_end_at_once(behind):
    informer = await start(behind)
    behind.proxy.fault = lambda request: Status(200) if request.verb == "WATCH" else None
    behind.proxy.drop_all()
    await behind.change(3)
    await behind.api.eventually(lambda: informer.counts.failures >= 6)
    behind.proxy.fault = lambda request: None
    await behind.agree()
    assert informer.counts.lists == 1
    assert behind.proxy.count()["WATCH"] < 20


@pytest.mark.parametrize(
    "fault",
    [GONE, Status(200, json.dumps({"type": "ERROR", "object": json.loads(GONE.body)}).encode() + b"\n")],
    ids=["as a status", "as an ERROR event"],
)
async def test_f03_gone_means_one_list(behind, fault):
    informer = await start(behind)
    behind.proxy.fault = times(1, fault, "WATCH")
    behind.proxy.drop_all()
    await behind.change(6)
    await behind.agree()
    assert informer.counts.lists == 2


async def test_f04_streams_that_say_nothing(behind):
    informer = await start(behind)
    behind.proxy.fault = times(2, Silence(), "WATCH")
    behind.proxy.drop_all()
    await behind.change(3)
    await behind.agree()
    assert informer.counts.lists == 1


@pytest.mark.parametrize(
    "fault",
    [Silence(headers=False), Silence(headers=True), Half()],
    ids=["no headers", "no body", "half a body"],
)
async def test_f05_slow_and_half_answers_end_by_deadline(behind, fault):
    behind.proxy.fault = times(1, fault, "GET")
    deadlines = Deadlines(connect=0.5, first_byte=0.5, total=0.3)
    path = MAPS.path(behind.api.namespace, "m1")
    with pytest.raises(errors.TransportError):
        await behind.client.sender.send_once("reading", Request("GET", path, deadlines=deadlines))
    answer = await behind.client.sender.send_once("reading", Request("GET", path))
    assert answer.status == 200


async def test_f05_half_lists_are_never_taken_for_the_whole(behind):
    behind.proxy.fault = times(2, Half(), "LIST")
    informer = await start(behind)
    await behind.agree()
    assert informer.counts.lists == 3


async def test_f06_and_f07_duplicates_and_old_copies(behind):
    informer = await start(behind)
    history: list[bytes] = []

    def confuse(line):
        history.append(line)
        return [line, line, history[max(0, len(history) - 3)]]

    behind.proxy.fault = lambda request: Alter(confuse) if request.verb == "WATCH" else None
    behind.proxy.drop_all()
    await behind.change(12)
    await behind.agree()
    assert informer.counts.stale_events > 0
    # An old copy of something already deleted costs a list, at the pace of the backoff.
    assert informer.counts.lists < 12


async def test_f09_what_happened_while_nobody_looked(behind):
    informer = await start(behind)
    behind.proxy.fault = lambda request: Status(503)
    behind.proxy.drop_all()
    await behind.change(6)
    await behind.api.client.delete(MAPS, "m1", behind.api.namespace)
    await behind.api.client.create(MAPS, config_map("m1"), behind.api.namespace)
    behind.proxy.fault = lambda request: None
    await behind.agree()
    assert informer.counts.lists == 1


@pytest.mark.parametrize(
    "garbage", [b'{"type":', b"\xff\xfe", b'{"type":"STRANGE","object":{}}', b"[" * 5000]
)
async def test_f10_garbage_in_the_stream(behind, garbage):
    informer = await start(behind)
    dirty = [garbage]
    behind.proxy.fault = lambda request: (
        Alter(lambda line: [dirty.pop(), line] if dirty else [line]) if request.verb == "WATCH" else None
    )
    behind.proxy.drop_all()
    await behind.change(6)
    await behind.agree()
    assert informer.counts.lists <= 2


async def test_f12_a_continue_token_that_expired(behind):
    behind.proxy.fault = lambda request: GONE if "continue" in request.query else None
    informer = await start(behind)
    await behind.agree()
    assert informer.counts.lists == 2


async def test_f13_a_server_that_throttles(behind):
    behind.proxy.fault = times(6, THROTTLE, "LIST", "WATCH", "PATCH")
    informer = await start(behind)
    await behind.client.patch(MAPS, "m1", behind.api.namespace, {"data": {"x": "9"}})
    await behind.change(3)
    await behind.agree()
    assert sum(behind.proxy.count().values()) < 40
    assert informer.counts.lists <= 8


@pytest.mark.parametrize(
    "fault",
    [
        Status(500, b"panic"),
        Status(502, b"<html>Bad Gateway</html>"),
        Status(503, failure(503, "ServiceUnavailable"), {"Retry-After": "1"}),
        Status(504, failure(504, "Timeout")),
        Status(200, failure(500, "InternalError")),
        Status(200, b"<html>captive portal</html>"),
        Status(302, b"", {"Location": "http://127.0.0.1:1/"}),
    ],
    ids=["500", "502", "503", "504", "200 with a Status", "200 with HTML", "302"],
)
async def test_f14_a_sick_server(behind, fault):
    behind.proxy.fault = times(4, fault, "LIST", "WATCH")
    informer = await start(behind)
    await behind.change(3)
    await behind.agree()
    assert informer.counts.lists <= 5
    assert behind.proxy.count()["WATCH"] < 20


async def test_f15_a_conflict_is_never_answered_with_the_old_number(behind):
    client, ns = behind.client, behind.api.namespace
    seen = []

    async def step():
        thing = await client.get(MAPS, "m1", ns)
        seen.append(thing.metadata.resource_version)
        if len(seen) == 1:
            await behind.api.client.patch(MAPS, "m1", ns, {"data": {"user": "30"}})
        base = Preconditions(thing.metadata.uid, thing.metadata.resource_version)
        return await client.patch(MAPS, "m1", ns, {"data": {"ours": "1"}}, preconditions=base)

    await retry_on_conflict(step)
    assert len(set(seen)) == 2


async def test_f17_every_connection_dropped_again_and_again(behind):
    informer = await start(behind)
    for _ in range(5):
        await behind.change(2)
        behind.proxy.drop_all()
    await behind.agree()
    assert informer.counts.lists == 1


async def test_f18_a_write_whose_answer_is_lost_is_looked_up_not_repeated(behind):
    client, ns = behind.client, behind.api.namespace
    before = await client.get(MAPS, "m1", ns)
    behind.proxy.fault = times(1, Swallow(), "PATCH")
    with pytest.raises(errors.TransportError):
        await client.patch(MAPS, "m1", ns, {"data": {"step": "1"}})
    assert behind.proxy.count()["PATCH"] == 1
    after = await client.get(MAPS, "m1", ns)
    assert after.metadata.resource_version != before.metadata.resource_version


async def test_f19_what_is_known_stays_known_while_discovery_fails(behind):
    discovery = Discovery(behind.client)
    assert (await discovery.find_kind("apps/v1", "Deployment")).has_scale
    behind.proxy.fault = lambda request: Status(503) if request.path == "/apis" else None
    with pytest.raises(errors.Unavailable):
        await discovery.refresh()
    assert (await discovery.find_kind("apps/v1", "Deployment")).has_scale
    assert (await discovery.find_kind("v1", "Pod")).plural == "pods"
