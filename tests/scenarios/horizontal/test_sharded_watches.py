"""Copies with shards watch only the namespaces of their shards, and whoever takes a shard over lists it first."""

import itertools
from collections.abc import Awaitable, Callable

import pytest

from tests.faults.horizontal.scene import lists
from tests.scenarios.copies import cached
from tests.scenarios.horizontal.sharing import LEASE, LOOK, PERIOD
from tests.scenarios.horizontal.teams import PLACES, PODS_EACH, Teams, selectors, team, with_teams
from trimtab.cluster import errors
from trimtab.cluster.transport import Request, Response
from trimtab.model.status import Status
from trimtab.operator.share_keeper import KEEP_SECONDS


def test_each_copy_caches_the_pods_of_its_shards_only_and_takes_over_those_of_a_killed_one():
    async def act(teams: Teams) -> None:
        one, two = teams.add("one"), teams.add("two")
        await teams.pass_time(40)
        assert [len(copy.shards.held()) for copy in (one, two)] == [2, 2]
        assert teams.of(one) | teams.of(two) == set(PLACES)
        # The copy that came first had all shards for a moment.
        await teams.pass_time(KEEP_SECONDS)
        for copy in (one, two):
            own = teams.of(copy)
            assert cached(copy, "pods") == dict.fromkeys(own, PODS_EACH)
            assert set(cached(copy, "horizontalpodautoscalers")) == own
            assert set(cached(copy, "deployments")) == own
            # Nothing was sent for nothing: the first list already left the others out.
            assert copy.actor.count("trimtab_cache_dropped_objects_total", resource="pods") == 0
            assert copy.actor.count("trimtab_cached_objects", resource="pods") == PODS_EACH * len(own)
            assert copy.actor.operator.health() == {}
        settled = teams.stage.clock.monotonic()
        await teams.pass_time(2 * PERIOD)
        assert teams.decided(one, settled) == teams.of(one)
        assert teams.decided(two, settled) == teams.of(two)

        orphaned = teams.of(one)
        one.crash()
        killed = teams.stage.clock.monotonic()
        await teams.pass_time(LEASE + 3 * LOOK + PERIOD)
        assert cached(two, "pods") == dict.fromkeys(PLACES, PODS_EACH)
        assert orphaned <= teams.decided(two, killed)
        assert teams.most_owners == 1

    with_teams(act)


def test_a_copy_that_hands_a_shard_over_drops_it_and_no_period_is_missed():
    async def act(teams: Teams) -> None:
        one = teams.add("one")
        await teams.pass_time(40)
        assert cached(one, "pods") == dict.fromkeys(PLACES, PODS_EACH)
        two = teams.add("two")
        await teams.pass_time(2 * PERIOD + KEEP_SECONDS)
        for copy in (one, two):
            assert cached(copy, "pods") == dict.fromkeys(teams.of(copy), PODS_EACH)
            assert {hpa.key.partition("/")[0] for hpa in copy.actor.operator.hpas} == teams.of(copy)
        assert one.actor.count("trimtab_cached_objects", resource="pods") < PODS_EACH * len(PLACES)
        moved = sorted((when, copy.name, name) for copy in (one, two) for when, name in copy.writes)
        for place in teams.of(two):
            times = [(when, copy) for when, copy, name in moved if name == place]
            assert max(after[0] - before[0] for before, after in itertools.pairwise(times)) <= (
                PERIOD + 2 * LOOK
            )
        assert teams.most_owners == 1

    with_teams(act)


def test_a_shard_that_is_lost_for_a_moment_is_not_listed_again():
    async def act(teams: Teams) -> None:
        one = teams.add("one")
        await teams.pass_time(40)
        before = lists(one.actor, "pods")
        one.lease_line.answer = lambda _: errors.TransportError("no Lease can be renewed")
        await teams.pass_time(LEASE + 2 * LOOK)
        assert one.shards.held() == ()
        one.lease_line.answer = lambda _: None
        await teams.pass_time(10)
        assert one.shards.held() == (0, 1, 2, 3)
        assert cached(one, "pods") == dict.fromkeys(PLACES, PODS_EACH)
        assert lists(one.actor, "pods") == before

    with_teams(act)


def test_a_new_namespace_is_dropped_where_it_does_not_belong_and_left_out_from_then_on():
    async def act(teams: Teams) -> None:
        one, two = teams.add("one"), teams.add("two")
        await teams.pass_time(40)
        await team(teams.stage, "later")
        teams.places.append("later")
        await teams.pass_time(60)
        right, wrong = (one, two) if "later" in teams.of(one) else (two, one)
        assert cached(right, "pods")["later"] == PODS_EACH
        assert "later" not in cached(wrong, "pods")
        assert "later" in teams.decided(right, 0)
        assert wrong.actor.count("trimtab_cache_dropped_objects_total", resource="pods") > 0
        assert "metadata.namespace!=later" in selectors(wrong, "pods")[-1].split(",")

    with_teams(act)


@pytest.mark.parametrize("refused", ["namespaces", "selectors"])
def test_what_the_server_refuses_costs_bytes_and_no_decision(refused):
    """Without the right to list namespaces, or with a proxy that takes no long address, objects are dropped here."""

    async def act(teams: Teams) -> None:
        async def refuse(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
            if refused == "namespaces" and request.path == "/api/v1/namespaces" and request.method == "GET":
                raise errors.Forbidden("list", Status(code=403, message="not you"))
            if refused == "selectors" and len(dict(request.query).get("fieldSelector", "")) > 100:
                raise errors.ApiError("list", Status(code=414, message="too long"))
            return await send(request)

        teams.stage.transport.around = refuse
        one, two = teams.add("one"), teams.add("two")
        await teams.pass_time(60)
        since = teams.stage.clock.monotonic()
        await teams.pass_time(2 * PERIOD)
        for copy in (one, two):
            assert cached(copy, "pods") == dict.fromkeys(teams.of(copy), PODS_EACH)
            assert teams.decided(copy, since) == teams.of(copy)
            assert copy.actor.count("trimtab_cache_dropped_objects_total", resource="pods") > 0

    with_teams(act)
