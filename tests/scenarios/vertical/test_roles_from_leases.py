"""A Lease decides who leads; the label follows it, and the leader's size follows the label."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, LEADER, LEADER_TARGET, Actor, Stage
from tests.support.clock import in_virtual_time
from tests.support.transport import Break, status
from trimtab.cluster.client import ListOptions
from trimtab.cluster.resource import LEASES, Json
from trimtab.cluster.transport import Request
from trimtab.decide.vertical.control.role_labels import LABEL_ANNOTATION, LEASE_ANNOTATION
from trimtab.model.core.meta import NamespacedName
from trimtab.model.times import format_micro_time
from trimtab.operator.vertical.role_labels import UNUSED_SECONDS, RoleLabelController, RoleLeases
from trimtab.operator.vertical.wiring import make_roles


async def hold(stage: Stage, holder: str) -> None:
    """What leader election does, once."""
    spec: Json = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": format_micro_time(stage.clock.now()),
    }
    if any(
        one.metadata.name == "db"
        for one in (await stage.client.list(LEASES, ListOptions(stage.namespace))).items
    ):
        await stage.client.patch(LEASES, "db", stage.namespace, {"spec": spec})
        return
    body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": {"name": "db"}, "spec": spec}
    await stage.client.create(LEASES, body, stage.namespace)


async def roles(stage: Stage) -> list[str | None]:
    return [(await stage.read_pod(f"db-{index}"))["metadata"]["labels"].get("role") for index in range(3)]


@asynccontextmanager
async def keeping(stage: Stage, actor: Actor) -> AsyncIterator[RoleLabelController]:
    keeper = make_roles(actor.site)
    try:
        yield keeper
    finally:
        await keeper.close()


async def settled(stage: Stage, actor: Actor, keeper: RoleLabelController) -> None:
    """Let watches speak, then look."""
    await stage.caught_up(actor)
    await keeper.step()
    await stage.clock.sleep(0.3)
    await keeper.step()


def test_the_label_follows_the_lease_and_the_size_follows_the_label(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", "db")
        await stage.vpa("lead", "db", scope="leader")
        stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)
        await hold(stage, "db-0_1234")
        async with stage.running() as actor, keeping(stage, actor) as keeper:
            await settled(stage, actor, keeper)
            assert await roles(stage) == ["leader", None, None]
            await stage.recommend(actor, 2)
            await stage.update(actor, 4)
            await hold(stage, "db-1_5678")
            await settled(stage, actor, keeper)
            assert await roles(stage) == [None, "leader", None]
            await stage.update(actor)
            assert await stage.memory("db-1") == LEADER_TARGET
            assert await stage.memory("db-2") == FOLLOWER_TARGET
            assert not actor.wrote("/eviction")

    play(scenario)


def test_a_lease_that_runs_out_makes_nobody_the_leader(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
        await hold(stage, "db-2")
        async with stage.running() as actor, keeping(stage, actor) as keeper:
            await settled(stage, actor, keeper)
            assert await roles(stage) == [None, None, "leader"]
            await stage.pass_time(10)
            await hold(stage, "db-2")
            await settled(stage, actor, keeper)
            await stage.pass_time(10)
            await keeper.step()
            assert await roles(stage) == [None, None, "leader"], "it was renewed"
            await stage.pass_time(16)
            await keeper.step()
            assert await roles(stage) == [None, None, None]

    play(scenario)


@in_virtual_time
async def test_if_the_old_leaders_label_cannot_be_taken_off_nobody_else_gets_it(stage):
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await hold(stage, "db-0")
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        await settled(stage, actor, keeper)
        await hold(stage, "db-1")
        actor.line.break_write = lambda _, request: (
            Break.CONFLICT if request.path.endswith("/pods/db-0") else None
        )
        await settled(stage, actor, keeper)
        assert await roles(stage) == ["leader", None, None]
        assert keeper.health()
        actor.line.break_write = lambda _number, _request: None
        await settled(stage, actor, keeper)
        assert await roles(stage) == [None, "leader", None]


def test_a_role_label_that_the_workloads_selector_needs_is_refused_with_an_event(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db", LABEL_ANNOTATION: "app=leader"})
        await hold(stage, "db-0")
        async with stage.running() as actor, keeping(stage, actor) as keeper:
            await settled(stage, actor, keeper)
            assert (await stage.read_pod("db-0"))["metadata"]["labels"]["app"] == "db"
            assert "RoleNotAssigned" in [one[0] for one in await stage.events(actor)]

    play(scenario)


@in_virtual_time
async def test_a_role_that_moves_is_acted_on_at_once_not_at_the_next_minute(stage):
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await stage.scope("leader", pods={"role": "leader"})
    await stage.vpa("base", "db")
    await stage.vpa("lead", "db", scope="leader")
    stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)
    await hold(stage, "db-0")
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        await settled(stage, actor, keeper)
        await stage.recommend(actor, 2)
        running = [asyncio.ensure_future(one.run()) for one in (actor.updater, keeper)]
        for _ in range(40):
            await hold(stage, "db-0")
            await stage.clock.sleep(5)
            await stage.actuate_resizes()
        assert await stage.memory("db-0") == LEADER_TARGET
        began = stage.clock.monotonic()
        await hold(stage, "db-1")
        while await stage.memory("db-1") != LEADER_TARGET:
            await stage.clock.sleep(0.5)
        assert stage.clock.monotonic() - began < 10, "the interval is a minute"
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _is_about_one(request: Request) -> bool:
    return ("fieldSelector", "metadata.name=db") in request.query


@in_virtual_time
async def test_rm6_a_blind_watch_of_ours_takes_no_role_away(stage):
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await hold(stage, "db-2")
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        await settled(stage, actor, keeper)
        assert await roles(stage) == [None, None, "leader"]
        actor.line.answer = lambda request: (
            status(503, "ServiceUnavailable")
            if request.path.endswith("/leases") and not _is_about_one(request)
            else None
        )
        actor.line.drop_all()
        for _ in range(20):
            await stage.clock.sleep(2)
            await hold(stage, "db-2")
            await keeper.step()
            assert await roles(stage) == [None, None, "leader"], "the leader renews, we do not hear it"
        for _ in range(4):
            await stage.clock.sleep(8)
            await keeper.step()
        assert await roles(stage) == [None, None, None], "now it has run out, and the server says so"


@in_virtual_time
async def test_rm6_no_role_is_taken_away_while_the_server_cannot_be_asked(stage):
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await hold(stage, "db-2")
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        await settled(stage, actor, keeper)
        actor.line.answer = lambda request: status(403, "Forbidden") if _is_about_one(request) else None
        await stage.pass_time(30)
        await keeper.step()
        assert await roles(stage) == [None, None, "leader"]
        assert list(keeper.health()) == [f"Lease {stage.namespace}/db"]


@in_virtual_time
async def test_rm6_a_lease_abandoned_an_hour_ago_grants_nothing_and_takes_nothing_at_once(stage):
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await stage.label("db-1", role="leader")
    await hold(stage, "db-0")
    await stage.pass_time(3600)
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        await settled(stage, actor, keeper)
        assert await roles(stage) == [None, "leader", None], "its holder may have a slow clock"
        await stage.pass_time(16)
        await keeper.step()
        assert await roles(stage) == [None, None, None]
        await hold(stage, "db-0")
        await settled(stage, actor, keeper)
        assert await roles(stage) == ["leader", None, None]


@in_virtual_time
async def test_rl6_a_holder_that_is_no_pod_is_told(stage):
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        for _ in range(4):
            await hold(stage, "node-7_1234")
            await settled(stage, actor, keeper)
            if stage.clock.monotonic() < 10:
                assert keeper.health() == {}, "a pod that was just replaced is no reason to complain"
            await stage.clock.sleep(6)
        assert await roles(stage) == [None, None, None]
        told = [text for reason, _, text in await stage.events(actor) if reason == "RoleNotAssigned"]
        assert len(told) == 1
        assert "is held by 'node-7_1234', which names no pod of this role" in told[0]


@in_virtual_time
async def test_n22_pods_of_ignored_namespaces_get_no_role(stage):
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await hold(stage, "db-0")
    async with (
        stage.running(ignored_namespaces=(stage.namespace,)) as actor,
        keeping(stage, actor) as keeper,
    ):
        await settled(stage, actor, keeper)
        assert await roles(stage) == [None, None, None]


@in_virtual_time
async def test_leases_are_watched_for_a_minute_after_their_namespace_was_last_used(stage):
    leases = RoleLeases(stage.client, lambda: None)
    place, lease = stage.namespace, NamespacedName(stage.namespace, "db")

    async def holder_after(holder: str) -> str | None:
        await hold(stage, holder)
        await stage.clock.sleep(1)
        seen = leases.get(lease)
        return None if seen is None else seen.holder

    assert not leases.watch(place), "nothing is listed yet"
    assert await holder_after("db-0") == "db-0"
    assert leases.watch(place)
    await stage.clock.sleep(UNUSED_SECONDS)
    await leases.end_unused(())
    assert await holder_after("db-1") == "db-1", "a minute has not passed yet"
    await leases.end_unused((place, "elsewhere"))
    assert await holder_after("db-2") == "db-2", "the namespace is used"
    await leases.end_unused(("elsewhere",))
    assert leases.get(lease) is None
    assert await holder_after("db-0") is None
    leases.watch(place)
    assert await holder_after("db-1") == "db-1", "it is watched again"
    await leases.close()
    assert await holder_after("db-2") == "db-1"


@in_virtual_time
async def test_the_first_recommendation_of_a_role_acts_at_once(stage):
    """F6: the first leader waits neither for the next minute nor for one after the budget is free again."""
    await stage.statefulset("db", 3)
    await stage.scope("leader", pods={"role": "leader"})
    await stage.vpa("base", "db")
    await stage.vpa("lead", "db", scope="leader")
    stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        assert await stage.target("lead") is None
        await stage.label("db-2", role="leader")
        updating = asyncio.ensure_future(actor.updater.run())
        await stage.clock.sleep(12)  # the label brought one loop forward, and its role had no recommendation
        assert actor.wrote("/resize")
        assert await stage.memory("db-2") == "50Mi"
        stage.use(db_2=LEADER)
        # The step that sees the change gives the role no sample from before it; the next one does.
        await actor.recommender.step()
        await stage.clock.sleep(60)
        await actor.recommender.step()
        began = stage.clock.monotonic()
        while await stage.memory("db-2") == "50Mi":
            await stage.clock.sleep(0.5)
            if stage.clock.monotonic() - began > 8:
                await stage.actuate_resizes()
        assert stage.clock.monotonic() - began < 25, "another resize took 8 s, and the interval is a minute"
        updating.cancel()
        await asyncio.gather(updating, return_exceptions=True)
