"""What a process with shards watches, and which namespaces its requests leave out."""

import asyncio
from typing import Any

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import FakeApi
from trimtab.clock import VirtualClock
from trimtab.cluster import errors
from trimtab.cluster.cache.parts import MOST_KNOWN, MOST_TEXT, Exclusions, Part, ShardedShare, Share
from trimtab.cluster.cache.shared import NamespacedInformer
from trimtab.cluster.cache.store import CacheEvent, Delta
from trimtab.cluster.client import Client
from trimtab.cluster.resource import PODS
from trimtab.model.status import Status


def shard_of(namespace):
    """Put `a0`, `a1` … into shard 0 and all others into shard 1; `big` is split."""
    return None if namespace == "big" else int(not namespace.startswith("a"))


def names(selector):
    return [term.removeprefix("metadata.namespace!=") for term in filter(None, selector.split(","))]


def test_namespaces_of_others_are_left_out_those_with_most_objects_first():
    known = Exclusions()
    known.learn(["a0", "b0", "b1", "b2"])
    for name in ("b2", "b2", "b1"):
        known.note_dropped(name)
    assert names(known.selector(lambda name: name[0] == "a")) == ["b0", "b1", "b2"]
    known.budget = 60
    assert names(known.selector(lambda name: name[0] == "a")) == ["b1", "b2"]
    known.budget = 0
    assert known.selector(lambda name: name[0] == "a") == ""


def test_a_selector_stays_within_the_longest_text():
    known = Exclusions()
    known.learn(f"namespace-of-a-large-cluster-{number}" for number in range(5000))
    selector = known.selector(lambda _: False)
    assert MOST_TEXT * 0.7 < len(selector) < MOST_TEXT
    assert len(names(selector)) > 500


def test_namespaces_that_come_and_go_are_forgotten_and_known_again_when_their_objects_arrive():
    known = Exclusions()
    known.learn(f"job-{number}" for number in range(MOST_KNOWN + 3))
    known.budget = 10**9
    version = known.version
    left_out = names(known.selector(lambda _: False))
    assert len(left_out) == MOST_KNOWN
    assert "job-2" not in left_out
    known.note_dropped("job-2")
    assert known.version > version
    assert "job-2" in names(known.selector(lambda _: False))


@pytest.mark.parametrize(
    ("error", "is_shorter"),
    [
        pytest.param(errors.ApiError("x", Status(code=414)), True, id="too long"),
        pytest.param(errors.ApiError("x", Status(code=431)), True, id="headers too large"),
        pytest.param(errors.BadRequest("x", Status(code=400)), True, id="more than it takes"),
        pytest.param(errors.ServerError("x", Status(code=500)), False, id="another failure"),
        pytest.param(errors.TransportError("x"), False, id="no answer"),
    ],
)
def test_a_selector_that_a_server_refuses_becomes_shorter(error, is_shorter):
    known = Exclusions()
    known.learn(["b0"])
    part = Part("shard 0", accepts=lambda name: name[0] == "a", exclusions=known)
    part.note_failure(error, part.fields())
    assert known.budget == (MOST_TEXT // 2 if is_shorter else MOST_TEXT)


def test_many_refusals_of_one_selector_make_it_shorter_once():
    """Each informer halved it, so that ten informers left nothing out any more."""
    known = Exclusions()
    known.learn(f"some-namespace-{number:04}" for number in range(900))
    parts = [
        Part("shard 0", accepts=lambda name: name.endswith("0"), exclusions=known),
        Part("shard 1", accepts=lambda name: name.endswith("1"), exclusions=known),
    ]
    sent = [(part, part.fields()) for part in parts for _informer in range(10)]
    refusal = errors.ApiError("x", Status(code=414))
    for budget in (MOST_TEXT // 2, MOST_TEXT // 4):
        for part, fields in sent:
            part.note_failure(refusal, fields)
        assert known.budget == budget
        sent = [(part, part.fields()) for part in parts for _informer in range(10)]
        assert all(budget / 2 < len(fields) <= budget for _, fields in sent)


def test_a_part_without_exclusions_is_not_blamed_for_a_bad_request():
    known = Exclusions()
    part = Part("shard 0", accepts=lambda _: True, exclusions=known)
    part.note_failure(errors.BadRequest("x", Status(code=400)), part.fields())
    assert known.budget == MOST_TEXT


def test_a_fixed_share_is_all_namespaces_or_those_that_are_named():
    assert list(Share().parts) == [""]
    assert Share().covers_all
    assert list(Share(["a", "b"]).parts) == ["a", "b"]
    assert not Share(["a"]).covers_all
    assert Share(["a"]).part_of("a") == "a"
    assert Share().part_of("a") == ""


def test_parts_come_and_go_with_shards():
    share = ShardedShare(Client(VirtualClock(), AsgiTransport(FakeApi())), shard_of)
    told = []
    share.listen(lambda part, is_added: told.append((part.name, is_added)))
    assert not share.parts
    share.enter(0)
    share.enter(1)
    share.leave(0)
    assert list(share.parts) == ["shard 1"]
    assert share.parts_of(1) == ("shard 1",)
    share.leave(1)
    share.leave(1)
    assert told == [
        ("shard 0", True),
        ("shard 1", True),
        ("shard 0", False),
        ("shard 1", False),
    ]
    assert [share.part_of(name) for name in ("a7", "b7")] == ["shard 0", "shard 1"]


def test_watched_namespaces_are_parts_of_their_own():
    share = ShardedShare(Client(VirtualClock(), AsgiTransport(FakeApi())), shard_of, ["a0", "b0"])
    share.enter(1)
    assert list(share.parts) == ["b0"]
    assert share.part_of("b0") == "b0"


def run(scenario):
    clock = VirtualClock()

    async def main():
        api = FakeApi()
        for namespace in ("a0", "a1", "b0"):
            await api.put("web", namespace)
        client = Client(clock, AsgiTransport(api), seed=1)
        share = ShardedShare(client, shard_of)
        informer = NamespacedInformer(client, PODS, share)
        deltas: list[Delta[Any]] = []
        informer.subscribe(deltas.append)
        task = asyncio.create_task(informer.run())
        try:
            return await scenario(api, share, informer, deltas, clock)
        finally:
            task.cancel()
            await asyncio.wait([task])

    return clock.run(main())


def keys(informer):
    return sorted(pod.metadata.key for pod in informer)


def test_a_shard_is_listed_when_it_is_entered_and_dropped_when_it_is_left():
    """The server of this test selects nothing, so that everything arrives and the rest is dropped."""

    async def scenario(api, share, informer, deltas, clock):
        await clock.sleep(5)
        assert len(informer) == 0
        assert not informer.has_settled("a0")
        share.enter(0)
        await informer.wait_parts(["shard 0"])
        assert informer.has_settled("a0")
        assert informer.has_listed("a1")
        assert not informer.has_settled("b0")
        assert keys(informer) == ["a0/web", "a1/web"]
        await api.put("db", "a0")
        await api.put("db", "b0")
        await clock.sleep(1)
        assert keys(informer) == ["a0/db", "a0/web", "a1/web"]
        assert informer.dropped() == 2
        assert informer.received() > 0
        before = informer.received(), informer.dropped()
        share.leave(0)
        assert keys(informer) == []
        assert (informer.received(), informer.dropped()) == before
        gone = [delta.object.metadata.key for delta in deltas if delta.change is CacheEvent.DELETED]
        assert sorted(gone) == ["a0/db", "a0/web", "a1/web"]
        share.enter(1)
        await informer.wait_parts(["shard 1"])
        assert keys(informer) == ["b0/db", "b0/web"]

    run(scenario)


def test_a_wait_for_a_shard_that_is_lost_ends():
    async def scenario(api, share, informer, deltas, clock):
        share.enter(0)
        waiting = asyncio.ensure_future(informer.wait_parts(["shard 0"]))
        await asyncio.sleep(0)
        share.leave(0)
        await asyncio.wait_for(waiting, 5)
        assert keys(informer) == []

    run(scenario)


def test_events_of_other_shards_move_the_version_on():
    """Otherwise a watch that only others' objects pass would resume from a version that the server forgot."""

    async def scenario(api, share, informer, deltas, clock):
        share.enter(0)
        await informer.wait_parts(["shard 0"])
        lists = api.count()["LIST"]
        for _ in range(3):
            await api.put("web", "b0")
            await clock.sleep(20)
        api.compact()
        await clock.sleep(60)
        await api.put("new", "a1")
        await clock.sleep(1)
        assert "a1/new" in keys(informer)
        assert api.count()["LIST"] == lists

    run(scenario)
