"""What autoscaling needs beyond plain objects: scale, eviction, resize, ownership, custom kinds, discovery."""

import asyncio
import secrets

import pytest

from tests.client_suite.objects import (
    BUDGETS,
    CONFIG_MAPS,
    DEFINITIONS,
    config_map,
    deployment,
    gadget_definition,
    owner_of,
    pod,
)
from tools.peers.cluster import WORKLOAD_CONTROLLERS
from trimtab.cluster import errors
from trimtab.cluster.cache.informer import Informer
from trimtab.cluster.client import (
    DeleteOptions,
    ListOptions,
    Preconditions,
    retry_on_conflict,
)
from trimtab.cluster.codec.objects import PartialObject
from trimtab.cluster.discovery import Discovery, UnknownKindError
from trimtab.cluster.resource import DEPLOYMENTS, PODS, Json, Resource
from trimtab.cluster.scale import read_scale, scale_of, write_scale


async def test_a_deployment_is_scaled_with_the_version_that_was_read(api_server):
    client, ns = api_server.client, api_server.namespace
    cached = await client.create(DEPLOYMENTS, deployment("web", replicas=2), ns)
    served = await Discovery(client).find_kind("apps/v1", "Deployment")
    assert served.has_scale
    scale = await read_scale(client, served, "web", ns)
    assert (scale.spec.replicas, scale.status.selector) == (2, "app=web")
    assert scale.metadata.uid == cached.metadata.uid
    ours = scale_of(await client.get(DEPLOYMENTS, "web", ns))
    assert (ours.spec, ours.status.selector, ours.metadata.uid) == (
        scale.spec,
        scale.status.selector,
        scale.metadata.uid,
    )
    base = Preconditions(scale.metadata.uid, scale.metadata.resource_version)
    written = await write_scale(client, served, "web", ns, 5, preconditions=base)
    assert written.spec.replicas == 5
    with pytest.raises(errors.Conflict):
        await write_scale(client, served, "web", ns, 6, preconditions=base)
    assert (await client.get(DEPLOYMENTS, "web", ns)).spec.replicas == 5


async def test_a_conflict_is_decided_again_on_the_new_state(api_server):
    client, ns = api_server.client, api_server.namespace
    await client.create(DEPLOYMENTS, deployment("web", replicas=2), ns)
    served = await Discovery(client).find_kind("apps/v1", "Deployment")
    tries = []

    async def double():
        scale = await read_scale(client, served, "web", ns)
        tries.append(scale.spec.replicas)
        if len(tries) == 1:
            await client.patch(DEPLOYMENTS, "web", ns, {"spec": {"replicas": 10}})
        base = Preconditions(scale.metadata.uid, scale.metadata.resource_version)
        return await write_scale(client, served, "web", ns, scale.spec.replicas * 2, preconditions=base)

    assert (await retry_on_conflict(double)).spec.replicas == 20
    assert tries == [2, 10]


async def test_a_custom_kind_is_served_defaulted_checked_pruned_and_scaled(api_server):
    client, ns = api_server.client, api_server.namespace
    group = f"x{secrets.token_hex(3)}.example"
    gadgets = Resource(group, "v1", "gadgets", "Gadget", Json)
    discovery = Discovery(client)
    with pytest.raises(UnknownKindError):
        await discovery.find_kind(f"{group}/v1", "Gadget")
    await client.create(DEFINITIONS, gadget_definition(group))
    try:
        await _until_served(client, gadgets, ns)
        body = {
            "apiVersion": f"{group}/v1",
            "kind": "Gadget",
            "metadata": {"name": "g"},
            "spec": {"unknown": 1},
        }
        made = await client.create(gadgets, body, ns)
        assert made["spec"] == {"size": 3}
        for spec in ({"size": -1}, {"colour": "blue"}, {"size": "big"}):
            with pytest.raises(errors.Invalid):
                await client.create(gadgets, {**body, "metadata": {"name": "bad"}, "spec": spec}, ns)
        await discovery.refresh()
        served = await discovery.find_kind(f"{group}/v1", "Gadget")
        await client.patch(gadgets, "g", ns, {"status": {"size": 2, "selector": "a=b"}}, subresource="status")
        scale = await read_scale(client, served, "g", ns)
        assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (3, 2, "a=b")
        base = Preconditions(resource_version=scale.metadata.resource_version)
        await write_scale(client, served, "g", ns, 7, preconditions=base)
        assert (await client.get(gadgets, "g", ns))["spec"]["size"] == 7
    finally:
        await client.delete(DEFINITIONS, f"gadgets.{group}")


async def _until_served(client, resource, namespace):
    async with asyncio.timeout(30):
        while True:
            try:
                await client.list(resource)
            except errors.NotFound:
                await asyncio.sleep(0.05)
            else:
                return


async def test_an_eviction_removes_a_pod_only_if_it_is_the_one_meant(api_server):
    client, ns = api_server.client, api_server.namespace
    made = await client.create(PODS, pod("p"), ns)
    with pytest.raises(errors.Conflict):
        await client.evict("p", ns, preconditions=Preconditions(uid="0f0f0f0f-0000-4000-8000-000000000000"))
    await client.evict("p", ns, dry_run=True)
    assert (await client.get(PODS, "p", ns)).metadata.uid == made.metadata.uid
    old = Preconditions(made.metadata.uid, made.metadata.resource_version)
    changed = await client.patch(PODS, "p", ns, {"metadata": {"labels": {"x": "y"}}})
    with pytest.raises(errors.Conflict):
        await client.evict("p", ns, preconditions=old)
    same = Preconditions(made.metadata.uid, changed.metadata.resource_version)
    await client.evict("p", ns, preconditions=same)
    with pytest.raises(errors.NotFound):
        await client.get(PODS, "p", ns)
    with pytest.raises(errors.NotFound):
        await client.evict("p", ns)


async def test_a_disruption_budget_forbids_an_eviction(api_server):
    client, ns = api_server.client, api_server.namespace
    await client.create(PODS, pod("p", labels={"app": "web"}), ns)
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch(PODS, "p", ns, ready, subresource="status")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await client.create(BUDGETS, {"metadata": {"name": "b"}, "spec": spec}, ns)
    await _until_budget_observed(api_server)
    with pytest.raises(errors.TooManyRequests, match="disruption budget"):
        await client.evict("p", ns)
    await client.get(PODS, "p", ns)


async def _until_budget_observed(api_server):
    """Stand in for the disruption controller where none runs."""
    client, ns = api_server.client, api_server.namespace
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    await client.patch(BUDGETS, "b", ns, {"status": status}, subresource="status")


async def test_a_pod_is_resized_through_its_subresource_only(api_server):
    client, ns = api_server.client, api_server.namespace
    await client.create(PODS, pod("p", cpu="100m"), ns)
    bigger = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "200m"}}}]}
    with pytest.raises(errors.Invalid):
        await client.patch(
            PODS.untyped(),
            "p",
            ns,
            {"spec": {"containers": [{**pod("p")["spec"]["containers"][0], **bigger["containers"][0]}]}},
        )
    resized = await client.resize("p", ns, bigger)
    assert resized["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    assert resized["spec"]["containers"][0]["image"] == "none"


async def test_children_follow_their_owner(api_server, request):
    client, ns = api_server.client, api_server.namespace
    if api_server.is_real:
        cluster = request.getfixturevalue("real_cluster")
        cluster.need_controllers(WORKLOAD_CONTROLLERS)
    parent = await client.create(CONFIG_MAPS, config_map("parent"), ns)
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [owner_of(parent, "ConfigMap")]
    await client.create(CONFIG_MAPS, child, ns)
    informer = await api_server.follow(Informer(client, CONFIG_MAPS.into(PartialObject), ListOptions(ns)))
    assert informer.store.get("child", ns) is not None
    await client.delete(CONFIG_MAPS, "parent", ns, options=DeleteOptions(propagation="Background"))
    await api_server.eventually(lambda: informer.store.get("child", ns) is None)
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAPS, "child", ns)


async def test_discovery_knows_what_has_a_scale(api_server):
    discovery = Discovery(api_server.client)
    for api_version, kind, has_scale in (
        ("apps/v1", "Deployment", True),
        ("apps/v1", "StatefulSet", True),
        ("apps/v1", "DaemonSet", False),
        ("v1", "ReplicationController", True),
        ("v1", "ConfigMap", False),
    ):
        assert (await discovery.find_kind(api_version, kind)).has_scale is has_scale, kind
    assert not (await discovery.find_kind("v1", "Node")).namespaced
    pods = await discovery.served("", "v1", "pods")
    assert pods is not None
    assert {"eviction", "resize", "status"} <= pods.subresources
    with pytest.raises(UnknownKindError):
        await discovery.find_kind("apps/v1", "Nonsense")
