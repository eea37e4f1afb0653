"""The cache follows the server through everything that goes wrong between them (faults F01 to F13)."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi, status
from trimtab.clock import VirtualClock
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.store import CacheEvent, Delta, KeyIndex, by_node, by_owner
from trimtab.cluster.client import Client, ListOptions
from trimtab.cluster.codec.objects import PartialObject
from trimtab.cluster.resource import Resource
from trimtab.model.core.pod import Pod

PODS = Resource("", "v1", "pods", "Pod", Pod)


class World:
    """A server, a client and an informer on it, under the virtual clock."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.api = FakeApi()
        self.client = Client(clock, AsgiTransport(self.api), seed=1)

    @asynccontextmanager
    async def informer(self, *, synced=True, what=PODS, **options):
        informer = Informer(self.client, what, **options)
        task = asyncio.create_task(informer.run())
        try:
            if synced:
                await informer.wait_synced()
            yield informer
        finally:
            task.cancel()
            await asyncio.wait([task])

    def agree(self, informer):
        cached = {
            (pod.metadata.namespace, pod.metadata.name): pod.metadata.resource_version
            for pod in informer.store
        }
        return cached == {
            key: thing["metadata"]["resourceVersion"] for key, thing in self.api.objects.items()
        }


@pytest.fixture
def run():
    """Run a test's coroutine function in virtual time, with a world."""

    def runner(scenario):
        clock = VirtualClock()

        async def main() -> object:
            return await scenario(World(clock))

        return clock.run(main())

    return runner


def test_lists_in_pages_and_then_follows(run):
    async def scenario(world):
        for number in range(7):
            await world.api.put(f"p{number}")
        async with world.informer(page_size=3) as informer:
            assert world.api.count()["LIST"] == 3
            await world.api.put("new", "other")
            await world.api.put("p0")
            await world.api.remove("p1")
            await world.clock.sleep(1)
            assert world.agree(informer)
            assert len(informer.store) == 7
            assert list(informer.store.in_namespace("other")) == ["new"]
            assert world.api.count() == {"LIST": 3, "WATCH": 1}

    run(scenario)


def test_asks_for_bookmarks_and_the_selection(run):
    async def scenario(world):
        selection = ListOptions("shop", "app=web", "status.phase!=Failed")
        async with world.informer(selection=selection):
            await world.clock.sleep(1)
        listing, watch = world.api.requests
        assert listing.path == watch.path == "/api/v1/namespaces/shop/pods"
        assert listing.query == {
            "labelSelector": "app=web",
            "fieldSelector": "status.phase!=Failed",
            "limit": "500",
        }
        assert watch.query["allowWatchBookmarks"] == "true"
        assert watch.query["labelSelector"] == "app=web"

    run(scenario)


def test_tells_subscribers_what_changed_in_order(run):
    async def scenario(world):
        await world.api.put("a")
        seen = []
        informer = Informer(world.client, PODS)
        informer.subscribe(lambda delta: seen.append((delta.change, delta.new and delta.new.metadata.name)))
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        await world.api.put("a")
        await world.api.put("b")
        await world.api.remove("a")
        await world.clock.sleep(1)
        task.cancel()
        assert seen == [
            (CacheEvent.ADDED, "a"),
            (CacheEvent.SYNCED, None),
            (CacheEvent.UPDATED, "a"),
            (CacheEvent.ADDED, "b"),
            (CacheEvent.DELETED, None),
        ]
        late = []
        informer.subscribe(lambda delta: late.append(delta.change))
        assert late == [CacheEvent.ADDED, CacheEvent.SYNCED]

    run(scenario)


def test_a_subscriber_that_fails_stops_nobody(run, caplog):
    async def scenario(world):
        seen = []
        async with world.informer() as informer:
            informer.subscribe(lambda delta: 1 / 0 if delta.change is CacheEvent.ADDED else None)
            informer.subscribe(lambda delta: seen.append(delta.change))
            await world.api.put("a")
            await world.clock.sleep(1)
            assert seen == [CacheEvent.SYNCED, CacheEvent.ADDED]

    run(scenario)


def test_indexes_follow_owner_and_node(run):
    async def scenario(world):
        owner = {"ownerReferences": [{"kind": "ReplicaSet", "name": "rs", "uid": "u1", "controller": True}]}
        await world.api.put("a", metadata=owner)
        async with world.informer() as informer:
            owners: KeyIndex[Pod, str] = by_owner()
            nodes = by_node()
            informer.add_index(owners)
            informer.add_index(nodes)
            await world.api.put("b", metadata=owner, spec={"nodeName": "n1"})
            await world.clock.sleep(1)
            assert sorted(pod.name for pod in owners.get("u1").values()) == ["a", "b"]
            assert [pod.name for pod in nodes.get("n1").values()] == ["b"]
            await world.api.remove("b")
            await world.api.put("a", metadata={"ownerReferences": []})
            await world.clock.sleep(1)
            assert not owners.get("u1")
            assert not list(nodes.keys())

    run(scenario)


def test_f01_a_watch_cut_inside_an_event_is_resumed_without_a_list(run):
    async def scenario(world):
        cuts: list[bytes] = []

        def cut_once(line):
            if b"BOOKMARK" not in line and not cuts:
                cuts.append(line)
                raise ConnectionResetError
            return [line]

        async with world.informer() as informer:
            world.api.alter = cut_once
            await world.api.put("a")
            await world.clock.sleep(2)
            assert cuts
            assert world.agree(informer)
            assert world.api.count()["LIST"] == 1

    run(scenario)


def test_f01_half_a_line_before_a_clean_end_is_dropped(run):
    async def scenario(world):
        async with world.informer() as informer:
            half = b'{"type":"ADDED","object":{"metadata":{"name":"ghost","namespace":"x"'
            served: list[int] = []

            def half_event(request):
                if request.verb == "WATCH" and not served:
                    served.append(1)
                    return Answer(200, half)
                return None

            world.api.fault = half_event
            await world.clock.sleep(60)
            assert served
            assert world.agree(informer)

    run(scenario)


def test_f02_watches_closed_at_once_back_off_and_never_list_again(run):
    async def scenario(world):
        async with world.informer():
            world.api.fault = lambda request: Answer(200) if request.verb == "WATCH" else None
            await world.clock.sleep(600)
            # 0.8 s doubling to 30 s with up to as much jitter: about 30 tries in ten minutes, not thousands.
            assert world.api.count()["WATCH"] < 45
            assert world.api.count()["LIST"] == 1

    run(scenario)


@pytest.mark.parametrize("as_event", [False, True], ids=["as a status", "as an ERROR event in a good stream"])
def test_f03_gone_lists_exactly_once_and_finds_the_deleted(run, as_event):
    async def scenario(world):
        await world.api.put("stays")
        await world.api.put("goes")
        async with world.informer() as informer:
            deleted = []
            informer.subscribe(
                lambda delta: (
                    deleted.append(delta.object.name) if delta.change is CacheEvent.DELETED else None
                )
            )
            gone = status(410, "Expired", "too old resource version")
            error_event = json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n"
            answers = [Answer(200, error_event) if as_event else Answer(410, gone)]
            await world.clock.sleep(36)
            world.api.fault = lambda request: answers.pop() if request.verb == "WATCH" and answers else None
            await world.clock.sleep(20)
            assert not answers
            await world.api.remove("goes")
            await world.clock.sleep(1)
            assert deleted == ["goes"]
            assert world.api.count()["LIST"] == 2
            assert world.agree(informer)

    run(scenario)


def test_f03_compaction_while_disconnected_synthesises_deletes(run):
    async def scenario(world):
        await world.api.put("goes")
        async with world.informer() as informer:
            world.api.fault = lambda request: Answer(503)
            await world.clock.sleep(50)
            await world.api.remove("goes")
            await world.api.put("new")
            world.api.compact()
            world.api.fault = None
            await world.clock.sleep(70)
            assert world.agree(informer)
            assert [pod.name for pod in informer.store] == ["new"]

    run(scenario)


def test_f04_a_stream_that_went_silent_is_left_and_resumed_within_a_minute(run):
    async def scenario(world):
        stalls = [0]

        def stall_once(request):
            if request.verb == "WATCH" and not stalls[0]:
                stalls[0] += 1
                return Answer(200, complete=False, then=asyncio.sleep(10_000))
            return None

        world.api.fault = stall_once
        async with world.informer() as informer:
            await world.clock.sleep(1)
            await world.api.put("unheard")
            await world.clock.sleep(30)
            assert informer.staleness() > 30
            assert not world.agree(informer)
            await world.clock.sleep(29)
            assert world.agree(informer)
            assert informer.staleness() < 30
            # The stalled one, the short one that proves that nothing was missed, and the usual one after it.
            assert world.api.count() == {"LIST": 1, "WATCH": 3}

    run(scenario)


def test_f04_a_server_that_stays_silent_shows_as_staleness(run):
    async def scenario(world):
        async with world.informer() as informer:
            world.api.fault = lambda request: Answer(200, complete=False, then=asyncio.sleep(10_000))
            await world.clock.sleep(300)
            assert informer.staleness() > 200
            assert "nothing was heard" in (informer.last_error or "")
            assert len(world.api.requests) < 12

    run(scenario)


def test_f09_proof_watches_come_back_after_a_silent_one(run):
    """RH-M5: after one silent proof every later failure was followed by a long watch, for the life of the process."""

    async def scenario(world):
        silent, failing, asked = [2], [False], []

        def trouble(request):
            if request.verb != "WATCH":
                return None
            asked.append(int(request.query["timeoutSeconds"]))
            if silent[0]:
                silent[0] -= 1
                return Answer(200, complete=False, then=asyncio.sleep(10_000))
            if failing[0]:
                failing[0] = False
                return Answer(503)
            return None

        world.api.fault = trouble
        async with world.informer() as informer:
            await world.clock.sleep(300)
            usual, proof, *healthy = asked
            assert min(usual, *healthy) >= 35 > proof == 7  # after a silent proof the server has more time
            for _ in range(3):
                asked.clear()
                failing[0] = True
                await world.clock.sleep(150)
                assert asked.count(7) == 1  # one short watch for each failure, right after it
                assert informer.staleness() < 60

    run(scenario)


def test_an_idle_watch_stays_fresh_and_cheap(run):
    async def scenario(world):
        async with world.informer() as informer:
            ages = []
            for _ in range(360):
                await world.clock.sleep(10)
                ages.append(informer.staleness())
            assert max(ages) < 60
            assert world.api.count()["LIST"] == 1
            assert world.api.count()["WATCH"] < 3600 / 35

    run(scenario)


def test_f06_every_event_twice_changes_nothing_twice(run):
    async def scenario(world):
        async with world.informer() as informer:
            deltas = []
            informer.subscribe(lambda delta: deltas.append(delta.change))
            world.api.alter = lambda line: [line, line]
            await world.api.put("a")
            await world.api.put("a")
            await world.api.remove("a")
            await world.clock.sleep(1)
            assert deltas == [CacheEvent.SYNCED, CacheEvent.ADDED, CacheEvent.UPDATED, CacheEvent.DELETED]
            assert informer.counts.stale_events == 3
            assert world.api.count()["LIST"] == 1

    run(scenario)


def test_f07_an_older_copy_after_a_newer_one_is_dropped_and_counted(run):
    async def scenario(world):
        async with world.informer() as informer:
            lines = []

            def replay(line):
                lines.append(line)
                return [line, lines[0]]

            world.api.alter = replay
            await world.api.put("a", status={"phase": "Pending"})
            await world.api.put("a", status={"phase": "Running"})
            await world.clock.sleep(1)
            pod = informer.store.get("a", "default")
            assert pod is not None
            assert pod.status.phase == "Running"
            assert informer.counts.stale_events == 2
            assert world.agree(informer)

    run(scenario)


def test_f07_an_old_copy_of_something_deleted_does_not_come_back_to_life(run):
    async def scenario(world):
        async with world.informer() as informer:
            lines = []

            def replay(line):
                lines.append(line)
                return [line, lines[0]] if b"DELETED" in line else [line]

            world.api.alter = replay
            await world.api.put("a")
            await world.api.remove("a")
            await world.clock.sleep(5)
            assert len(informer.store) == 0
            assert world.api.count()["LIST"] == 2

    run(scenario)


def test_f08_a_list_older_than_what_was_seen_is_refused_until_the_server_catches_up(run):
    async def scenario(world):
        await world.api.put("a")
        async with world.informer() as informer:
            await world.api.put("b")
            await world.clock.sleep(1)
            stale = {"kind": "PodList", "metadata": {"resourceVersion": "50"}, "items": []}
            gone = Answer(410, status(410, "Expired"))
            world.api.fault = lambda request: gone if request.verb == "WATCH" else Answer(200, stale)
            await world.clock.sleep(90)  # the watch ends after 45 s at most
            assert len(informer.store) == 2
            assert informer.counts.stale_lists >= 1
            assert "catch up" in (informer.last_error or "")
            world.api.fault = None
            await world.clock.sleep(61)
            assert world.agree(informer)

    run(scenario)


RESTORES = {
    "whose watch ends": lambda _: Answer(410, status(410, "Expired")),
    "that has not reached the version": lambda _: Answer(
        504, status(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]})
    ),
    "that says nothing but an older bookmark": lambda _: None,
}


@pytest.mark.parametrize("answer", RESTORES.values(), ids=RESTORES)
def test_a_server_that_was_restored_from_a_backup_is_followed_after_a_minute(run, answer):
    """A cache waited for ever for a restored server, until somebody restarted the process."""

    async def scenario(world):
        await world.api.put("kept")
        await world.api.put("changed", metadata={"labels": {"is": "old"}})
        saved, version = dict(world.api.objects), world.api.version
        async with world.informer() as informer:
            await world.api.put("lost")
            for _ in range(3):
                await world.api.put("changed", metadata={"labels": {"is": "new"}})
            await world.clock.sleep(1)
            assert len(informer.store) == 3
            seen = str(world.api.version)
            world.api.objects, world.api.version, world.api.log = saved, version, []
            async with world.api.changed:
                world.api.changed.notify_all()
            world.api.fault = lambda asked: (
                answer(asked) if asked.query.get("resourceVersion") == seen else None
            )
            await world.clock.sleep(45)
            assert len(informer.store) == 3
            await world.clock.sleep(120)
            assert world.agree(informer)
            assert informer.stale_reason() == ""
            await world.api.put("after")
            await world.clock.sleep(1)
            assert world.agree(informer)

    run(scenario)


def test_f08_our_own_writes_count_as_seen(run):
    async def scenario(world):
        async with world.informer(synced=False) as informer:
            informer.note_written(str(world.api.version + 10))
            await world.clock.sleep(10)
            assert not informer.has_synced
            world.api.version += 10
            await world.clock.sleep(31)
            assert informer.has_synced

    run(scenario)


def test_f09_deleted_and_recreated_unseen_is_one_deletion_and_one_addition(run):
    async def scenario(world):
        await world.api.put("a")
        async with world.informer() as informer:
            deltas: list[Delta[Pod]] = []
            world.api.fault = lambda request: Answer(503)
            await world.clock.sleep(60)
            await world.api.remove("a")
            await world.api.put("a")
            world.api.compact()
            informer.subscribe(deltas.append)
            deltas.clear()
            world.api.fault = None
            await world.clock.sleep(90)
            assert [delta.change for delta in deltas] == [CacheEvent.DELETED, CacheEvent.ADDED]
            assert len({delta.object.metadata.uid for delta in deltas}) == 2

    run(scenario)


@pytest.mark.parametrize(
    ("line", "lists"),
    [
        pytest.param(b'{"type":"CONFUSED","object":{}}\n', 1, id="an unknown event type is ignored"),
        pytest.param(b'{"type":"ADDED","object":\n', 2, id="broken JSON lists once"),
        pytest.param(b'{"type":"ADDED","object":{"kind":"\xff\xfe"}}\n', 2, id="bad UTF-8 lists once"),
        pytest.param(b"[" * 100_000 + b"\n", 2, id="deep nesting lists once"),
        pytest.param(b"x" * 9_000_000, 2, id="a line without end lists once"),
    ],
)
def test_f10_what_is_no_event_costs_at_most_one_list(run, line, lists):
    async def scenario(world):
        async with world.informer() as informer:
            bad = [line]
            world.api.alter = lambda good: [bad.pop(), good] if bad else [good]
            await world.api.put("a")
            await world.clock.sleep(10)
            assert world.agree(informer)
            assert world.api.count()["LIST"] == lists

    run(scenario)


def test_f10_an_object_that_does_not_decode_is_left_out_and_named(run):
    async def scenario(world):
        await world.api.put("good")
        await world.api.put("odd", spec={"containers": "none"})
        async with world.informer() as informer:
            assert [pod.name for pod in informer.store] == ["good"]
            await world.api.put("odd2", spec={"containers": 7})
            await world.clock.sleep(1)
            assert sorted(name for _, name in informer.counts.unreadable) == ["odd", "odd2"]
            assert "spec.containers" in informer.counts.unreadable["default", "odd"].why
            await world.api.put("odd2", spec={})
            await world.clock.sleep(1)
            assert [name for _, name in informer.counts.unreadable] == ["odd"]
            assert world.api.count()["LIST"] == 1

    run(scenario)


def test_f10_what_was_mended_or_deleted_while_a_watch_was_down_is_not_unreadable_any_more(run):
    async def scenario(world):
        for name in ("odd", "mended", "gone"):
            await world.api.put(name, spec={"containers": "none"})
        async with world.informer() as informer:
            assert len(informer.counts.unreadable) == 3
            world.api.fault = lambda request: Answer(503, status(503, "ServiceUnavailable"))
            await world.clock.sleep(1)
            await world.api.put("mended", spec={})
            await world.api.remove("gone")
            world.api.compact()
            world.api.fault = None
            await world.clock.sleep(600)
            assert world.api.count()["LIST"] >= 2
            assert [name for _, name in informer.counts.unreadable] == ["odd"]
            assert [pod.name for pod in informer.store] == ["mended"]

    run(scenario)


def test_f10_an_object_that_cannot_be_reduced_is_left_out_and_no_other(run):
    def only_named(pod):
        if pod.metadata.name.startswith("odd"):
            raise ValueError("no way to keep this one")
        return PartialObject(metadata=pod.metadata)

    async def scenario(world):
        await world.api.put("good")
        await world.api.put("odd")
        async with world.informer(what=PODS.with_transform(only_named)) as informer:
            await world.api.put("odd2")
            await world.api.put("good2")
            await world.clock.sleep(1)
            assert sorted(one.metadata.name for one in informer.store) == ["good", "good2"]
            assert all(type(one) is PartialObject for one in informer.store)
            assert sorted(name for _, name in informer.counts.unreadable) == ["odd", "odd2"]
            assert "no way to keep" in informer.counts.unreadable["default", "odd"].why
            assert world.api.count() == {"LIST": 1, "WATCH": 1}

    run(scenario)


def test_f11_an_hour_of_bookmarks_then_compaction_needs_no_list(run):
    async def scenario(world):
        async with world.informer() as informer:
            for _ in range(60):
                world.api.version += 50  # other resources move on
                await world.clock.sleep(60)
            world.api.oldest = world.api.version - 100
            await world.clock.sleep(120)
            await world.api.put("a")
            await world.clock.sleep(1)
            assert world.agree(informer)
            assert world.api.count()["LIST"] == 1

    run(scenario)


def test_f12_an_expired_continue_token_never_leaves_half_a_list(run):
    async def scenario(world):
        for number in range(10):
            await world.api.put(f"p{number}")
        sizes = []

        def expire(request):
            if "continue" in request.query:
                return Answer(410, status(410, "Expired", "continue token"))
            return None

        world.api.fault = expire
        async with world.informer(page_size=4) as informer:
            sizes.append(len(informer.store))
            assert sizes == [10]
            assert [request.query.get("limit") for request in world.api.requests[:3]] == ["4", "4", None]

    run(scenario)


@pytest.mark.parametrize("retry_after", ["1", "30", None])
def test_f13_a_throttling_server_hears_from_many_informers_once_per_second(run, retry_after):
    async def scenario(world):
        headers = [("retry-after", retry_after)] if retry_after else []
        world.api.fault = lambda request: Answer(429, status(429, "TooManyRequests"), headers=headers)
        informers = [Informer(world.client, PODS) for _ in range(15)]
        tasks = [asyncio.create_task(informer.run()) for informer in informers]
        await world.clock.sleep(30)
        # The first round leaves before anyone knows; after it, one request at a time and per Retry-After.
        assert len(world.api.requests) <= 15 + 30
        world.api.fault = None
        await world.clock.sleep(80)
        assert all(informer.has_synced for informer in informers)
        for task in tasks:
            task.cancel()

    run(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda: Answer(500, b"boom"), id="500 with plain text"),
        pytest.param(lambda: Answer(502, b"<html>bad gateway</html>"), id="502 with HTML"),
        pytest.param(lambda: Answer(503, status(503, "ServiceUnavailable")), id="503"),
        pytest.param(lambda: Answer(504, status(504, "Timeout")), id="504"),
        pytest.param(lambda: Answer(200, status(500, "InternalError")), id="200 with a failure Status"),
        pytest.param(lambda: Answer(200, b"<html>hello</html>"), id="200 with HTML"),
        pytest.param(lambda: Answer(200, b""), id="200 with nothing"),
        pytest.param(lambda: Answer(403, status(403, "Forbidden")), id="403"),
        pytest.param(lambda: Answer(302, b"", headers=[("location", "http://elsewhere/")]), id="a redirect"),
    ],
)
def test_f14_a_sick_server_is_waited_out_with_growing_pauses(run, answer):
    async def scenario(world):
        await world.api.put("a")
        world.api.fault = lambda request: answer()
        async with world.informer(synced=False) as informer:
            await world.clock.sleep(300)
            assert not informer.has_synced
            assert informer.last_error
            # At most half a call per second under total outage (invariant I15); here one per 5 s.
            assert len(world.api.requests) < 75
            world.api.fault = None
            await world.clock.sleep(31)
            assert world.agree(informer)

    run(scenario)


DROP = "drop=metadata.managedFields"


def test_lists_and_watches_of_a_cache_leave_managed_fields_out(run):
    """No cached type has them, and they are a large part of each object."""

    async def scenario(world):
        await world.api.put("a")
        async with world.informer(page_size=1):
            await world.api.put("b")
            await world.clock.sleep(60)
        await world.client.list(PODS)
        return [(request.verb, DROP in request.headers.get("accept", "")) for request in world.api.requests]

    asked = run(scenario)
    assert ("LIST", True) in asked
    assert ("WATCH", True) in asked
    assert ("WATCH", False) not in asked
    assert asked[-1] == ("LIST", False), "a client that lists may want to see who wrote"


@pytest.mark.parametrize("honours", [True, False], ids=["1.38", "before"])
def test_a_server_may_ignore_that_managed_fields_are_dropped(run, honours):
    """The same requests are sent to both, and no request is repeated."""

    async def scenario(world):
        await world.api.put("a")

        def pick(request):
            clauses = [clause.strip() for clause in request.headers["accept"].split(",")]
            assert clauses[-1] == "application/json", "what a server without the parameter can take"
            if not honours or request.verb != "LIST":
                return None
            items = [
                {**obj, "metadata": {**obj["metadata"], "managedFields": None}}
                for obj in world.api.objects.values()
            ]
            return Answer(200, {"metadata": {"resourceVersion": str(world.api.version)}, "items": items})

        world.api.fault = pick
        async with world.informer() as informer:
            assert world.agree(informer)
        return [request.verb for request in world.api.requests].count("LIST")

    assert run(scenario) == 1


@pytest.mark.parametrize("code", [410, 500, 504])
def test_a_first_list_that_failed_once_is_used_page_by_page_too(run, code):
    """After a failed page no namespace counted as complete before the end of the next list, however long it was."""

    async def scenario(world):
        for namespace in ("a", "b", "c", "d"):
            for number in range(4):
                await world.api.put(f"p{number}", namespace)
        failed: list[bool] = []
        seen: list[tuple[list[str], dict[str, int]]] = []

        async def fail_once(request):
            is_third = request.query.get("continue", "").startswith("8@")
            if request.verb != "LIST" or failed or not is_third:
                return None
            failed.append(True)
            # What goes while no list is read: a pod, and all of a namespace.
            await world.api.remove("p0", "a")
            for number in range(4):
                await world.api.remove(f"p{number}", "b")
            return Answer(code, status(code, "Expired" if code == 410 else "Timeout", "not now"))

        def note() -> None:
            complete = [namespace for namespace in "abcd" if informer.has_listed(namespace)]
            seen.append(
                (complete, {namespace: len(informer.store.in_namespace(namespace)) for namespace in complete})
            )

        world.api.fault = fail_once
        informer = Informer(world.client, PODS, page_size=4)
        informer.on_page = note
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        task.cancel()
        assert failed
        assert seen[:2] == [([], {}), (["a"], {"a": 4})]
        complete = (
            {"a": 3, "b": 0, "c": 4} if code == 410 else {"a": 3, "b": 0}
        )  # 410 lists again without pages
        assert seen[2] == (list(complete), complete)
        assert world.agree(informer)

    run(scenario)
