"""The numbers of fixture F5, as a person sees them: in the status of VPAs, read with kubectl from the real server."""

import json

import pytest

from tests.scenarios.vertical.conftest import play_on_real
from tests.scenarios.vertical.stage import FOLLOWER, FOLLOWER_TARGET, LEADER, LEADER_TARGET, Stage

pytestmark = pytest.mark.real


def test_kubectl_shows_each_roles_own_target(real_cluster):
    seen: dict[str, str] = {}

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 3)
        await stage.scope("leader", pods={"role": "leader"})
        await stage.vpa("base", "db")
        await stage.vpa("lead", "db", scope="leader")
        await stage.label("db-0", role="leader")
        stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)
        async with stage.running() as actor:
            await stage.recommend(actor, 2)
        shown = json.loads(real_cluster.kubectl("get", "tvpa", "-n", stage.namespace, "-o", "json"))
        for item in shown["items"]:
            (container,) = item["status"]["recommendation"]["containerRecommendations"]
            seen[item["metadata"]["name"]] = container["target"]["memory"]

    play_on_real(real_cluster, scenario)
    assert seen == {"base": str(FOLLOWER_TARGET), "lead": str(LEADER_TARGET)}
