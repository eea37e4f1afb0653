"""Edits of a VPA and of its scope between two loops of the recommender (RV-M1, RV-M2)."""

from tests.scenarios.vertical.stage import FOLLOWER, LEADER, LEADER_TARGET, Stage
from tests.support.clock import in_virtual_time
from trimtab.operator.vertical.kinds import SCOPES, VPAS


async def a_sized_leader(stage: Stage) -> None:
    await stage.statefulset("db", 3)
    await stage.scope("role", pods={"role": "leader"})
    await stage.vpa("role", "db", scope="role")
    await stage.label("db-0", role="leader")
    for follower in ("db-1", "db-2"):
        await stage.label(follower, role="follower")
    stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)


async def edit_scope(stage: Stage, role: str) -> None:
    body = {"spec": {"podSelector": {"matchLabels": {"role": role}}}}
    await stage.client.patch(SCOPES, "role", stage.namespace, body)


def test_after_an_edit_of_its_scope_a_vpa_gives_no_pod_the_old_roles_size(play):
    async def scenario(stage: Stage) -> None:
        await a_sized_leader(stage)
        async with stage.running(in_place_skip_disruption_budget=True) as actor:
            await stage.recommend(actor, 2)
            await edit_scope(stage, "follower")
            await stage.update(actor, 2)
            assert [await stage.memory(f"db-{index}") for index in range(3)] == ["50Mi"] * 3
            assert not actor.wrote("/resize")
            await stage.recommend(actor, 2)
            await edit_scope(stage, "leader")
            await stage.recommend(actor, 2)
            await stage.update(actor)
            assert await stage.memory("db-0") == LEADER_TARGET, "what was learnt under the scope is applied"

    play(scenario)


def test_a_scope_that_appears_does_not_get_the_recommendation_of_another_one(play):
    async def scenario(stage: Stage) -> None:
        await a_sized_leader(stage)
        async with stage.running(in_place_skip_disruption_budget=True) as actor:
            await stage.recommend(actor, 2)
            await stage.client.patch(
                VPAS, "role", stage.namespace, {"spec": {"vpaScope": {"name": "followers"}}}
            )
            await stage.recommend(actor, 2)
            assert (await stage.conditions("role"))["ConfigUnsupported"] == "True"
            await stage.scope("followers", pods={"role": "follower"})
            await stage.update(actor, 2)
            assert not actor.wrote("/resize")

    play(scenario)


@in_virtual_time
async def test_an_edit_of_min_replicas_keeps_admission_at_work(stage):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db", mode="Initial")
    stage.use(db_0=LEADER, db_1=LEADER)
    async with stage.running() as actor, stage.admitting(actor):
        await stage.recommend(actor, 2)
        edit = {"spec": {"updatePolicy": {"minReplicas": 3}}}
        await stage.client.patch(VPAS, "base", stage.namespace, edit)
        await stage.caught_up(actor)
        await stage.delete_pod("db-0")
        await stage.heal("db")
        assert await stage.memory("db-0") == LEADER_TARGET
