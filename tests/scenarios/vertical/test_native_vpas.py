"""VPAs of upstream's kind with `--native-vpas`, beside VPAs of Trimtab's own kind."""

from datetime import timedelta
from typing import Any

from tests.scenarios.vertical.stage import FOLLOWER, LEADER, LEADER_TARGET, Stage
from tests.support.clock import in_virtual_time
from tests.support.objects import CRDS
from tools.peers.vpa_definitions import native_definitions
from trimtab.cluster import errors
from trimtab.model.vpa.types import SCOPE_ANNOTATION
from trimtab.operator.vertical.kinds import NATIVE, VPAS

Json = dict[str, Any]
MINUTE = timedelta(minutes=1)


async def serve_native_vpas(stage: Stage, *, has_scopes: bool = False) -> None:
    """Install upstream's CRDs, or replace them."""
    for definition in native_definitions(has_scopes=has_scopes):
        try:
            await stage.client.create(CRDS, definition)
        except errors.AlreadyExists:
            await stage.client.patch(CRDS, definition["metadata"]["name"], None, {"spec": definition["spec"]})
    for resource in (NATIVE.vpas, NATIVE.checkpoints):

        async def is_served(resource: Any = resource) -> bool:
            try:
                await stage.client.list(resource)
            except errors.ApiError:
                return False
            return True

        await stage.wait_for(is_served)


async def native_vpa(stage: Stage, name: str, *, scope: str = "", field: str = "") -> None:
    spec: Json = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
        "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1},
    }
    if field:
        spec["vpaScope"] = {"name": field}
    annotations = {SCOPE_ANNOTATION: scope} if scope else {}
    body = {
        "apiVersion": NATIVE.vpas.api_version,
        "kind": NATIVE.vpas.kind,
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }
    await stage.client.create(NATIVE.vpas.untyped(), body, stage.namespace)


async def a_leader_and_two_followers(stage: Stage) -> None:
    await stage.statefulset("db", 3)
    await stage.scope("leader", pods={"role": "leader"})
    await stage.label("db-0", role="leader")
    stage.use(db_0=LEADER, db_1=FOLLOWER, db_2=FOLLOWER)


async def native_status(stage: Stage, name: str) -> Json:
    found: Json = await stage.client.get(NATIVE.vpas.untyped(), name, stage.namespace)
    status: Json = found.get("status", {})
    return status


@in_virtual_time
async def test_a_native_vpa_is_left_alone_unless_it_is_asked_for(stage):
    await serve_native_vpas(stage)
    await a_leader_and_two_followers(stage)
    await native_vpa(stage, "db")
    async with stage.running() as actor:
        await stage.recommend(actor, 2)
        await stage.update(actor)
        assert await native_status(stage, "db") == {}
        assert not actor.wrote("/resize")
        assert not actor.wrote("autoscaling.k8s.io")


@in_virtual_time
async def test_a_native_vpa_gives_its_scope_by_annotation_the_size_of_the_role(stage):
    await serve_native_vpas(stage)
    await a_leader_and_two_followers(stage)
    await native_vpa(stage, "lead", scope="leader")
    async with stage.running(native_vpas=True, in_place_skip_disruption_budget=True) as actor:
        await stage.recommend(actor, 2)
        await stage.update(actor)
        assert [await stage.memory(f"db-{index}") for index in range(3)] == [LEADER_TARGET, "50Mi", "50Mi"]
        saved = (await stage.client.list(NATIVE.checkpoints)).items
        assert [item.metadata.name for item in saved] == ["lead-app"]


@in_virtual_time
async def test_an_own_vpa_counts_where_a_native_one_has_its_name(stage):
    await serve_native_vpas(stage)
    await a_leader_and_two_followers(stage)
    await native_vpa(stage, "lead")
    await stage.vpa("lead", "db", scope="leader")
    async with stage.running(native_vpas=True, in_place_skip_disruption_budget=True) as actor:
        await stage.recommend(actor, 2)
        await stage.update(actor)
        assert [await stage.memory(f"db-{index}") for index in range(3)] == [LEADER_TARGET, "50Mi", "50Mi"]
        assert await native_status(stage, "lead") == {}
        assert "Trimtab's kind has its name" in str(actor.site.view.warnings())
        await stage.client.delete(VPAS, "lead", stage.namespace)
        await stage.recommend(actor, 2)
        assert (await native_status(stage, "lead"))["conditions"], "now it is the one of its name"


@in_virtual_time
async def test_a_field_and_an_annotation_that_differ_make_a_scope_unusable(stage):
    await serve_native_vpas(stage, has_scopes=True)
    await a_leader_and_two_followers(stage)
    await native_vpa(stage, "lead", scope="leader", field="other")
    async with stage.running(native_vpas=True, in_place_skip_disruption_budget=True) as actor:
        await stage.recommend(actor, 2)
        await stage.update(actor)
        assert not actor.wrote("/resize")
        (condition,) = (await native_status(stage, "lead"))["conditions"]
        assert (condition["type"], condition["reason"]) == ("ConfigUnsupported", "ScopeAmbiguous")


@in_virtual_time
async def test_a_scope_that_a_crd_prunes_makes_nobody_take_the_roles_pods(stage):
    """The leader of a role was resized to the size of all pods when upstream's CRD came back (stranger.md, 1)."""
    await serve_native_vpas(stage, has_scopes=True)
    await a_leader_and_two_followers(stage)
    await native_vpa(stage, "base")
    await native_vpa(stage, "lead", field="leader")
    options = {"native_vpas": True, "in_place_skip_disruption_budget": True, "in_bounds_lifetime": MINUTE}
    async with stage.running(**options) as actor:
        await stage.recommend(actor, 3)
        await stage.update(actor, 2)
        sizes = [await stage.memory(f"db-{index}") for index in range(3)]
        assert sizes[0] == LEADER_TARGET
        resized = len(actor.wrote("/resize"))
        await serve_native_vpas(stage, has_scopes=False)
        touch = {"metadata": {"labels": {"touched": "yes"}}}
        await stage.client.patch(NATIVE.vpas, "lead", stage.namespace, touch)
        found = await stage.client.get(NATIVE.vpas.untyped(), "lead", stage.namespace)
        assert "vpaScope" not in found["spec"]
        stage.use(db_0=FOLLOWER, db_1=LEADER, db_2=FOLLOWER)
        for _ in range(5):
            await stage.recommend(actor)
            await stage.update(actor)
        assert [await stage.memory(f"db-{index}") for index in range(3)] == sizes
        assert len(actor.wrote("/resize")) == resized
        assert not actor.wrote("/eviction")
        reasons = {
            one["type"]: one.get("reason") for one in (await native_status(stage, "lead"))["conditions"]
        }
        assert reasons["ConfigUnsupported"] == "ScopePruned"
        named = {"metadata": {"annotations": {SCOPE_ANNOTATION: "leader"}}}
        await stage.client.patch(NATIVE.vpas, "lead", stage.namespace, named)
        await stage.recommend(actor)
        found = (await native_status(stage, "lead"))["conditions"]
        assert "ConfigUnsupported" not in {one["type"] for one in found}
