"""Lists and watches: versions, pages, bookmarks, and what a filter does to events."""

import pytest

from tests.unit.lab.api import CONFIG_MAPS, RefusedError, config_map, running
from trimtab.clock import VirtualClock


async def test_a_watch_from_a_version_gets_what_came_later():
    async with running() as api:
        first = await api.create(CONFIG_MAPS, config_map("a"))
        await api.create(CONFIG_MAPS, config_map("b"))
        watch = await api.watch(CONFIG_MAPS, f"resourceVersion={first['metadata']['resourceVersion']}")
        await api.delete(f"{CONFIG_MAPS}/a")
        assert await watch.names(2) == [("ADDED", "b"), ("DELETED", "a")]
        await watch.close()


async def test_an_object_that_stops_matching_is_deleted_for_that_watch():
    async with running() as api:
        watch = await api.watch(CONFIG_MAPS, "resourceVersion=0&labelSelector=colour%3Dred")
        await api.create(CONFIG_MAPS, config_map("a", {"colour": "red"}))
        changed = await api.merge(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"colour": "blue"}}})
        await api.merge(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"colour": "red"}}})
        events = [await watch.next() for _ in range(3)]
        assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED"]
        assert events[1]["object"]["metadata"]["labels"] == {"colour": "red"}
        assert events[1]["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
        await watch.close()


async def test_a_watch_from_a_forgotten_version_ends_with_410():
    async with running(history=5) as api:
        first = await api.create(CONFIG_MAPS, config_map("a"))
        for number in range(8):
            await api.merge(f"{CONFIG_MAPS}/a", {"data": {"n": str(number)}})
        watch = await api.watch(CONFIG_MAPS, f"resourceVersion={first['metadata']['resourceVersion']}")
        (event,) = await watch.rest()
        assert event["type"] == "ERROR"
        assert event["object"]["code"] == 410
        assert event["object"]["reason"] == "Expired"


def test_a_quiet_watch_gets_bookmarks_and_ends_at_its_timeout():
    clock = VirtualClock()

    async def scenario():
        async with running(clock) as api:
            watch = await api.watch(
                CONFIG_MAPS, "resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=150"
            )
            return await watch.rest(), api.server.store.version

    events, version = clock.run(scenario())
    assert [event["type"] for event in events] == ["BOOKMARK", "BOOKMARK"]
    assert events[0]["object"]["metadata"]["resourceVersion"] == str(version)
    assert clock.monotonic() == 150


async def test_initial_events_end_with_a_marked_bookmark():
    async with running() as api:
        await api.create(CONFIG_MAPS, config_map("a"))
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        watch = await api.watch(CONFIG_MAPS, query)
        added, bookmark = await watch.next(), await watch.next()
        assert added["type"] == "ADDED"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await watch.close()


async def test_pages_show_the_state_of_the_first_page():
    async with running() as api:
        for name in "abcd":
            await api.create(CONFIG_MAPS, config_map(name))
        first = await api.get(CONFIG_MAPS, "limit=2")
        await api.delete(f"{CONFIG_MAPS}/c")
        await api.create(CONFIG_MAPS, config_map("bb"))
        second = await api.get(CONFIG_MAPS, f"limit=2&continue={first['metadata']['continue']}")
        assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
        assert first["metadata"]["remainingItemCount"] == 2
        assert [item["metadata"]["name"] for item in second["items"]] == ["c", "d"]
        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_page_of_a_forgotten_list_is_410():
    async with running(history=3) as api:
        for name in "abcd":
            await api.create(CONFIG_MAPS, config_map(name))
        first = await api.get(CONFIG_MAPS, "limit=2")
        for number in range(5):
            await api.merge(f"{CONFIG_MAPS}/a", {"data": {"n": str(number)}})
        with pytest.raises(RefusedError) as refused:
            await api.get(CONFIG_MAPS, f"limit=2&continue={first['metadata']['continue']}")
        assert refused.value.status == 410


async def test_a_list_at_an_exact_version_is_the_past():
    async with running() as api:
        made = await api.create(CONFIG_MAPS, config_map("a"))
        await api.create(CONFIG_MAPS, config_map("b"))
        version = made["metadata"]["resourceVersion"]
        listed = await api.get(CONFIG_MAPS, f"resourceVersion={version}&resourceVersionMatch=Exact")
        assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]


async def test_a_list_of_the_future_asks_to_retry():
    async with running() as api:
        with pytest.raises(RefusedError) as refused:
            await api.get(CONFIG_MAPS, "resourceVersion=99999&resourceVersionMatch=NotOlderThan")
        assert refused.value.status == 504
        assert refused.value.body["details"]["retryAfterSeconds"] == 1


async def test_a_stream_that_does_not_read_expires_instead_of_growing():
    async with running() as api:
        watch_cache = api.server.store.resource("configmaps").watch_cache
        stream = watch_cache.watch("default", backlog=3)
        for name in "abcde":
            await api.create(CONFIG_MAPS, config_map(name))
        assert stream.is_expired
        assert not list(stream.drain())
        watch_cache.stop(stream)


async def test_a_closed_watch_leaves_nothing_behind():
    async with running() as api:
        watch = await api.watch(
            CONFIG_MAPS, "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
        )
        await api.create(CONFIG_MAPS, config_map("a"))
        assert await watch.names(1) == [("ADDED", "a")]
        await watch.close()
        assert api.server.store.resource("configmaps").watch_cache.stream_count == 0
