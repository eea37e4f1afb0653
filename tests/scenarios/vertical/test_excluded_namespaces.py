"""VPAs where no pod is changed: they say so, and nothing is evicted for nothing (RV-H8)."""

import pytest

from tests.scenarios.vertical.stage import LEADER, LEADER_TARGET, Stage
from tests.support.clock import in_virtual_time


async def condition_of(stage: Stage, vpa: str) -> dict[str, str]:
    found = (await stage.read_vpa(vpa)).get("status", {}).get("conditions", [])
    return next((one for one in found if one["type"] == "ConfigUnsupported"), {})


def test_in_our_own_namespace_a_vpa_recommends_says_that_it_changes_nothing_and_evicts_nobody(play):
    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 3)
        await stage.vpa("base", "db", mode="Recreate")
        stage.use(db_0=LEADER, db_1=LEADER, db_2=LEADER)
        async with stage.running(namespace=stage.namespace) as actor:
            await stage.recommend(actor, 2)
            await stage.update(actor, 3)
            assert not actor.wrote("/eviction")
            said = await condition_of(stage, "base")
            assert (said["status"], said["reason"]) == ("True", "NamespaceExcluded")
            assert stage.namespace in said["message"]
            assert await stage.target("base") == LEADER_TARGET
            await stage.recommend(actor)
            assert (await condition_of(stage, "base"))["lastTransitionTime"] == said["lastTransitionTime"]
        async with stage.running() as actor:
            await stage.recommend(actor)
            assert await condition_of(stage, "base") == {}

    play(scenario)


@pytest.mark.parametrize("mode", ["Off", "Recreate"])
@in_virtual_time
async def test_in_an_ignored_namespace_nothing_is_written_at_all(stage, mode):
    await stage.statefulset("db", 3)
    await stage.vpa("base", "db", mode=mode)
    stage.use(db_0=LEADER, db_1=LEADER, db_2=LEADER)
    async with stage.running(ignored_namespaces=(stage.namespace,)) as actor:
        await stage.recommend(actor, 2)
        await stage.update(actor, 2)
        assert not actor.line.writes


@in_virtual_time
async def test_a_vpa_in_mode_off_is_complete_in_an_excluded_namespace(stage):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db", mode="Off")
    stage.use(db_0=LEADER, db_1=LEADER)
    async with stage.running(namespace=stage.namespace) as actor:
        await stage.recommend(actor, 2)
        assert await condition_of(stage, "base") == {}
