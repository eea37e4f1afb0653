"""Lists, pages and watches: the cache follows a server it did not write."""

import asyncio

import pytest

from tests.client_suite.objects import CONFIG_MAPS, config_map, pod
from trimtab.cluster import errors
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.client import ListOptions
from trimtab.cluster.codec.objects import PartialObject
from trimtab.cluster.events import EventBroadcaster
from trimtab.cluster.leases.family import Family
from trimtab.cluster.resource import CORE_EVENTS, LEASES, PODS
from trimtab.cluster.transport import Request, lines
from trimtab.model.core.objects import ObjectReference
from trimtab.model.json import wire

pytestmark = pytest.mark.versions

MAPS = CONFIG_MAPS.into(PartialObject)


def names(informer):
    return sorted(obj.metadata.name for obj in informer.store if obj.metadata.name.startswith("m"))


async def test_pages_join_to_the_whole_list_of_one_version(api_server):
    client, ns = api_server.client, api_server.namespace
    for number in range(7):
        await client.create(MAPS, config_map(f"m{number}"), ns)
    pages = [
        page
        async for page in client.pages(
            MAPS, ListOptions(ns, fields="metadata.name!=kube-root-ca.crt"), limit=3
        )
    ]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1
    found = [obj.metadata.name for page in pages for obj in page.items]
    assert found == [f"m{number}" for number in range(7)]


async def test_pages_show_the_state_of_the_first_one(api_server):
    client, ns = api_server.client, api_server.namespace
    for number in range(4):
        await client.create(MAPS, config_map(f"m{number}", labels={"x": "y"}), ns)
    found = []
    async for page in client.pages(MAPS, ListOptions(ns, "x=y"), limit=2):
        found += [obj.metadata.name for obj in page.items]
        if len(found) == 2:
            await client.delete(MAPS, "m3", ns)
            await client.create(MAPS, config_map("m9", labels={"x": "y"}), ns)
    assert found == ["m0", "m1", "m2", "m3"]


async def test_the_cache_follows_additions_changes_and_deletions(api_server):
    client, ns = api_server.client, api_server.namespace
    await client.create(MAPS, config_map("m0"), ns)
    informer = await api_server.follow(Informer(client, MAPS, ListOptions(ns)))
    assert names(informer) == ["m0"]
    await client.create(MAPS, config_map("m1"), ns)
    changed = await client.patch(MAPS, "m0", ns, {"data": {"x": "1"}})
    await client.delete(MAPS, "m1", ns)
    await client.create(MAPS, config_map("m2"), ns)
    await api_server.eventually(lambda: names(informer) == ["m0", "m2"])
    cached = informer.store.get("m0", ns)
    assert cached.metadata.resource_version == changed.metadata.resource_version
    assert informer.counts.lists == 1
    assert informer.counts.stale_events == 0


async def test_an_object_that_leaves_the_selection_leaves_the_cache(api_server):
    client, ns = api_server.client, api_server.namespace
    await client.create(MAPS, config_map("m0", labels={"app": "web"}), ns)
    informer = await api_server.follow(Informer(client, MAPS, ListOptions(ns, "app=web")))
    await client.patch(MAPS, "m0", ns, {"metadata": {"labels": {"app": "db"}}})
    await api_server.eventually(lambda: names(informer) == [])
    await client.patch(MAPS, "m0", ns, {"metadata": {"labels": {"app": "web"}}})
    await api_server.eventually(lambda: names(informer) == ["m0"])
    assert informer.counts.lists == 1


async def test_a_watch_of_all_namespaces_keeps_them_apart(api_server):
    client, ns = api_server.client, api_server.namespace
    informer = await api_server.follow(Informer(client, MAPS, ListOptions(labels=f"suite={ns}")))
    await client.create(MAPS, config_map("m0", labels={"suite": ns}), ns)
    await client.create(MAPS, config_map(f"m0-{ns}", labels={"suite": ns}), "default")
    await api_server.eventually(lambda: len(informer.store) == 2)
    assert list(informer.store.in_namespace(ns)) == ["m0"]
    await client.delete(MAPS, f"m0-{ns}", "default")


async def watch_lines(client, version, ns, *, seconds="1", count=None):
    query = [
        ("watch", "true"),
        ("resourceVersion", version),
        ("timeoutSeconds", seconds),
        ("allowWatchBookmarks", "true"),
    ]
    request = Request("GET", MAPS.path(ns), query)
    found = []
    async with client.sender.watch("watching", request) as stream:
        async for line in lines(stream, request.max_line):
            found.append(wire.decode(line, dict))
            if count is not None and len(found) == count:
                break
    return found


async def test_a_watch_from_a_version_replays_what_came_after_it_in_order(api_server):
    client, ns = api_server.client, api_server.namespace
    first = await client.create(MAPS, config_map("m0"), ns)
    await client.patch(MAPS, "m0", ns, {"data": {"x": "1"}})
    await client.delete(MAPS, "m0", ns)
    events = await watch_lines(client, first.metadata.resource_version, ns, seconds="10", count=2)
    ours = [event for event in events if event["object"]["metadata"]["name"] == "m0"]
    assert [event["type"] for event in ours] == ["MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in ours]
    assert versions == sorted(versions)
    assert versions[0] > int(first.metadata.resource_version)


async def test_a_version_from_the_future_is_refused(api_server):
    client, ns = api_server.client, api_server.namespace
    listing = await client.list(MAPS, ListOptions(ns))
    future = str(int(listing.resource_version) + 1_000_000)
    query = [("resourceVersion", future), ("resourceVersionMatch", "NotOlderThan")]
    with pytest.raises(errors.ServerTimeout, match="Too large resource version"):
        await client.sender.send_once("listing", Request("GET", MAPS.path(ns), query))


async def test_a_broken_version_is_refused_with_its_text(api_server):
    client, ns = api_server.client, api_server.namespace
    # kube-apiserver calls this its own fault (500) on a watch; what counts is that no stream begins.
    with pytest.raises(errors.ApiError, match="not-a-number"):
        await watch_lines(client, "not-a-number", ns)


async def test_many_informers_share_one_transport(api_server):
    client, ns = api_server.client, api_server.namespace
    informers = [await api_server.follow(Informer(client, MAPS, ListOptions(ns))) for _ in range(8)]
    await asyncio.gather(*(client.create(MAPS, config_map(f"m{number}"), ns) for number in range(20)))
    await api_server.eventually(lambda: all(len(names(informer)) == 20 for informer in informers))
    assert [informer.counts.lists for informer in informers] == [1] * 8


async def test_leader_election_works_on_the_server(api_server):
    client, ns = api_server.client, api_server.namespace
    elector = Family(client, ns, "trimtab", "one")
    task = asyncio.create_task(elector.run())
    await api_server.eventually(elector.may_write)
    lease = await client.get(LEASES, "trimtab-0", ns)
    assert lease.spec.holder_identity == "one/1"
    assert abs((lease.spec.renew_time - client.clock.now()).total_seconds()) < 60
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (await client.get(LEASES, "trimtab-0", ns)).spec.holder_identity == ""


async def test_events_can_be_read_back_through_the_core_group(api_server):
    client, ns = api_server.client, api_server.namespace
    made = await client.create(PODS, pod("p"), ns)
    about = ObjectReference(kind="Pod", api_version="v1", namespace=ns, name="p", uid=made.metadata.uid)
    broadcaster = EventBroadcaster(client, "suite")
    recorder = broadcaster.recorder("trimtab.dev/test")
    recorder.event(about, "Normal", "Tested", "it works")
    await broadcaster.flush()
    recorder.event(about, "Normal", "Tested", "it works")
    await broadcaster.flush()
    assert broadcaster.dropped == 0
    (event,) = [
        event
        for event in (await client.list(CORE_EVENTS, ListOptions(ns))).items
        if event["reason"] == "Tested"
    ]
    assert event["message"] == "it works"
    assert event["involvedObject"]["uid"] == made.metadata.uid
    assert event["series"]["count"] == 2
