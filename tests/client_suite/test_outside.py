"""The API server calls others: admission webhooks and aggregated APIs."""

import asyncio
import secrets

import pytest

from tests.client_suite.objects import CONFIG_MAPS, config_map
from tests.client_suite.outside import Outside, json_patch, review
from trimtab.cluster import errors
from trimtab.cluster.resource import Json, Resource

GROUP = "admissionregistration.k8s.io"
MUTATING = Resource(
    GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", Json, namespaced=False
)
VALIDATING = Resource(
    GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", Json, namespaced=False
)
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", Json, namespaced=False)
SERVICES = Resource("", "v1", "services", "Service", Json)


def webhook(name, outside, namespace, *, policy="Fail"):
    hook = {
        "name": "maps.trimtab.dev",
        "clientConfig": {"url": f"{outside.url}/{name}", "caBundle": outside.ca_bundle},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": policy,
        "timeoutSeconds": 3,
    }
    return {"metadata": {"name": name}, "webhooks": [hook]}


async def when_active(client, namespace, probe):
    """Create config maps until the webhook is asked; a kube-apiserver takes a moment to hear of it."""
    async with asyncio.timeout(30):
        while True:
            result = await probe(await _try(client, namespace))
            if result is not None:
                return result
            await asyncio.sleep(0.1)


async def _try(client, namespace):
    try:
        return await client.create(CONFIG_MAPS, config_map(f"m-{secrets.token_hex(4)}"), namespace)
    except errors.ApiError as error:
        return error


async def test_a_mutating_webhook_changes_what_is_stored(api_server):
    client, ns = api_server.client, api_server.namespace
    patch = json_patch({"op": "add", "path": "/data", "value": {"by": "webhook"}})
    async with Outside(lambda path, body: review(body, **patch)) as outside:
        await client.create(MUTATING, webhook(f"m-{ns}", outside, ns))
        try:

            async def probe(made):
                return made if isinstance(made, dict) and made.get("data") else None

            made = await when_active(client, ns, probe)
        finally:
            await client.delete(MUTATING, f"m-{ns}")
    assert made["data"] == {"by": "webhook"}
    asked = outside.calls[-1][1]["request"]
    assert (asked["operation"], asked["namespace"], asked["kind"]["kind"]) == ("CREATE", ns, "ConfigMap")
    assert asked["object"]["metadata"]["name"] == made["metadata"]["name"]


async def test_a_validating_webhook_refuses_with_its_own_words(api_server):
    client, ns = api_server.client, api_server.namespace
    refusal = {"allowed": False, "status": {"message": "not on a Monday", "code": 403}}
    async with Outside(lambda path, body: review(body, **refusal)) as outside:
        await client.create(VALIDATING, webhook(f"v-{ns}", outside, ns))
        try:

            async def probe(made):
                return made if isinstance(made, errors.ApiError) else None

            error = await when_active(client, ns, probe)
        finally:
            await client.delete(VALIDATING, f"v-{ns}")
    assert isinstance(error, errors.Forbidden)
    assert error.message == 'admission webhook "maps.trimtab.dev" denied the request: not on a Monday'


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_webhook_that_is_away_blocks_only_if_it_says_fail(api_server, policy):
    client, ns = api_server.client, api_server.namespace
    name = f"{policy.lower()}-{ns}"
    async with Outside(lambda path, body: review(body, allowed=False)) as outside:
        await client.create(VALIDATING, webhook(name, outside, ns, policy=policy))

        async def refused(made):
            return True if isinstance(made, errors.ApiError) else None

        await when_active(client, ns, refused)
    try:
        result = await _try(client, ns)
    finally:
        await client.delete(VALIDATING, name)
    if policy == "Ignore":
        assert result["metadata"]["uid"]
    else:
        assert isinstance(result, errors.ServerError)
        assert "failed calling webhook" in result.message


async def test_an_aggregated_api_is_served_through_the_server(api_server):
    client, ns = api_server.client, api_server.namespace
    group = f"a{secrets.token_hex(3)}.example"
    things = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1"}
    resource = {
        "name": "things",
        "singularName": "thing",
        "namespaced": True,
        "kind": "Thing",
        "verbs": ["list"],
    }
    pages: dict[str, Json] = {
        f"/apis/{group}/v1": {**things, "resources": [resource]},
        f"/apis/{group}/v1/namespaces/{ns}/things": {
            "kind": "ThingList",
            "apiVersion": f"{group}/v1",
            "metadata": {},
            "items": [{"metadata": {"name": "one"}}],
        },
    }
    async with Outside(lambda path, body: pages.get(path)) as outside:
        service = {
            "metadata": {"name": "outside"},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        await client.create(SERVICES, service, ns)
        spec = {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"name": "outside", "namespace": ns, "port": outside.port},
        }
        await client.create(API_SERVICES, {"metadata": {"name": f"v1.{group}"}, "spec": spec})
        try:
            listing = await _until_listed(client, Resource(group, "v1", "things", "Thing", Json), ns)
        finally:
            await client.delete(API_SERVICES, f"v1.{group}")
    assert [pod["metadata"]["name"] for pod in listing["items"]] == ["one"]


async def _until_listed(client, resource, namespace):
    async with asyncio.timeout(40):
        while True:
            try:
                return await client.read("listing things", resource.path(namespace), dict)
            except (errors.NotFound, errors.Unavailable):
                await asyncio.sleep(0.2)
