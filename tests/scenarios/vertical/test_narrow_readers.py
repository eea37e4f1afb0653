"""`explain` where the reader lacks something: an unknown VPA, or the right to read objects one by one."""

import pytest

from tests.scenarios.vertical.stage import LEADER
from tests.support.clock import in_virtual_time
from tests.support.transport import Line, status
from trimtab.cluster.client import Client
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.explain import Explainer, NotFoundError


@in_virtual_time
async def test_a_vpa_that_does_not_exist_is_not_found(stage):
    explainer = Explainer(stage.client, stage.namespace, Settings())
    try:
        with pytest.raises(NotFoundError, match=f"there is no VPA {stage.namespace}/nobody, or"):
            await explainer.vpa("nobody")
    finally:
        await explainer.close()


@in_virtual_time
async def test_a_reader_who_may_only_list_is_told_the_next_update_all_the_same(stage):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db", mode="Recreate")
    stage.use(db_0=LEADER, db_1=LEADER)
    async with stage.running() as actor:
        await stage.recommend(actor, 3)
    line = Line(stage.transport)
    line.answer = lambda request: (
        status(403, "Forbidden")
        if request.path.endswith(("/statefulsets/db", "/pods/db-0", "/pods/db-1"))
        else None
    )
    explainer = Explainer(Client(stage.clock, line, seed=5), stage.namespace, Settings())
    try:
        lines = [(await explainer.pod(name)).lines for name in ("db-0", "db-1")]
    finally:
        await explainer.close()
    assert any("/pods/db-" in request.path for request in line.sent), "it was refused"
    assert any("next update: evicted" in line for told in lines for line in told), lines
