"""Webhooks: who is asked, what answers do, and what happens when nobody answers."""

import asyncio
import base64
import json

import pytest

from tests.unit.lab.api import CONFIG_MAPS, RefusedError, config_map, running
from trimtab.clock import VirtualClock
from trimtab_lab.apiserver.request import ApiResponse

HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"


def configuration(name="guard", **hook):
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    return {
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"{name}.example.com",
                "rules": [rule],
                "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/review"}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                **hook,
            }
        ],
    }


def answering(api, **answer):
    """Register a webhook that always answers the same, and return the reviews it gets."""
    seen = []

    async def backend(_method, _path, _headers, body):
        review = json.loads(body)
        seen.append(review["request"])
        return ApiResponse.of({**review, "response": {"uid": review["request"]["uid"], **answer}})

    api.server.outbound.register("default", "hook", backend)
    return seen


def json_patch(*operations):
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(operations).encode()).decode(),
    }


async def test_a_mutating_webhook_changes_what_is_stored():
    async with running() as api:
        seen = answering(api, **json_patch({"op": "add", "path": "/data", "value": {"by": "hook"}}))
        await api.create(HOOKS.format("mutating"), configuration())
        made = await api.create(CONFIG_MAPS, config_map("a"))
        assert made["data"] == {"by": "hook"}
        assert seen[0]["operation"] == "CREATE"
        assert seen[0]["userInfo"]["username"] == "admin"


async def test_a_validating_webhook_refuses_with_its_own_words():
    async with running() as api:
        answering(api, allowed=False, status={"message": "not today", "code": 418})
        await api.create(HOOKS.format("validating"), configuration())
        with pytest.raises(
            RefusedError, match=r'admission webhook "guard\.example\.com" denied the request: not today'
        ) as refused:
            await api.create(CONFIG_MAPS, config_map("a"))
        assert refused.value.status == 418
        assert not await api.exists(f"{CONFIG_MAPS}/a")


async def test_deletes_and_updates_are_reviewed_with_the_old_object():
    async with running() as api:
        seen = answering(api, allowed=True, warnings=["careful"])
        await api.create(HOOKS.format("validating"), configuration())
        await api.create(CONFIG_MAPS, config_map("a"))
        assert api.warnings == ("careful",)
        await api.merge(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
        await api.delete(f"{CONFIG_MAPS}/a")
        assert [review["operation"] for review in seen] == ["CREATE", "UPDATE", "DELETE"]
        assert seen[2]["object"] is None
        assert seen[2]["oldObject"]["data"] == {"x": "1"}


@pytest.mark.parametrize(
    ("hook", "labels"),
    [
        pytest.param(
            {"objectSelector": {"matchLabels": {"watch": "me"}}}, {}, id="an object that is not selected"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"watch": "me"}}}, {}, id="a namespace that is not selected"
        ),
    ],
)
async def test_a_webhook_is_not_asked_about(hook, labels):
    async with running() as api:
        seen = answering(api, allowed=False)
        await api.create(HOOKS.format("validating"), configuration(**hook))
        await api.create(CONFIG_MAPS, config_map("a", labels))
        assert not seen


@pytest.mark.parametrize(("policy", "passes"), [("Ignore", True), ("Fail", False)])
async def test_a_webhook_that_is_not_there(policy, passes):
    async with running() as api:
        await api.create(HOOKS.format("validating"), configuration(failurePolicy=policy))
        if passes:
            await api.create(CONFIG_MAPS, config_map("a"))
            return
        with pytest.raises(RefusedError, match=r'failed calling webhook "guard\.example\.com"') as refused:
            await api.create(CONFIG_MAPS, config_map("a"))
        assert refused.value.status == 500


def test_a_webhook_that_hangs_is_given_up_at_its_timeout():
    clock = VirtualClock()

    async def scenario():
        async with running(clock) as api:

            async def hang(*_):
                await asyncio.sleep(3600)

            api.server.outbound.register("default", "hook", hang)
            await api.create(
                HOOKS.format("validating"), configuration(failurePolicy="Ignore", timeoutSeconds=3)
            )
            await api.create(CONFIG_MAPS, config_map("a"))

    clock.run(scenario())
    assert clock.monotonic() == 3


async def test_a_write_that_lost_a_race_during_a_webhook_starts_again():
    async with running() as api:
        await api.create(CONFIG_MAPS, config_map("a"))
        calls = []

        async def meddle(_method, _path, _headers, body):
            review = json.loads(body)
            calls.append(review)
            if len(calls) == 1:
                entry = api.server.store.get("configmaps", "default/a")
                assert entry is not None
                other = entry.decoded()
                other["data"] = {"other": "writer"}
                api.server.store.commit("configmaps", other, {})
            return ApiResponse.of({**review, "response": {"uid": review["request"]["uid"], "allowed": True}})

        api.server.outbound.register("default", "hook", meddle)
        await api.create(HOOKS.format("validating"), configuration())
        changed = await api.merge(f"{CONFIG_MAPS}/a", {"data": {"mine": "1"}})
        assert changed["data"] == {"mine": "1", "other": "writer"}
        assert len(calls) == 2


async def test_webhooks_cannot_lock_their_own_configuration():
    async with running() as api:
        answering(api, allowed=False)
        everything = {
            "operations": ["*"],
            "apiGroups": ["*"],
            "apiVersions": ["*"],
            "resources": ["*/*", "*"],
        }
        await api.create(HOOKS.format("validating"), configuration(rules=[everything]))
        await api.delete(HOOKS.format("validating") + "/guard")
        await api.create(CONFIG_MAPS, config_map("a"))
        assert await api.exists(f"{CONFIG_MAPS}/a")
