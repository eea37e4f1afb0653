"""Objects: create, read, replace, patch in every form, delete, with the conflicts that must be."""

import asyncio

import pytest

from tests.client_suite.objects import CONFIG_MAPS, config_map, deployment, owner_of, pod
from trimtab.cluster import errors
from trimtab.cluster.client import DeleteOptions, ListOptions, PatchType, Preconditions
from trimtab.cluster.resource import DEPLOYMENTS, PODS
from trimtab.cluster.transport import Request

pytestmark = pytest.mark.versions


async def test_an_object_lives_from_create_to_delete(api_server):
    client, ns = api_server.client, api_server.namespace
    made = await client.create(CONFIG_MAPS, config_map("a", x="1"), ns)
    assert made["metadata"]["uid"]
    assert made["metadata"]["creationTimestamp"]
    assert (await client.get(CONFIG_MAPS, "a", ns))["data"] == {"x": "1"}
    replaced = await client.update(CONFIG_MAPS, "a", ns, {**made, "data": {"y": "2"}})
    assert replaced["data"] == {"y": "2"}
    assert int(replaced["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    await client.delete(CONFIG_MAPS, "a", ns)
    with pytest.raises(errors.NotFound) as caught:
        await client.get(CONFIG_MAPS, "a", ns)
    assert caught.value.details.name == "a"


async def test_names_are_generated_and_taken_only_once(api_server):
    client, ns = api_server.client, api_server.namespace
    generated = await client.create(CONFIG_MAPS, {"metadata": {"generateName": "g-"}}, ns)
    assert generated["metadata"]["name"].startswith("g-")
    assert len(generated["metadata"]["name"]) == 7
    await client.create(CONFIG_MAPS, config_map("a"), ns)
    with pytest.raises(errors.AlreadyExists, match=r"already exists \(409\)"):
        await client.create(CONFIG_MAPS, config_map("a"), ns)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param({"metadata": {"name": "Not_A_Name"}}, errors.Invalid, id="a bad name"),
        pytest.param({"metadata": {}}, errors.Invalid, id="no name"),
        pytest.param({"metadata": {"name": "a"}, "data": {"x": 7}}, errors.BadRequest, id="a wrong type"),
        pytest.param(
            {"metadata": {"name": "a", "namespace": "elsewhere"}}, errors.BadRequest, id="another namespace"
        ),
    ],
)
async def test_a_bad_object_is_refused_for_its_reason(api_server, body, kind):
    with pytest.raises(kind):
        await api_server.client.create(CONFIG_MAPS, body, api_server.namespace)


async def test_a_missing_namespace_is_not_found(api_server):
    with pytest.raises(errors.NotFound) as caught:
        await api_server.client.create(CONFIG_MAPS, config_map("a"), "no-such-namespace")
    assert caught.value.details.kind == "namespaces"


async def test_an_old_version_cannot_overwrite_a_new_one(api_server):
    client, ns = api_server.client, api_server.namespace
    old = await client.create(CONFIG_MAPS, config_map("a", x="1"), ns)
    await client.patch(CONFIG_MAPS, "a", ns, {"data": {"x": "2"}})
    with pytest.raises(errors.Conflict):
        await client.update(CONFIG_MAPS, "a", ns, {**old, "data": {"x": "3"}})
    assert (await client.get(CONFIG_MAPS, "a", ns))["data"] == {"x": "2"}


@pytest.mark.parametrize("how", [PatchType.MERGE, PatchType.STRATEGIC], ids=["merge", "strategic"])
async def test_a_patch_with_an_old_version_or_another_uid_is_a_conflict(api_server, how):
    client, ns = api_server.client, api_server.namespace
    made = await client.create(CONFIG_MAPS, config_map("a", x="1"), ns)
    await client.patch(CONFIG_MAPS, "a", ns, {"data": {"x": "2"}})
    old = Preconditions(resource_version=made["metadata"]["resourceVersion"])
    with pytest.raises(errors.Conflict):
        await client.patch(CONFIG_MAPS, "a", ns, {"data": {"x": "3"}}, how=how, preconditions=old)
    stranger = Preconditions(uid="0f0f0f0f-0000-4000-8000-000000000000")
    with pytest.raises(errors.Conflict):
        await client.patch(CONFIG_MAPS, "a", ns, {"data": {"x": "3"}}, how=how, preconditions=stranger)


async def test_a_json_patch_with_an_old_version_is_a_conflict(api_server):
    """As a test of the patch it was a 422, which callers take for a wrong object."""
    client, ns = api_server.client, api_server.namespace
    made = await client.create(CONFIG_MAPS, config_map("a", x="1"), ns)
    operations = [{"op": "add", "path": "/data/x", "value": "2"}]
    same = Preconditions(made["metadata"]["uid"], made["metadata"]["resourceVersion"])
    await client.patch(CONFIG_MAPS, "a", ns, operations, how=PatchType.JSON, preconditions=same)
    operations = [{"op": "add", "path": "/data/x", "value": "3"}]
    with pytest.raises(errors.Conflict):
        await client.patch(CONFIG_MAPS, "a", ns, operations, how=PatchType.JSON, preconditions=same)
    assert (await client.get(CONFIG_MAPS, "a", ns))["data"] == {"x": "2"}


async def test_a_patch_that_changes_nothing_writes_nothing(api_server):
    client, ns = api_server.client, api_server.namespace
    made = await client.create(CONFIG_MAPS, config_map("a", x="1"), ns)
    same = await client.patch(CONFIG_MAPS, "a", ns, {"data": {"x": "1"}})
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_each_form_of_patch_does_what_it_should(api_server):
    client, ns = api_server.client, api_server.namespace
    await client.create(CONFIG_MAPS, config_map("a", x="1", y="2"), ns)
    merged = await client.patch(CONFIG_MAPS, "a", ns, {"data": {"x": None, "z": "3"}})
    assert merged["data"] == {"y": "2", "z": "3"}
    steps = [
        {"op": "test", "path": "/data/y", "value": "2"},
        {"op": "replace", "path": "/data/y", "value": "9"},
    ]
    assert (await client.patch(CONFIG_MAPS, "a", ns, steps, how=PatchType.JSON))["data"]["y"] == "9"
    wrong = [{"op": "test", "path": "/data/y", "value": "no"}, {"op": "remove", "path": "/data/y"}]
    with pytest.raises(errors.ApiError):
        await client.patch(CONFIG_MAPS, "a", ns, wrong, how=PatchType.JSON)
    assert "y" in (await client.get(CONFIG_MAPS, "a", ns))["data"]


async def test_a_strategic_patch_merges_containers_by_name(api_server):
    client, ns = api_server.client, api_server.namespace
    untyped = DEPLOYMENTS.untyped()
    await client.create(untyped, deployment("web"), ns)
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "other"}]}}}}
    patched = await client.patch(untyped, "web", ns, side, how=PatchType.STRATEGIC)
    containers = patched["spec"]["template"]["spec"]["containers"]
    assert sorted(container["name"] for container in containers) == ["app", "side"]


async def test_server_side_apply_creates_then_owns_its_fields(api_server):
    client, ns = api_server.client, api_server.namespace
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}}
    await client.patch(CONFIG_MAPS, "a", ns, body, how=PatchType.APPLY)
    await client.patch(CONFIG_MAPS, "a", ns, {"data": {"other": "kept"}})
    applied = await client.patch(CONFIG_MAPS, "a", ns, {**body, "data": {"x": "5"}}, how=PatchType.APPLY)
    assert applied["data"] == {"x": "5", "other": "kept"}


async def test_delete_honours_its_preconditions(api_server):
    client, ns = api_server.client, api_server.namespace
    made = await client.create(CONFIG_MAPS, config_map("a"), ns)
    stranger = Preconditions(uid="0f0f0f0f-0000-4000-8000-000000000000")
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", ns, options=DeleteOptions(stranger))
    await client.delete(
        CONFIG_MAPS, "a", ns, options=DeleteOptions(Preconditions(uid=made["metadata"]["uid"]))
    )


async def test_a_finalizer_holds_an_object_until_it_is_taken_off(api_server):
    client, ns = api_server.client, api_server.namespace
    held = config_map("a")
    held["metadata"]["finalizers"] = ["trimtab.dev/test"]
    await client.create(CONFIG_MAPS, held, ns)
    await client.delete(CONFIG_MAPS, "a", ns)
    assert (await client.get(CONFIG_MAPS, "a", ns))["metadata"]["deletionTimestamp"]
    await client.patch(CONFIG_MAPS, "a", ns, {"metadata": {"finalizers": None}})
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAPS, "a", ns)


async def test_selectors_choose_on_the_server(api_server):
    client, ns = api_server.client, api_server.namespace
    for name, labels in {"a": {"app": "web", "tier": "1"}, "b": {"app": "web"}, "c": {"app": "db"}}.items():
        await client.create(CONFIG_MAPS, config_map(name, labels=labels), ns)

    async def names(labels="", fields=""):
        listing = await client.list(CONFIG_MAPS, ListOptions(ns, labels, fields))
        return "".join(
            sorted(obj["metadata"]["name"] for obj in listing.items if len(obj["metadata"]["name"]) == 1)
        )

    assert await names("app=web") == "ab"
    assert await names("app in (web, db), tier") == "a"
    assert await names("app!=web,app") == "c"
    assert await names("!tier,app") == "bc"
    assert await names(fields="metadata.name=b") == "b"
    assert await names("app=web", "metadata.name!=a") == "b"
    with pytest.raises(errors.BadRequest):
        await names("app=(")
    with pytest.raises(errors.BadRequest):
        await names(fields="spec.nonsense=1")


async def test_a_status_is_written_apart_from_the_spec(api_server):
    client, ns = api_server.client, api_server.namespace
    untyped = DEPLOYMENTS.untyped()
    made = await client.create(untyped, deployment("web"), ns)
    assert made["metadata"]["generation"] == 1
    status = {"status": {"replicas": 2, "observedGeneration": 1}, "spec": {"replicas": 99}}
    seen = await client.patch(untyped, "web", ns, status, subresource="status")
    assert seen["status"]["replicas"] == 2
    assert seen["spec"]["replicas"] == 2
    assert seen["metadata"]["generation"] == 1
    spec = await client.patch(untyped, "web", ns, {"spec": {"replicas": 3}, "status": {"replicas": 77}})
    assert spec["status"]["replicas"] == 2
    assert spec["metadata"]["generation"] == 2


async def test_with_a_wrong_token_nothing_is_shown(api_server):
    wrong = {"Authorization": "Bearer wrong", "authorization": "Bearer wrong"}
    request = Request("GET", CONFIG_MAPS.path(api_server.namespace, "a"), headers=wrong)
    with pytest.raises(errors.Unauthorized):
        await api_server.client.sender.send_once("reading", request)


async def test_of_many_writers_with_one_version_exactly_one_wins(api_server):
    client, ns = api_server.client, api_server.namespace
    made = await client.create(CONFIG_MAPS, config_map("a"), ns)
    bodies = [{**made, "data": {"winner": str(number)}} for number in range(8)]
    writes = (client.update(CONFIG_MAPS, "a", ns, body) for body in bodies)
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(result, dict) for result in results) == 1
    assert sum(isinstance(result, errors.Conflict) for result in results) == 7


async def test_typed_reading_sees_what_was_written(api_server):
    client, ns = api_server.client, api_server.namespace
    made = await client.create(PODS, pod("p", labels={"app": "web"}, cpu="250m"), ns)
    assert made.metadata.labels == {"app": "web"}
    assert made.spec.containers[0].resources.requests["cpu"].milli_value() == 250
    owner = owner_of((await client.create(CONFIG_MAPS, config_map("o"), ns)), "ConfigMap")
    child = await client.create(PODS, pod("q", owner=owner), ns)
    assert child.metadata.owner_references[0].uid == owner["uid"]
