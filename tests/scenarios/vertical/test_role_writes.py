"""A role moves although a pod of it is deleted meanwhile, and ends with its Lease."""

from tests.scenarios.vertical.test_roles_from_leases import hold, keeping, roles, settled
from tests.support.clock import in_virtual_time
from tests.support.transport import status
from trimtab.cluster.resource import LEASES
from trimtab.decide.vertical.control.role_labels import LEASE_ANNOTATION


@in_virtual_time
async def test_a_leader_that_is_deleted_just_now_does_not_keep_the_label_from_the_next(stage):
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await hold(stage, "db-0")
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        await settled(stage, actor, keeper)
        await hold(stage, "db-1")
        await stage.caught_up(actor)
        await stage.clock.sleep(0.3)
        actor.line.answer = lambda request: (
            status(404, "NotFound")
            if request.method == "PATCH" and request.path.endswith("/pods/db-0")
            else None
        )
        assert await keeper.step() == 1, "the deleted pod has no label that could be removed"
        assert (await roles(stage))[1] == "leader"
        assert keeper.health() == {}


@in_virtual_time
async def test_a_role_without_a_lease_has_no_holder(stage):
    await stage.statefulset("db", 3, annotations={LEASE_ANNOTATION: "db"})
    await hold(stage, "db-0")
    async with stage.running() as actor, keeping(stage, actor) as keeper:
        await settled(stage, actor, keeper)
        assert await roles(stage) == ["leader", None, None]
        await stage.client.delete(LEASES, "db", stage.namespace)
        await settled(stage, actor, keeper)
        assert await roles(stage) == [None, None, None]
