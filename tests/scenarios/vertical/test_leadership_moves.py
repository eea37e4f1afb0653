"""A day of leadership that moves every ten minutes: the size moves with it, and nobody is evicted."""

from tests.scenarios.vertical.leadership import PLAIN, REPLICAS, ROLES, SOON, Day
from tests.scenarios.vertical.stage import FOLLOWER_TARGET, LEADER_TARGET, Stage
from tests.support.clock import in_virtual_time

ROTATIONS = 24 * 6


@in_virtual_time
async def test_each_new_leader_has_the_leaders_size_within_two_loops_and_the_profile_stays(stage):
    day = Day(stage)
    await day.open()
    uids = await _uids(stage)
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        for _ in range(ROTATIONS):
            await day.rotate(actor)
            assert await stage.memory(f"{ROLES}-{day.leader}") == LEADER_TARGET
            assert await stage.target("lead") == LEADER_TARGET
            assert await stage.target("base") == FOLLOWER_TARGET
        assert not actor.wrote("/eviction")
    assert await _uids(stage) == uids
    roles, plain = day.ledgers[ROLES], day.ledgers[PLAIN]
    # The plain VPA gives everybody what the leader needs (edge case 5.3-27).
    assert await stage.target("plain") == LEADER_TARGET
    assert roles.used == plain.used
    assert roles.wasted["memory"] < plain.wasted["memory"] / 3
    # Each new leader is short for the seconds until the updater looks.
    assert roles.starved["memory"] <= ROTATIONS * 8e9 * SOON / 3600


async def _uids(stage: Stage) -> list[str]:
    return [(await stage.read_pod(f"{ROLES}-{index}"))["metadata"]["uid"] for index in range(REPLICAS)]
