"""Recommenders with shards watch only the namespaces of their shards, and nothing is lost when a shard moves.

A replica that gains a shard lists it before it recommends. The history is that of the last owner's checkpoints, a kill
between two owners counts once, and each owner collects the orphaned checkpoints of its shards.
"""

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.scenarios.copies import cached
from tests.scenarios.vertical.sharing import Copy
from tests.scenarios.vertical.stage import Stage
from tests.scenarios.vertical.teams import (
    IDLE,
    LEASE,
    LOOK,
    LOOP,
    PLACES,
    SHARDS,
    TAKEOVER,
    Teams,
    kill,
    team,
    use,
    with_teams,
)
from tests.support.transport import status
from trimtab.cluster.client import ListOptions
from trimtab.cluster.leases.family import MOST_SHARDS, Family, rank
from trimtab.cluster.resource import CORE_EVENTS, LEASES, PODS, Json
from trimtab.cluster.transport import Request, Response
from trimtab.decide.vertical.control.role_labels import LABEL_ANNOTATION, LEASE_ANNOTATION
from trimtab.decide.vertical.input.memory_windows import WINDOWS_ANNOTATION
from trimtab.model.times import format_micro_time
from trimtab.operator.horizontal.config import decision_config
from trimtab.operator.horizontal.controller import HpaController
from trimtab.operator.share_keeper import KEEP_SECONDS
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS
from trimtab.operator.vertical.wiring import make_roles


def test_each_copy_caches_its_shards_only_and_takes_over_those_of_a_killed_one_with_their_history():
    async def act(teams: Teams) -> None:
        stage = teams.stage
        one, two = teams.add("one"), teams.add("two")
        await teams.pass_time(6 * LOOP)
        assert [len(copy.shards.held()) for copy in (one, two)] == [2, 2]
        assert teams.of(one) | teams.of(two) == set(PLACES)
        for copy in (one, two):
            own = teams.of(copy)
            assert cached(copy, "pods") == dict.fromkeys(own, 2)
            assert cached(copy, VPAS.plural) == dict.fromkeys(own, 1)
            assert cached(copy, "statefulsets") == dict.fromkeys(own, 1)
            assert teams.recommended(copy, 0) == own
            asked = [one for one in copy.actor.line.sent if one.method == "GET"]
            listed = [one for one in asked if one.path.endswith((f"/{CHECKPOINTS.plural}", "/events"))]
            assert listed
            # Nothing of another shard was sent: each list and watch leaves its namespaces out.
            for request in listed:
                fields = dict(request.query)["fieldSelector"].split(",")
                assert {f"metadata.namespace!={place}" for place in {*PLACES} - own} <= set(fields)
            assert copy.actor.count("trimtab_cache_dropped_objects_total", resource="pods") == 0
            assert copy.actor.recommender.health() == {}

        before = {place: await teams.target(place) for place in PLACES}
        for place in PLACES:
            use(stage, place, IDLE)
        await teams.pass_time(2 * LOOP)
        orphaned = teams.of(one)
        killed = stage.clock.monotonic()
        one.crash()
        await teams.pass_time(TAKEOVER + 3 * LOOP)
        assert cached(two, "pods") == dict.fromkeys(PLACES, 2)
        assert orphaned <= {key.partition("/")[0] for key in _recommendations(two)}
        # What was used before is known from checkpoints only. Without them the target would be an eighth.
        assert {place: await teams.target(place) for place in PLACES} == pytest.approx(before, rel=0.1)
        assert teams.recommended(two, killed) <= set(PLACES)
        assert teams.most_owners == 1

    with_teams(act)


def _recommendations(copy: Copy) -> list[str]:
    recommended = [f"{place}/{place}" for place in PLACES]
    return [key for key in recommended if copy.actor.recommender.recommendation(key) is not None]


def test_a_copy_that_hands_shards_over_saves_their_history_and_drops_their_objects():
    async def act(teams: Teams) -> None:
        stage = teams.stage
        one = teams.add("one", checkpoints_interval=timedelta(hours=5))
        await teams.pass_time(6 * LOOP)
        assert cached(one, "pods") == dict.fromkeys(PLACES, 2)
        before = {place: await teams.target(place) for place in PLACES}
        for place in PLACES:
            use(stage, place, IDLE)
        two = teams.add("two", checkpoints_interval=timedelta(hours=5))
        await teams.pass_time(2 * LOOP + KEEP_SECONDS)
        for copy in (one, two):
            assert cached(copy, "pods") == dict.fromkeys(teams.of(copy), 2)
            assert set(cached(copy, VPAS.plural)) == teams.of(copy)
        saved = await teams.checkpoints()
        for place in teams.of(two):
            assert saved[f"{place}/{place}-app"]["status"]["totalSamplesCount"] >= 6
        assert {place: await teams.target(place) for place in PLACES} == pytest.approx(before, rel=0.1)
        assert teams.most_owners == 1

    with_teams(act)


def test_a_copy_that_stops_while_it_hands_its_last_shard_over_still_saves_the_history():
    """It waited for the last save only while it had another shard, so that a rollout could lose minutes of history."""

    async def act(teams: Teams) -> None:
        async def slowly(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
            if CHECKPOINTS.plural in request.path and request.method != "GET":
                await teams.stage.clock.sleep(1)
            return await send(request)

        settings: dict[str, Any] = {"checkpoints_interval": timedelta(hours=5)}
        # With five copies for four shards the one with the last slot of the members has none.
        slots = {name: _member_slot(name) for name in ("one", "two", "three", "four", "five")}
        *others, last = sorted(slots, key=lambda name: slots[name])
        leaving = teams.add(last, **settings)
        await teams.pass_time(6 * LOOP)
        teams.stage.transport.around = slowly
        for name in others:
            teams.add(name, **settings)
        while leaving.shards.may_write():
            await teams.stage.clock.sleep(0.1)
        teams.copies.remove(leaving)
        await leaving.stop()
        await teams.pass_time(LOOP)
        saved = await teams.checkpoints()
        for place in PLACES:
            assert saved[f"{place}/{place}-app"]["status"]["totalSamplesCount"] >= 6, place

    with_teams(act)


def _member_slot(name: str) -> int:
    return max(range(MOST_SHARDS), key=lambda number: rank(f"{name}/{SHARDS}", number))


def test_a_shard_is_ready_and_not_recommended_for_until_all_its_lists_are_complete():
    """Its VPAs without their pods would have kept no history, and its pods without their VPAs no sample."""

    async def act(teams: Teams) -> None:
        is_slow = True

        def is_hanging(request: Request) -> bool:
            return is_slow and request.method == "GET" and request.path.endswith("/pods")

        one = teams.add("one")
        one.actor.line.is_hanging = is_hanging
        await teams.pass_time(25)
        assert len(one.shards.held()) == 4
        assert set(cached(one, VPAS.plural)) == set(PLACES)
        assert one.writes == []
        assert await teams.checkpoints() == {}
        is_slow = False
        await teams.pass_time(60)
        assert teams.recommended(one, 0) == set(PLACES)
        assert one.actor.recommender.health() == {}

    with_teams(act)


async def _history(teams: Teams, place: str) -> tuple[Json, list[tuple[int, int]]]:
    """Return the memory that a checkpoint knows: its histogram, and the peaks of its running windows by usage and kill."""
    saved = (await teams.checkpoints())[f"{place}/{place}-app"]
    text = saved["metadata"]["annotations"][WINDOWS_ANNOTATION]
    windows = json.loads(text)["windows"]
    return saved["status"]["memoryHistogram"], [tuple(window[1:]) for _, window in sorted(windows.items())]


class Moment:
    """When a pod is killed for memory, as the shard of its VPA moves from one copy to the next."""

    COUNTED = "counted by the owner that dies, and not saved"
    SEEN = "seen by the owner that dies, before its next loop"
    BETWEEN = "while the shard has no owner"
    LISTED = "after the shard was gained, before its pods are listed"
    HANDED_OVER = "seen by the owner that hands over, before its next loop"
    NEVER = "the shard does not move"


@pytest.mark.parametrize(
    "moment", [value for name, value in vars(Moment).items() if name.isupper() and name != "NEVER"]
)
def test_a_kill_around_a_change_of_owners_counts_exactly_once(moment):
    """What is saved of the memory in the end equals what one owner saves that is there all the time."""
    found: dict[str, Any] = {}

    def play(moment: str) -> None:
        async def act(teams: Teams) -> None:
            found[moment] = await _killed_at(teams, moment)

        with_teams(act)

    play(Moment.NEVER)
    play(moment)
    assert found[moment] == found[Moment.NEVER]
    (_, windows), target = found[Moment.NEVER]
    assert [oom > 0 for _, oom in windows] == [True, False]
    assert target > 4e9 * 1.15


async def _killed_at(teams: Teams, moment: str) -> Any:
    stage, place = teams.stage, PLACES[0]
    # Nothing is saved because it is due: only when a VPA is new, and when its shard is handed over.
    settings: dict[str, Any] = {"checkpoints_interval": timedelta(minutes=4)}
    one = teams.add("one", **settings)
    await teams.pass_time(4 * LOOP)
    # Both start alone, so that the first has all shards before the second comes.
    two = teams.add("two", **settings) if moment not in (Moment.NEVER, Moment.HANDED_OVER) else None
    await teams.pass_time(KEEP_SECONDS + LOOP)
    owner = teams.owner(f"{place}/{place}")
    await _between_loops(teams, owner, place)
    if moment in (Moment.BETWEEN, Moment.LISTED):
        owner.crash()
        await teams.pass_time(5)
    if moment == Moment.LISTED:
        heir = next(copy for copy in (one, two) if copy is not None and copy is not owner)
        heir.actor.line.is_hanging = lambda request: request.path.endswith("/pods")
        await teams.pass_time(LEASE + 3 * LOOK)
        assert heir.shards.of(f"{place}/{place}").may_write()
    await kill(stage, place, f"{place}-0")
    if moment == Moment.LISTED:
        heir.actor.line.is_hanging = lambda _: False
    if moment == Moment.COUNTED:
        await teams.pass_time(LOOP + 1)
    if moment in (Moment.COUNTED, Moment.SEEN):
        await teams.pass_time(1)
        owner.crash()
    if moment == Moment.HANDED_OVER:
        await teams.pass_time(1)
        teams.add("two", **settings)
        await teams.pass_time(10)
        await owner.stop()
        teams.copies.remove(owner)
    await teams.pass_time(LEASE + 40)
    await teams.pass_time(300)  # the next checkpoint
    return await _history(teams, place), await teams.target(place)


async def _between_loops(teams: Teams, owner: Copy, place: str) -> None:
    """Wait until the owner's loop is just over, so that it does not come to the kill at once."""
    before = teams.stage.metrics.asked.count
    path = f"/apis/metrics.k8s.io/v1/namespaces/{place}/pods"
    asked = before(path)
    while teams.stage.metrics.asked.count(path) == asked:
        await teams.pass_time(0.5)
    await teams.pass_time(1)


def test_each_owner_collects_the_orphans_of_its_shards_and_none_of_vpas_that_it_has_not_listed():
    async def act(teams: Teams) -> None:
        stage = teams.stage
        gc = 30.0
        one, two = teams.add("one", gc=gc), teams.add("two", gc=gc)
        await teams.pass_time(3 * LOOP + KEEP_SECONDS)
        assert set(await teams.checkpoints()) == {f"{place}/{place}-app" for place in PLACES}
        gone = {min(teams.of(copy)) for copy in (one, two)}
        for place in gone:
            await stage.client.delete(VPAS, place, place)
        await teams.pass_time(3 * gc + LOOP)
        assert set(await teams.checkpoints()) == {f"{place}/{place}-app" for place in {*PLACES} - gone}
        for copy in (one, two):
            deleted = [request for request in copy.actor.line.sent if request.method == "DELETE"]
            assert [request.path.split("/")[5] for request in deleted] == [min(teams.of(copy) & gone)]

        # From now on no VPA can be listed by whoever takes over.
        two.actor.line.answer = _refuse(VPAS.plural)
        one.crash()
        await teams.pass_time(TAKEOVER + 5 * gc)
        assert len(two.shards.held()) == 4
        assert set(await teams.checkpoints()) == {f"{place}/{place}-app" for place in {*PLACES} - gone}
        assert VPAS.plural in two.actor.recommender.health()
        two.actor.line.answer = lambda _: None
        await teams.pass_time(TAKEOVER + 5 * gc)
        assert set(await teams.checkpoints()) == {f"{place}/{place}-app" for place in {*PLACES} - gone}
        assert two.actor.recommender.health() == {}

    with_teams(act)


def _refuse(plural: str) -> Callable[[Request], Response | None]:
    def answer(request: Request) -> Response | None:
        is_list = request.method == "GET" and request.path.endswith(f"/{plural}")
        return status(500) if is_list else None

    return answer


@pytest.mark.parametrize("is_any_left", [True, False])
def test_the_orphans_of_a_shard_without_vpas_go_while_another_shard_has_one(is_any_left):
    """No VPA at all is more often a mistake than the end of all VPAs."""

    async def act(teams: Teams) -> None:
        gc = 30.0
        one, two = teams.add("one", gc=gc), teams.add("two", gc=gc)
        await teams.pass_time(3 * LOOP + KEEP_SECONDS)
        gone = teams.of(one) if is_any_left else set(PLACES)
        for place in gone:
            await teams.stage.client.delete(VPAS, place, place)
        await teams.pass_time(4 * gc + LOOP)
        left = {key.partition("/")[0] for key in await teams.checkpoints()}
        assert left == (teams.of(two) if is_any_left else set(PLACES))

    with_teams(act)


def test_a_role_is_moved_by_the_owner_of_its_namespace_once_all_pods_are_listed():
    async def act(teams: Teams) -> None:
        stage, place = teams.stage, "roles"
        await team(stage, place, "db", annotations={LEASE_ANNOTATION: "db"})
        copies = []
        for name in ("one", "two"):
            copy = Copy(stage, name, count=SHARDS, make=Family, components=("roles",), watch_namespaces=())
            teams.copies.append(copy)
            copies.append(copy)
            copy.start(make_roles(copy.actor.site).run)

        async def lead(leader: str, seconds: float) -> None:
            for _ in range(int(seconds / 5)):
                await _hold(stage, place, leader)
                await teams.pass_time(5)

        async def roles() -> list[str | None]:
            pods = [await stage.client.get(PODS.untyped(), f"db-{index}", place) for index in range(2)]
            return [pod["metadata"]["labels"].get("role") for pod in pods]

        await lead("db-0", 60)
        assert await roles() == ["leader", None]
        first = teams.owner(f"{place}/db")
        (second,) = set(copies) - {first}
        assert place not in cached(second, "pods")
        first.crash()
        await lead("db-1", TAKEOVER + 20)
        assert await roles() == [None, "leader"]
        assert cached(second, "pods")[place] == 2

    with_teams(act)


def test_no_label_is_set_before_the_selectors_of_a_shard_are_listed():
    """Changing a label that a StatefulSet selects by would orphan the pod."""

    async def act(teams: Teams) -> None:
        stage, place = teams.stage, "roles"
        await team(stage, place, "db", annotations={LEASE_ANNOTATION: "db", LABEL_ANNOTATION: "app=leader"})
        copies = [
            Copy(stage, name, count=SHARDS, make=Family, components=("roles",), watch_namespaces=())
            for name in ("one", "two")
        ]
        for copy in copies:
            teams.copies.append(copy)
            copy.start(make_roles(copy.actor.site).run)
        await teams.pass_time(30)
        teams.owner(f"{place}/db").crash()
        (heir,) = teams.living
        heir.actor.line.is_hanging = lambda request: request.path.endswith("/statefulsets")
        for has_selectors in (False, True):
            for _ in range(8):
                await _hold(stage, place, "db-0")
                await teams.pass_time(5)
            assert cached(heir, "pods")[place] == 2
            assert (place in cached(heir, "statefulsets")) is has_selectors
            assert [kind for _, kind, _ in heir.writes if kind == "pods"] == []
            heir.actor.line.is_hanging = lambda _: False
        await heir.actor.site.runtime.events.flush()
        warned = await stage.client.list(CORE_EVENTS, ListOptions(place))
        assert {event["reason"] for event in warned.items} == {"RoleNotAssigned"}

    with_teams(act)


async def _hold(stage: Stage, place: str, holder: str) -> None:
    """What leader election does, once."""
    now = format_micro_time(stage.clock.now())
    spec: Json = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": now}
    if (await stage.client.list(LEASES, ListOptions(place))).items:
        await stage.client.patch(LEASES, "db", place, {"spec": spec})
        return
    body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": {"name": "db"}, "spec": spec}
    await stage.client.create(LEASES, body, place)


def test_a_process_with_both_autoscalers_watches_the_pods_of_its_shards_once():
    async def act(teams: Teams) -> None:
        both = ("horizontal", "recommender")
        copies = []
        for name in ("one", "two"):
            copy = Copy(teams.stage, name, count=SHARDS, make=Family, components=both, watch_namespaces=())
            runtime = copy.actor.site.runtime
            hpas = HpaController(runtime, config=decision_config(runtime.settings))
            teams.copies.append(copy)
            copies.append((copy, hpas))
            copy.start(copy.actor.recommender.run, hpas.run)
        await teams.pass_time(80 + KEEP_SECONDS)
        for copy, hpas in copies:
            assert cached(copy, "pods") == dict.fromkeys(teams.of(copy), 2)
            assert teams.recommended(copy, 0) == teams.of(copy)
            assert hpas.health() == copy.actor.recommender.health() == {}
            assert (
                len([cache for cache in copy.actor.site.runtime.informers if cache.resource.plural == "pods"])
                == 1
            )

    with_teams(act)
