"""A startup boost is taken back after its VPA is gone, also if it was the last one of its namespace."""

from typing import Any

import pytest

from tests.scenarios.vertical.stage import Stage
from trimtab.operator.vertical.kinds import VPAS

pytestmark = pytest.mark.versions

BOOST = {"cpu": {"type": "Factor", "factor": 8, "durationSeconds": 3600}}
GATES: dict[str, Any] = {"feature_gates": "CPUStartupBoost=true,InPlace=true"}


async def cpu_of(stage: Stage, pod: str) -> str:
    found: str = (await stage.read_pod(pod))["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return found


@pytest.mark.parametrize("mode", ["Off", "Recreate", "InPlaceOrRecreate"])
def test_a_boost_ends_with_its_vpa(play, mode):
    """The pod kept eight times its CPU for good."""

    async def scenario(stage: Stage) -> None:
        await stage.statefulset("db", 2, requests={"cpu": "100m"})
        await stage.vpa("base", "db", mode=mode, startupBoost=BOOST)
        async with stage.running(**GATES) as actor, stage.admitting(actor):
            await stage.caught_up(actor)
            await stage.delete_pod("db-0")
            await stage.heal("db")
            assert await cpu_of(stage, "db-0") == "800m"
            await stage.update(actor)
            assert await cpu_of(stage, "db-0") == "800m", "it lasts an hour"
            await stage.client.delete(VPAS, "base", stage.namespace)
            await stage.update(actor)
            assert await cpu_of(stage, "db-0") == "100m"
            annotations = (await stage.read_pod("db-0"))["metadata"]["annotations"]
            assert not [name for name in annotations if name.startswith("vpaCpuStartupBoost/")]
            assert not actor.wrote("/eviction")
            await stage.update(actor, 2)
            assert len(actor.wrote("/resize")) == 1

    play(scenario)
