"""Settings of a single VPA's container act with the gates that a chart installs (RV-M9)."""

import pytest

from tests.scenarios.vertical.stage import LEADER, LEADER_TARGET
from tests.support.clock import in_virtual_time


@pytest.mark.parametrize(
    ("setting", "is_lower"),
    [
        pytest.param({"safetyMarginFraction": "0"}, True, id="no margin"),
        pytest.param({"safetyMarginFraction": "1"}, False, id="twice the usage"),
        pytest.param({"targetPercentile": "0.2", "lowerBoundPercentile": "0.1"}, True, id="a low percentile"),
    ],
)
@in_virtual_time
async def test_percentiles_and_margin_of_a_container_need_no_gate(stage, setting, is_lower):
    await stage.statefulset("db", 4)
    policy = {"containerPolicies": [{"containerName": "app", **setting}]}
    await stage.vpa("base", "db", resourcePolicy=policy)
    stage.use(db_0="1e9", db_1=LEADER, db_2=LEADER, db_3=LEADER)
    async with stage.running(feature_gates="") as actor:
        await stage.recommend(actor, 2)
    target = await stage.target("base")
    assert isinstance(target, int)
    assert target < LEADER_TARGET if is_lower else target > LEADER_TARGET
