"""Whatever happens between them, in whatever order, the cache ends equal to the server and never goes back."""

import asyncio

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi, status
from trimtab.clock import VirtualClock
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.cache.store import CacheEvent, Delta, KeyIndex, by_owner
from trimtab.cluster.client import Client
from trimtab.cluster.resource import PODS
from trimtab.model.core.pod import Pod

NAMES = ("a", "b", "c", "d")
FAULTS = ("none", "503", "cut", "silent", "short", "gone", "garbage", "duplicate", "replay", "stale list")

steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES)),
        st.tuples(st.just("spoil"), st.sampled_from(NAMES)),
        st.tuples(st.just("remove"), st.sampled_from(NAMES)),
        st.tuples(st.just("wait"), st.sampled_from((0, 1, 5, 50))),
        st.tuples(st.just("fault"), st.sampled_from(FAULTS)),
        st.tuples(st.just("compact"), st.just("")),
    ),
    max_size=40,
)


class BadDay:
    """A server with a switch for each kind of trouble."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.kind = "none"
        self.history: list[bytes] = []
        api.fault = self.fault
        api.alter = self.alter

    def fault(self, request):
        watching = request.verb == "WATCH"
        if self.kind == "503":
            return Answer(503)
        if self.kind == "silent" and watching:
            return Answer(200, complete=False, then=asyncio.sleep(10_000))
        if self.kind == "short" and watching:
            return Answer(200)
        if self.kind == "gone" and watching:
            return Answer(410, status(410, "Expired"))
        if self.kind == "stale list" and not watching:
            return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": []})
        return None

    def alter(self, line):
        self.history.append(line)
        if self.kind == "cut":
            raise ConnectionResetError
        if self.kind == "garbage":
            return [line, b'{"type":"ADDED","object":{"metadata":\n']
        if self.kind == "duplicate":
            return [line, line]
        if self.kind == "replay":
            return [line, self.history[len(self.history) // 2], self.history[0]]
        return [line]


class Watcher:
    """Rebuilds the cache from deltas alone, and checks that each object only moves forward."""

    def __init__(self) -> None:
        self.objects: dict[str, Pod] = {}
        self.newest: dict[str, int] = {}

    def __call__(self, delta: Delta[Pod]) -> None:
        if delta.change is CacheEvent.SYNCED:
            return
        pod = delta.object
        version = int(pod.metadata.resource_version)
        assert version >= self.newest.get(pod.metadata.uid, 0), "an object went back in time"
        self.newest[pod.metadata.uid] = version
        if delta.change is CacheEvent.DELETED:
            assert self.objects.pop(pod.name).metadata.uid == pod.metadata.uid
        else:
            assert (pod.name in self.objects) is (delta.change is CacheEvent.UPDATED)
            self.objects[pod.name] = pod


@settings(max_examples=100)
@given(steps)
@example([("wait", 50)] * 4 + [("put", "a")])  # a change at the very moment at which a watch ends
@example([("wait", 50)] * 4 + [("put", "a"), ("compact", "")])  # which is compacted then
@example([("put", "a"), ("wait", 1), ("spoil", "a"), ("wait", 1), ("remove", "a")])  # stayed as a ghost
@example([("spoil", "a"), ("fault", "gone"), ("wait", 50), ("put", "a")])  # stayed noted after the relist
@example([("put", "a"), ("fault", "cut"), ("wait", 1), ("remove", "a"), ("spoil", "a")])  # another uid
def test_the_cache_converges_and_its_deltas_tell_the_same_story(plan):
    clock = VirtualClock()

    async def main() -> None:
        api = FakeApi()
        day = BadDay(api)
        informer = Informer(Client(clock, AsgiTransport(api), seed=1), PODS, page_size=2)
        watcher = Watcher()
        failures: list[BaseException] = []

        def told(delta: Delta[Pod]) -> None:
            try:
                watcher(delta)
            except AssertionError as error:  # the cache goes on after a failing subscriber; the test must not
                failures.append(error)

        informer.subscribe(told)
        owners: KeyIndex[Pod, str] = by_owner()
        informer.add_index(owners)
        task = asyncio.create_task(informer.run())
        for kind, argument in plan:
            await act(api, day, clock, kind, argument)
        day.kind = "none"
        # The longest backoff is a minute, and one more covers a watch that was silent when the trouble ended.
        await clock.sleep(180)
        task.cancel()
        assert not failures
        there = {name: thing["metadata"] for (_, name), thing in api.objects.items() if not is_spoilt(thing)}
        spoilt = {name: thing["metadata"] for (_, name), thing in api.objects.items() if is_spoilt(thing)}
        cached = {pod.name: pod.metadata for pod in informer.store}
        assert {name: cached[name].resource_version for name in cached if name not in spoilt} == {
            name: meta["resourceVersion"] for name, meta in there.items()
        }
        # Of an object that cannot be read any more its last readable version stays, never that of another object.
        assert all(cached[name].uid == meta["uid"] for name, meta in spoilt.items() if name in cached)
        assert {name: note.uid for (_, name), note in informer.counts.unreadable.items()} == {
            name: meta["uid"] for name, meta in spoilt.items()
        }
        assert {name: pod.metadata for name, pod in watcher.objects.items()} == cached
        assert sum(len(owners.get(key)) for key in list(owners.keys())) == len(cached)
        assert len(api.requests) < 60 + clock.monotonic()

    clock.run(main())


def is_spoilt(thing):
    return "spec" in thing


async def act(api, day, clock, kind, argument):
    if kind in {"put", "spoil"}:
        owner = {"ownerReferences": [{"kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}]}
        odd = {"spec": {"containers": 7}} if kind == "spoil" else {}
        await api.put(argument, metadata=owner, **odd)
    elif kind == "remove" and ("default", argument) in api.objects:
        await api.remove(argument)
    elif kind == "wait":
        await clock.sleep(argument)
    elif kind == "fault":
        day.kind = argument
    elif kind == "compact":
        api.compact()
