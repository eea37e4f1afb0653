"""SCP-E*: a workload whose pods play roles, each sized for its own."""

from tests.scenarios.vertical.stage import (
    FOLLOWER,
    FOLLOWER_TARGET,
    LEADER,
    LEADER_TARGET,
    Stage,
)


async def a_leader_and_two_followers(stage: Stage, *, mode: str = "InPlaceOrRecreate") -> None:
    """StatefulSet of three, base VPA and leader VPA, pod 0 leads (fixture F5)."""
    await stage.statefulset("db", 3)
    await stage.scope("leader", pods={"role": "leader"})
    await stage.vpa("base", "db", mode=mode)
    await stage.vpa("lead", "db", scope="leader", mode=mode)
    await stage.label("db-0", role="leader")
    stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)


def test_scp_e1_the_leader_gets_the_leaders_target_and_the_others_the_base(play):
    async def scenario(stage: Stage) -> None:
        await a_leader_and_two_followers(stage)
        async with stage.running() as actor:
            await stage.recommend(actor, 3)
            assert await stage.target("lead") == LEADER_TARGET
            assert await stage.target("base") == FOLLOWER_TARGET
            await stage.update(actor, 4)
            assert [await stage.memory(f"db-{index}") for index in range(3)] == [
                LEADER_TARGET,
                FOLLOWER_TARGET,
                FOLLOWER_TARGET,
            ]

    play(scenario)
