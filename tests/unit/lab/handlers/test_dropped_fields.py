"""`drop=metadata.managedFields` in the Accept header leaves these fields out, and nothing else."""

import json

import pytest

from tests.unit.lab.api import CONFIG_MAPS, PODS, Watching, config_map, pod, running

PLAIN = "application/json"
DROP = "application/json;drop=metadata.managedFields"


async def ask(api, path, accept, query=""):
    headers = {"Authorization": f"Bearer {api.server.tokens.admin}", "Accept": accept}
    return await api.server.request("GET", path, query, headers)


async def read(api, path, accept, query=""):
    return json.loads((await ask(api, path, accept, query)).body)


def stripped(obj):
    return {
        **obj,
        "metadata": {name: obj["metadata"][name] for name in obj["metadata"] if name != "managedFields"},
    }


@pytest.mark.parametrize(
    "accept",
    [
        DROP,
        f"{DROP},application/json",
        "application/json; drop=metadata.managedFields",
        f"application/json;drop=metadata.annotations,{DROP}",
        f"application/vnd.kubernetes.protobuf;drop=metadata.managedFields,{DROP}",
    ],
)
async def test_objects_and_lists_lack_only_the_managed_fields(accept):
    async with running() as api:
        for name in "ab":
            await api.create(PODS, pod(name), "fieldManager=tester")
        whole = await read(api, PODS, PLAIN)
        assert all(item["metadata"]["managedFields"] for item in whole["items"])
        assert await read(api, PODS, accept) == {**whole, "items": list(map(stripped, whole["items"]))}
        one = await read(api, f"{PODS}/a", PLAIN)
        assert await read(api, f"{PODS}/a", accept) == stripped(one)


@pytest.mark.parametrize(
    "accept",
    [
        "application/json;drop=",
        "application/json;drop=metadata,application/json",
        f"application/json,{DROP}",
    ],
)
async def test_other_values_drop_nothing(accept):
    async with running() as api:
        await api.create(PODS, pod("a"))
        assert "managedFields" in (await read(api, f"{PODS}/a", accept))["metadata"]


@pytest.mark.parametrize("drop", ["metadata", "managedFields", "metadata.managedFields+metadata.labels"])
async def test_other_values_are_not_acceptable(drop):
    """As Kubernetes 1.38 has it while the feature gate is on."""
    async with running() as api:
        assert (await ask(api, PODS, f"application/json;drop={drop}")).status == 406


async def test_tables_and_metadata_lack_the_managed_fields_too():
    async with running() as api:
        await api.create(PODS, pod("a"))
        for form in ("Table", "PartialObjectMetadataList"):
            accept = f"application/json;as={form};v=v1;g=meta.k8s.io"
            for drop, is_there in (("", True), (";drop=metadata.managedFields", False)):
                body = (await ask(api, PODS, accept + drop)).body
                assert (b'"managedFields"' in body) == is_there


async def test_watches_of_both_forms_share_no_event():
    """Events are encoded once per form: the first watcher must not decide what the second one gets."""
    async with running() as api:
        streams = [
            Watching((await ask(api, CONFIG_MAPS, accept, "watch=true&resourceVersion=0")).stream)
            for accept in (DROP, PLAIN, DROP)
        ]
        await api.create(CONFIG_MAPS, config_map("a", {"app": "a"}))
        await api.merge(f"{CONFIG_MAPS}/a", {"data": {"a": "b"}})
        await api.delete(f"{CONFIG_MAPS}/a")
        for _ in range(3):
            events = [await stream.next() for stream in streams]
            assert ["managedFields" in event["object"]["metadata"] for event in events] == [
                False,
                True,
                False,
            ]
            assert stripped(events[1]["object"]) == events[0]["object"] == events[2]["object"]
        for stream in streams:
            await stream.close()
