"""The updater changes no pod on caches that are stale, and a namespace that cannot be read stops no other (fault F04)."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests.scenarios.vertical.stage import FOLLOWER, Stage
from tests.scenarios.vertical.test_roles_from_leases import hold, keeping, roles
from tests.support.clock import in_virtual_time
from tests.support.objects import NAMESPACES
from tests.support.transport import status
from trimtab.cluster.client import ListOptions
from trimtab.cluster.resource import PODS
from trimtab.decide.vertical.control.role_labels import LEASE_ANNOTATION

LONGER_THAN_STALE = 110


async def _database(stage: Stage) -> None:
    await stage.statefulset("db", 3)
    await stage.vpa("base", "db", mode="Recreate")
    stage.use(db_0=FOLLOWER, db_1=FOLLOWER, db_2=FOLLOWER)


def refuse(actor, *ends):
    actor.line.answer = lambda request: (
        status(403, "Forbidden") if request.method == "GET" and request.path.endswith(ends) else None
    )
    actor.line.drop_all()


def allow(actor):
    actor.line.answer = lambda _: None


@pytest.mark.parametrize("kind", ["pods", "verticalpodautoscalers", "statefulsets", "limitranges"])
@in_virtual_time
async def test_nothing_is_evicted_while_a_cache_is_stale(stage, kind):
    """Pods were answered 403 for 100 s, a new recommendation came, and a pod was evicted."""
    await _database(stage)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        refuse(actor, f"/{kind}")
        await stage.clock.sleep(LONGER_THAN_STALE)
        await actor.updater.step()
        assert not actor.wrote("/eviction")
        assert any(kind in name for name in actor.updater.warnings())
        allow(actor)
        await stage.clock.sleep(60)
        await actor.updater.step()
        assert actor.wrote("/eviction")
        assert not actor.updater.warnings()


@in_virtual_time
async def test_a_silent_watch_of_all_namespaces_stops_the_step_and_is_named(stage):
    await _database(stage)
    async with stage.running(watch_namespaces=()) as actor:
        await stage.recommend(actor, 2)
        actor.line.is_silent = lambda request: request.path.endswith("/pods")
        await stage.clock.sleep(LONGER_THAN_STALE)
        assert await actor.updater.step() is None
        assert "pods: no sign from the server" in actor.updater.health()["updater"]
        actor.line.is_silent = lambda _: False
        await stage.clock.sleep(90)
        assert await actor.updater.step() is not None
        assert "updater" not in actor.updater.health()


@in_virtual_time
async def test_a_namespace_that_cannot_be_read_stops_no_other_also_after_a_restart(stage):
    await _database(stage)
    other = f"{stage.namespace}-other"
    await stage.client.create(NAMESPACES, {"metadata": {"name": other}})
    both = (stage.namespace, other)
    async with stage.running(watch_namespaces=both) as actor:
        await stage.recommend(actor, 2)
        actor.line.answer = lambda request: (
            status(403, "Forbidden") if f"/namespaces/{other}/" in request.path else None
        )
        actor.line.drop_all()
        await stage.clock.sleep(LONGER_THAN_STALE)
        await actor.updater.step()
        assert len(actor.wrote("/eviction")) == 1
        assert not actor.updater.health()
        assert any(other in name for name in actor.updater.warnings())
    await stage.heal("db")
    restarted = stage.running(
        watch_namespaces=both,
        before=lambda actor: refuse(
            actor, *(f"/namespaces/{other}/{kind}" for kind in ("pods", "verticalpodautoscalers"))
        ),
    )
    async with restarted as actor:
        await stage.clock.sleep(120)
        await actor.recommender.step()
        await actor.updater.step()
        assert len(actor.wrote("/eviction")) == 1


@asynccontextmanager
async def in_namespace(stage, namespace):
    own = stage.namespace, stage.workloads._namespace
    stage.namespace = stage.workloads._namespace = namespace
    try:
        yield
    finally:
        stage.namespace, stage.workloads._namespace = own


@in_virtual_time
async def test_leases_of_one_namespace_hold_up_no_other(stage):
    """The loop waited for the first list without limit: the role of another namespace was not given in 60 s."""
    broken = f"a-{stage.namespace}"  # before the other one, in the order of the loop
    await stage.client.create(NAMESPACES, {"metadata": {"name": broken}})
    for namespace in (broken, stage.namespace):
        async with in_namespace(stage, namespace):
            await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
            await hold(stage, "db-0_1234")
    async with stage.running(watch_namespaces=(broken, stage.namespace)) as actor:
        refuse(actor, f"/namespaces/{broken}/leases")
        async with keeping(stage, actor) as keeper:
            async with asyncio.timeout(20):
                await keeper.step()
                await stage.clock.sleep(1)
                await keeper.step()
            assert await roles(stage) == ["leader", None, None]
            assert f"Leases of {broken}" in keeper.health()
            allow(actor)
            await stage.clock.sleep(40)
            async with in_namespace(stage, broken):
                await hold(stage, "db-0_1234")
                await stage.clock.sleep(1)
                await keeper.step()
                assert await roles(stage) == ["leader", None, None]
            assert not keeper.health()


@in_virtual_time
async def test_watches_of_leases_end_with_the_roles_of_their_namespace(stage):
    """40 namespaces were deleted, and 60 s later 40 watches were still open."""
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await hold(stage, "db-0_1234")
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        await keeper.step()
        await stage.clock.sleep(1)
        await keeper.step()
        assert len(keeper._leases._tasks) == 1
        [watch] = keeper._leases._tasks.values()
        await stage.delete_workload("db")
        for pod in (await stage.client.list(PODS, ListOptions(stage.namespace))).items:
            await stage.client.delete(PODS, pod.name, stage.namespace)
        await stage.clock.sleep(5)
        await keeper.step()
        assert len(keeper._leases._tasks) == 1, "it may come back at once"
        await stage.clock.sleep(70)
        await keeper.step()
        assert not keeper._leases._tasks
        assert not keeper._leases._seen
        assert watch.done()
        await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
        await hold(stage, "db-1_1234")
        await stage.clock.sleep(1)
        await keeper.step()
        await stage.clock.sleep(1)
        await keeper.step()
        assert await roles(stage) == [None, "leader", None]
