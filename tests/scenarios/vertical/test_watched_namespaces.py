"""`--watch-namespaces`: nothing outside of them is read, and above all nothing outside of them is deleted."""

import asyncio
from datetime import timedelta

import pytest

from tests.scenarios.vertical.stage import FOLLOWER, Actor, Stage
from tests.scenarios.vertical.test_stale_caches import in_namespace
from tests.support.clock import in_virtual_time
from tests.support.objects import NAMESPACES
from tests.support.transport import status
from trimtab.cluster.client import ListOptions
from trimtab.cluster.resource import CORE_EVENTS, Json
from trimtab.operator.vertical.kinds import CHECKPOINTS, VPAS

GC = timedelta(minutes=10)


async def _vpa_with_history(stage: Stage, namespace: str, name: str) -> None:
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
    body: Json = {"apiVersion": VPAS.api_version, "kind": VPAS.kind, "metadata": {"name": name}}
    await stage.client.create(VPAS.untyped(), {**body, "spec": {"targetRef": target}}, namespace)
    await _checkpoint(stage, namespace, name)


async def _checkpoint(stage: Stage, namespace: str, vpa: str) -> None:
    body = {
        "apiVersion": CHECKPOINTS.api_version,
        "kind": CHECKPOINTS.kind,
        "metadata": {"name": f"{vpa}-app"},
        "spec": {"vpaObjectName": vpa, "containerName": "app"},
    }
    await stage.client.create(CHECKPOINTS.untyped(), body, namespace)


async def _database(stage: Stage) -> None:
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER)


async def _collect_twice(stage: Stage, actor: Actor) -> None:
    await stage.recommend(actor, 14, after=100)


def test_rh1_with_rights_in_the_watched_namespaces_only_it_recommends_and_saves(play):
    async def scenario(stage: Stage) -> None:
        await _database(stage)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            assert await stage.target("base") is not None
            assert set(await stage.checkpoints()) == {"base-app"}
            assert actor.recommender.health() == {}

    play(scenario)


@in_virtual_time
async def test_rh1_a_node_that_evicts_for_memory_counts_with_rights_in_the_watched_namespaces_only(stage):
    await _database(stage)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        before = await stage.target("base")
        watching = asyncio.ensure_future(actor.recommender.run())
        await stage.clock.sleep(1)
        event = {
            "metadata": {
                "name": "db-0.evicted",
                "annotations": {
                    "offending_containers": "app",
                    "offending_containers_usage": "9e9",
                    "starved_resource": "memory",
                },
            },
            "involvedObject": {"kind": "Pod", "namespace": stage.namespace, "name": "db-0"},
            "reason": "Evicted",
            "type": "Warning",
        }
        await stage.client.create(CORE_EVENTS, event, stage.namespace)
        await stage.clock.sleep(180)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert int(await stage.target("base") or 0) > 5 * int(before or 0)


def test_rh5_histories_of_other_namespaces_stay_though_they_could_be_deleted(play):
    async def scenario(stage: Stage) -> None:
        await _database(stage)
        elsewhere = stage.own_namespace
        await _vpa_with_history(stage, elsewhere, "kept")
        await _checkpoint(stage, elsewhere, "orphaned")
        await _checkpoint(stage, stage.namespace, "gone")
        async with stage.running(is_narrow=False, checkpoints_gc_interval=GC) as actor:
            await _collect_twice(stage, actor)
        there = await stage.client.list(CHECKPOINTS, ListOptions(elsewhere))
        assert {found.metadata.name for found in there.items} == {"kept-app", "orphaned-app"}
        assert set(await stage.checkpoints()) == {"base-app"}

    play(scenario)


@in_virtual_time
async def test_histories_in_ignored_namespaces_stay(stage):
    """Nothing is written there, so nothing is deleted there."""
    await _database(stage)
    ignored = f"{stage.namespace}-ignored"
    await stage.client.create(NAMESPACES, {"metadata": {"name": ignored}})
    await _checkpoint(stage, ignored, "gone")
    await _checkpoint(stage, stage.namespace, "gone")
    async with stage.running(
        is_narrow=False,
        watch_namespaces=(),
        ignored_namespaces=(ignored,),
        checkpoints_gc_interval=GC,
    ) as actor:
        await _collect_twice(stage, actor)
    there = await stage.client.list(CHECKPOINTS, ListOptions(ignored))
    assert [found.metadata.name for found in there.items] == ["gone-app"]
    assert "gone-app" not in await stage.checkpoints()


@in_virtual_time
async def test_rh5_a_vpa_that_the_cache_lacks_is_read_again_before_its_history_goes(stage):
    await _database(stage)
    async with stage.running(is_narrow=False, checkpoints_gc_interval=GC) as actor:
        actor.line.alter = lambda request: (
            (lambda _line: []) if request.path.endswith("/verticalpodautoscalers") else None
        )
        actor.line.drop_all()
        await stage.clock.sleep(1)
        await _vpa_with_history(stage, stage.namespace, "unseen")
        for _ in range(14):
            await stage.pass_time(100)
            await actor.recommender.step()
        assert "unseen-app" in await stage.checkpoints()


@in_virtual_time
async def test_rh5_a_history_stays_while_the_server_cannot_say_whether_its_vpa_exists(stage):
    await _database(stage)
    await _checkpoint(stage, stage.namespace, "gone")
    async with stage.running(is_narrow=False, checkpoints_gc_interval=GC) as actor:
        actor.line.answer = lambda request: (
            status(403, "Forbidden") if request.path.endswith("/verticalpodautoscalers/gone") else None
        )
        await _collect_twice(stage, actor)
        assert "gone-app" in await stage.checkpoints()
        actor.line.answer = lambda _: None
        await _collect_twice(stage, actor)
        assert "gone-app" not in await stage.checkpoints()


async def _names(stage: Stage, namespace: str) -> set[str]:
    return {
        found.metadata.name for found in (await stage.client.list(CHECKPOINTS, ListOptions(namespace))).items
    }


@pytest.mark.parametrize("kinds", [("verticalpodautoscalers",), ("verticalpodautoscalercheckpoints",), ()])
@pytest.mark.parametrize("is_restarted", [False, True])
@in_virtual_time
async def test_a_namespace_that_is_refused_keeps_only_its_own_orphans(stage, kinds, is_restarted):
    """One refused namespace kept the orphans of all, and after a restart no history was loaded anywhere."""
    await _database(stage)
    other = f"{stage.namespace}-other"
    await stage.client.create(NAMESPACES, {"metadata": {"name": other}})
    await _checkpoint(stage, stage.namespace, "gone")
    await _checkpoint(stage, other, "gone")

    def refuse(actor: Actor) -> None:
        paths = [f"/namespaces/{other}/{kind}" for kind in kinds] or [f"/namespaces/{other}/"]
        actor.line.answer = lambda request: (
            status(403, "Forbidden") if any(path in f"{request.path}" for path in paths) else None
        )
        actor.line.drop_all()

    both = (stage.namespace, other)
    before = refuse if is_restarted else lambda _: None
    async with stage.running(
        watch_namespaces=both, is_narrow=False, checkpoints_gc_interval=GC, before=before
    ) as actor:
        refuse(actor)
        await stage.clock.sleep(1)
        await _collect_twice(stage, actor)
        assert set(await stage.checkpoints()) == {"base-app"}
        assert await _names(stage, other) == {"gone-app"}
        actor.line.answer = lambda _: None
        await stage.clock.sleep(120)
        await _collect_twice(stage, actor)
        assert await _names(stage, other) == set()


@in_virtual_time
async def test_a_namespace_whose_checkpoints_are_refused_waits_alone(stage):
    """Its refused list stopped the first recommendation of every VPA."""
    await _database(stage)
    other = f"{stage.namespace}-other"
    await stage.client.create(NAMESPACES, {"metadata": {"name": other}})
    async with in_namespace(stage, other):
        await stage.statefulset("db", 1)
        await stage.vpa("away", "db")
    path = CHECKPOINTS.path(other)

    def refuse(actor: Actor) -> None:
        actor.line.answer = lambda request: (
            status(403, "Forbidden") if request.path == path and request.method == "GET" else None
        )

    both = (stage.namespace, other)
    async with stage.running(watch_namespaces=both, is_narrow=False, before=refuse) as actor:
        await stage.recommend(actor, 2)
        assert await stage.target("base") is not None
        assert "Forbidden" in actor.recommender.health()[f"checkpoints of {other}"]
        async with in_namespace(stage, other):
            assert await stage.target("away") is None
            assert (await stage.conditions("away")) == {"FetchingHistory": "True"}
        (written,) = actor.wrote("/verticalpodautoscalers/away")
        assert "Checkpoints cannot be read: " in str(written)
        actor.line.answer = lambda _: None
        await stage.recommend(actor, 1)
        assert f"checkpoints of {other}" not in actor.recommender.health()
