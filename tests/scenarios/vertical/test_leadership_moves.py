"""A day of leadership that moves every ten minutes: the size moves with it, and nobody is evicted."""

from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, LEADER, LEADER_TARGET, Stage

ROTATIONS = 24 * 6
REPLICAS = 3


def test_each_new_leader_has_the_leaders_size_within_two_loops_and_the_profile_stays(play_lab):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", REPLICAS)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", "db")
        await stage.vpa("lead", "db", scope="leader")
        await stage.label("db-0", role="leader")
        stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)
        uids = [(await stage.read_pod(f"db-{index}"))["metadata"]["uid"] for index in range(REPLICAS)]
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
            for rotation in range(1, ROTATIONS + 1):
                await _move(stage, rotation)
                await stage.update(actor, 2)
                assert await stage.memory(f"db-{rotation % REPLICAS}") == LEADER_TARGET
                await stage.recommend(actor, after=480)
                assert await stage.target("lead") == LEADER_TARGET
                assert await stage.target("base") == FOLLOWER_TARGET
            assert not actor.wrote("/eviction")
        after = [(await stage.read_pod(f"db-{index}"))["metadata"]["uid"] for index in range(REPLICAS)]
        assert after == uids

    play_lab(scenario)


async def _move(stage: Stage, rotation: int) -> None:
    old, new = (rotation - 1) % REPLICAS, rotation % REPLICAS
    await stage.label(f"db-{old}", role=None)
    await stage.label(f"db-{new}", role="leader")
    stage.use(**{f"db_{old}": FOLLOWER, f"db_{new}": LEADER})
