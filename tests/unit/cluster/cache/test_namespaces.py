"""One kind in several namespaces: each is listed, refused and reported by itself, in virtual time."""

import asyncio

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi, status
from trimtab.clock import VirtualClock
from trimtab.cluster.cache.informer import Refusals
from trimtab.cluster.cache.shared import InformerFactory, NamespacedInformer, SharedInformers
from trimtab.cluster.client import Client
from trimtab.cluster.resource import PODS, Resource

NODES = Resource("", "v1", "nodes", "Node", PODS.struct, namespaced=False)


class Namespaces(FakeApi):
    """A server that lists each namespace apart, and refuses some."""

    def __init__(self):
        super().__init__()
        self.refused = {}
        self.fault = self._refusal

    def _refusal(self, request):
        for namespace, code in self.refused.items():
            if f"/namespaces/{namespace}/" in request.path or not namespace:
                return Answer(code, status(code, message=f"{namespace or 'all'} refused"))
        return None

    def _list(self, request):
        parts = request.path.split("/")
        if "namespaces" not in parts:
            return super()._list(request)
        namespace = parts[parts.index("namespaces") + 1]
        items = [found for (place, _), found in self.objects.items() if place == namespace]
        return Answer(200, {"metadata": {"resourceVersion": str(self.version)}, "items": items})


def run(scenario, namespaces=("a", "b"), what=PODS):
    clock = VirtualClock()

    async def main():
        api = Namespaces()
        for namespace in ("a", "b", "c"):
            await api.put("web", namespace)
        await api.put("db", "b")
        client = Client(clock, AsgiTransport(api), seed=1)
        informer = NamespacedInformer(client, what, namespaces, refusals=Refusals())
        task = asyncio.create_task(informer.run())
        try:
            return await scenario(api, informer, clock)
        finally:
            task.cancel()
            await asyncio.wait([task])

    return clock.run(main())


def test_only_watched_namespaces_are_listed():
    async def scenario(api, informer, clock):
        assert not informer.has_synced
        assert not informer.is_settled
        await informer.wait_synced()
        assert informer.has_synced
        assert informer.is_settled
        assert sorted((pod.metadata.namespace, pod.metadata.name) for pod in informer) == [
            ("a", "web"),
            ("b", "db"),
            ("b", "web"),
        ]
        assert len(informer) == 3
        assert [informer.count_in(namespace) for namespace in "abc"] == [1, 2, 0]
        assert informer.get("web", "a") is not None
        assert informer.get("db", "a") is None
        assert informer.get("web", "c") is None
        assert informer.informer_of("c") is None
        assert [namespace for namespace, _ in informer.informers()] == ["a", "b"]
        informer.note_written("c", "900")
        informer.note_written("b", "900")
        assert [each.resource_version for _, each in informer.informers()] == ["104", "104"]

    run(scenario)


def test_without_namespaces_all_are_listed_at_once():
    async def scenario(api, informer, clock):
        await informer.wait_synced()
        assert len(informer) == 4
        assert [informer.count_in(namespace) for namespace in "abc"] == [1, 2, 1]
        assert informer.informer_of("anything") is informer.informer_of("")

    run(scenario, namespaces=())


def test_objects_without_a_namespace_are_listed_whatever_is_watched():
    async def scenario(api, informer, clock):
        await informer.wait_synced()
        assert [namespace for namespace, _ in informer.informers()] == [""]

    run(scenario, what=NODES)


@pytest.mark.parametrize("refused", ["a", "b"])
def test_a_refused_namespace_does_not_hold_up_the_other(refused):
    async def scenario(api, informer, clock):
        api.refused = {refused: 403}
        await informer.wait_settled()
        await clock.sleep(5)
        assert informer.is_settled
        assert not informer.has_synced
        assert list(informer.refusals()) == [refused]
        assert f"{refused} refused" in informer.refusals()[refused]
        assert f"{refused} refused" in informer.last_error()
        assert informer.failure() == ""
        assert informer.staleness() <= 10
        assert list(informer.stale_reasons()) == [refused]
        assert list(informer.incomplete()) == [refused]
        await clock.sleep(300)
        assert informer.staleness() <= 60
        api.refused = {}
        await clock.sleep(60)
        assert informer.has_synced
        assert informer.refusals() == informer.stale_reasons() == informer.incomplete() == {}
        assert informer.last_error() is None

    run(scenario)


@pytest.mark.parametrize("code", [403, 404, 500])
def test_a_cache_that_becomes_stale_is_logged_once_and_once_when_it_is_well(caplog, code):
    """A right revoked while the process ran appeared in readyz only."""
    caplog.set_level("INFO")

    def logged():
        lines = [(record.levelname, record.getMessage()) for record in caplog.records]
        return [(level, line) for level, line in lines if "the cache" in line]

    async def scenario(api, informer, clock):
        await informer.wait_synced()
        assert logged() == []
        for _ in range(2):
            caplog.clear()
            api.refused = {"a": code}
            await clock.sleep(600)
            (level, line) = logged()[0]
            assert (len(logged()), level) == (1, "WARNING")
            assert line.startswith("pods of a: the cache may lack changes: ")
            assert "a refused" in line
            api.refused = {}
            await clock.sleep(120)
            assert logged()[1:] == [("INFO", "pods of a: the cache is up to date again")]

    run(scenario)


def test_where_everything_is_refused_nothing_is_stale():
    async def scenario(api, informer, clock):
        api.refused = {"a": 403, "b": 403}
        await informer.wait_settled()
        await clock.sleep(100)
        assert informer.staleness() == 0.0
        assert set(informer.refusals()) == {"a", "b"}

    run(scenario)


@pytest.mark.parametrize("failing", ["a", "b"])
def test_a_failure_of_one_namespace_is_that_of_the_whole(failing):
    async def scenario(api, informer, clock):
        await informer.wait_synced()
        api.refused = {failing: 500}
        await clock.sleep(200)
        assert f"{failing} refused" in informer.failure()
        assert informer.staleness() > 120
        assert informer.refusals() == {}
        assert list(informer.stale_reasons()) == [failing]

    run(scenario)


def test_a_kind_that_is_not_served_is_complete_and_empty():
    async def scenario(api, informer, clock):
        api.refused = {"": 404}
        await informer.wait_settled()
        assert informer.incomplete() == {}
        assert list(informer.stale_reasons()) == [""]
        assert len(informer) == 0

    run(scenario, namespaces=())


def test_subscribers_hear_of_every_namespace():
    async def scenario(api, informer, clock):
        heard = []
        informer.subscribe(lambda delta: heard.append((delta.change.value, delta.new and delta.new.metadata)))
        await informer.wait_synced()
        await api.put("new", "a")
        await clock.sleep(1)
        return [(change, meta and f"{meta.namespace}/{meta.name}") for change, meta in heard]

    heard = run(scenario)
    assert [change for change, _ in heard].count("synced") == 2
    assert {name for change, name in heard if change == "added"} == {"a/web", "b/web", "b/db", "a/new"}


def test_components_share_informers_and_know_their_own():
    clock = VirtualClock()

    async def main():
        api = Namespaces()
        api.refused = {"b": 403}
        await api.put("web", "a")
        factory = InformerFactory(Client(clock, AsgiTransport(api), seed=1), ["a", "b"])
        first, second = SharedInformers(factory), SharedInformers(factory)
        assert first.share.namespaces == ("a", "b")
        assert not first.has(PODS)
        informer = first.get(PODS)
        assert first.get(PODS) is informer
        assert second.has(PODS)
        assert list(second) == []
        assert list(first) == [informer]
        assert first.running("", "Pod", "a") is None
        await first.wait_settled()
        await clock.sleep(1)
        assert second.get(PODS) is informer
        assert first.running("", "Pod", "a") is informer
        assert first.running("", "Pod", "b") is None
        assert first.running("", "Pod", "c") is None
        assert first.running("", "Node") is None
        assert list(first.stale_reasons()[("", "Pod")]) == ["b"]
        api.refused = {}
        await clock.sleep(60)
        assert first.stale_reasons() == {}
        before = len(asyncio.all_tasks())
        await factory.close()
        assert len(asyncio.all_tasks()) < before
        requests = len(api.requests)
        await clock.sleep(300)
        assert len(api.requests) == requests

    clock.run(main())
