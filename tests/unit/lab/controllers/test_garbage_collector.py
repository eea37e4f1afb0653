"""Ownership, finalizers and namespaces: what goes when something is deleted."""

import pytest

from tests.unit.lab.api import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PODS,
    RefusedError,
    config_map,
    owned_by,
    pod,
    running,
)


async def family(api):
    owner = await api.create(CONFIG_MAPS, config_map("owner"))
    await api.create(CONFIG_MAPS, config_map("child", **owned_by(owner)))
    return owner


async def test_dependents_follow_their_owner_in_the_background():
    async with running() as api:
        await family(api)
        await api.delete(f"{CONFIG_MAPS}/owner", {"propagationPolicy": "Background"})
        await api.settle()
        assert not await api.exists(f"{CONFIG_MAPS}/child")


async def test_grandchildren_follow_too():
    async with running() as api:
        await family(api)
        child = await api.get(f"{CONFIG_MAPS}/child")
        await api.create(PODS, pod("grandchild", **owned_by(child)))
        await api.delete(f"{CONFIG_MAPS}/owner")
        await api.settle()
        assert not await api.exists(f"{PODS}/grandchild")


async def test_orphans_stay_and_forget_their_owner():
    async with running() as api:
        await family(api)
        await api.delete(f"{CONFIG_MAPS}/owner", {"propagationPolicy": "Orphan"})
        await api.settle()
        assert not await api.exists(f"{CONFIG_MAPS}/owner")
        assert "ownerReferences" not in (await api.get(f"{CONFIG_MAPS}/child"))["metadata"]


async def test_a_foreground_owner_waits_for_a_dependent_that_blocks_it():
    async with running() as api:
        owner = await api.create(CONFIG_MAPS, config_map("owner"))
        held = {**owned_by(owner, blocks=True), "finalizers": ["example.com/hold"]}
        await api.create(CONFIG_MAPS, config_map("child", **held))
        await api.delete(f"{CONFIG_MAPS}/owner", {"propagationPolicy": "Foreground"})
        await api.settle()
        assert (await api.get(f"{CONFIG_MAPS}/owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]
        await api.merge(f"{CONFIG_MAPS}/child", {"metadata": {"finalizers": None}})
        await api.settle()
        assert not await api.exists(f"{CONFIG_MAPS}/owner")


async def test_an_object_whose_owner_never_existed_is_collected():
    async with running() as api:
        ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such-uid"}}
        await api.create(CONFIG_MAPS, config_map("lost", **owned_by(ghost)))
        await api.settle()
        assert not await api.exists(f"{CONFIG_MAPS}/lost")


async def test_an_owner_of_an_unknown_kind_is_not_judged():
    async with running() as api:
        foreign = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x", "uid": "u"}}
        await api.create(CONFIG_MAPS, config_map("kept", **owned_by(foreign)))
        await api.settle()
        assert await api.exists(f"{CONFIG_MAPS}/kept")


async def test_one_living_owner_is_enough():
    async with running() as api:
        owner = await family(api)
        other = await api.create(CONFIG_MAPS, config_map("other"))
        both = owned_by(owner)["ownerReferences"] + [
            {**owned_by(other)["ownerReferences"][0], "controller": False}
        ]
        await api.merge(f"{CONFIG_MAPS}/child", {"metadata": {"ownerReferences": both}})
        await api.delete(f"{CONFIG_MAPS}/owner")
        await api.settle()
        assert await api.exists(f"{CONFIG_MAPS}/child")


async def test_a_pod_on_a_node_waits_for_its_grace_and_ends_with_zero():
    async with running() as api:
        await api.create(PODS, pod("p", node="n1"))
        going = await api.delete(f"{PODS}/p")
        assert going["metadata"]["deletionGracePeriodSeconds"] == 30
        assert going["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
        await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
        assert not await api.exists(f"{PODS}/p")


async def test_a_namespace_empties_before_it_goes_and_takes_nothing_new():
    async with running() as api:
        await api.create("/api/v1/namespaces", {"metadata": {"name": "short"}})
        inside = "/api/v1/namespaces/short/configmaps"
        await api.create(inside, config_map("held", finalizers=["example.com/hold"]))
        await api.delete("/api/v1/namespaces/short")
        await api.settle()
        assert (await api.get("/api/v1/namespaces/short"))["status"]["phase"] == "Terminating"
        with pytest.raises(RefusedError) as refused:
            await api.create(inside, config_map("late"))
        assert refused.value.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        await api.merge(f"{inside}/held", {"metadata": {"finalizers": None}})
        await api.settle()
        assert not await api.exists("/api/v1/namespaces/short")


async def test_delete_collection_takes_only_what_matches():
    async with running() as api:
        await api.create(CONFIG_MAPS, config_map("a", {"x": "1"}))
        await api.create(CONFIG_MAPS, config_map("b", {"x": "2"}))
        await api.delete(CONFIG_MAPS, query="labelSelector=x%3D1")
        assert not await api.exists(f"{CONFIG_MAPS}/a")
        assert await api.exists(f"{CONFIG_MAPS}/b")


async def test_deleting_a_missing_deployment_is_not_found():
    async with running() as api:
        with pytest.raises(RefusedError, match=r'deployments\.apps "x" not found'):
            await api.delete(f"{DEPLOYMENTS}/x")
