"""Every vertical write names the version that it was decided on, so that a late one is a conflict."""

import pytest

from tests.scenarios.vertical.stage import LEADER
from tests.scenarios.vertical.test_roles_from_leases import hold, keeping, settled
from tests.support.clock import in_virtual_time
from trimtab.cluster.resource import PODS, Json
from trimtab.decide.vertical.control.role_labels import LEASE_ANNOTATION
from trimtab.decide.vertical.update.actions import ActionResult, Evict
from trimtab.operator.vertical.kinds import VPAS
from trimtab.operator.vertical.updater.actuator import ActionRateLimiter, UpdateActuator


def version_in(body: Json | list[Json]) -> str:
    """Return the resourceVersion that a write depends on; empty if it depends on none."""
    if isinstance(body, list):
        values = [step["value"] for step in body if step["path"] == "/metadata/resourceVersion"]
        return values[0] if values else ""
    if body.get("kind") == "Eviction":
        return str(body["deleteOptions"]["preconditions"].get("resourceVersion", ""))
    return str(body["metadata"].get("resourceVersion", ""))


@pytest.mark.parametrize("mode", ["InPlaceOrRecreate", "Recreate"])
@in_virtual_time
async def test_statuses_checkpoints_resizes_evictions_and_labels_name_a_version(stage, mode):
    """A write that was held in the network for 40 s overwrote what the next leader had written."""
    await stage.statefulset("db", 2, annotations={LEASE_ANNOTATION: "db"})
    await stage.vpa("base", "db", mode=mode)
    await hold(stage, "db-0")
    stage.use(db_0=LEADER, db_1=LEADER)
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        await settled(stage, actor, keeper)
        await stage.recommend(actor, 8)
        await stage.update(actor)
        written: dict[str, list[str]] = {}
        for write in actor.line.writes:
            if write.request.method == "PATCH" or write.request.path.endswith("/eviction"):
                kind = write.request.path.rpartition("/namespaces/")[2].split("/", 1)[1]
                written.setdefault(kind, []).append(version_in(write.body))
        acted = "resize" if mode == "InPlaceOrRecreate" else "eviction"
        assert any(path.endswith(f"/{acted}") for path in written)
        assert any(path.endswith("/base/status") for path in written)
        assert any("verticalpodautoscalercheckpoints" in path for path in written)
        assert "pods/db-0" in written, "the role label"
        assert {path for path, versions in written.items() if "" in versions} == set()


@in_virtual_time
async def test_an_eviction_of_a_pod_that_changed_since_the_decision_is_not_carried_out(stage):
    await stage.statefulset("db", 2)
    await stage.vpa("base", "db")
    vpa = await stage.client.get(VPAS, "base", stage.namespace)
    cached = await stage.client.get(PODS, "db-0", stage.namespace)
    await stage.client.patch(PODS, "db-0", stage.namespace, {"metadata": {"labels": {"x": "y"}}})

    async def proved() -> str | None:
        return None

    rate = ActionRateLimiter(stage.clock, 0, 1)
    actuator = UpdateActuator(stage.client, rate, rate, proved, stage.clock.monotonic() + 60)
    assert await actuator.perform(Evict(cached, vpa, "as asked")) is ActionResult.FAILED
    assert (await stage.client.get(PODS, "db-0", stage.namespace)).metadata.uid == cached.metadata.uid
