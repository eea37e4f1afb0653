"""The control snapshot is shared by all components until control may have changed."""

import pytest

from tests.scenarios.vertical.stage import Stage
from tests.support.clock import in_virtual_time
from trimtab.cluster.resource import NODES, STATEFUL_SETS
from trimtab.operator.vertical.kinds import VPAS


async def nothing(stage: Stage) -> None:
    """Change nothing."""


async def label_pod(stage: Stage) -> None:
    await stage.label("db-0", role="leader")


async def scale(stage: Stage) -> None:
    await stage.scale("db", 3)


async def edit_vpa(stage: Stage) -> None:
    body = {"spec": {"updatePolicy": {"updateMode": "Off"}}}
    await stage.client.patch(VPAS.untyped(), "base", stage.namespace, body)


async def add_scope(stage: Stage) -> None:
    await stage.scope("leader", pods={"role": "leader"})


async def label_node(stage: Stage) -> None:
    node = (await stage.client.list(NODES)).items[0].metadata.name
    await stage.client.patch(NODES.untyped(), node, None, {"metadata": {"labels": {"size": "big"}}})


async def delete_target(stage: Stage) -> None:
    await stage.client.delete(STATEFUL_SETS, "db", stage.namespace)


@pytest.mark.parametrize(
    ("change", "is_shared"),
    [
        pytest.param(nothing, True, id="nothing changes"),
        pytest.param(label_pod, True, id="pods are read from their cache"),
        pytest.param(scale, True, id="replicas of the target"),
        pytest.param(edit_vpa, False, id="a VPA"),
        pytest.param(add_scope, False, id="a scope"),
        pytest.param(label_node, False, id="labels of a node"),
        pytest.param(delete_target, False, id="the target"),
    ],
)
@in_virtual_time
async def test_a_snapshot_lasts_until_control_may_change(stage, change, is_shared):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    await stage.node("one")
    async with stage.running() as actor:
        await stage.caught_up(actor)
        before = await actor.site.view.control_snapshot()
        await change(stage)
        await stage.clock.sleep(1)
        await stage.caught_up(actor)
        assert (await actor.site.view.control_snapshot() is before) is is_shared
