"""Webhook configurations: what is applied, and what is removed from those of the other naming."""

import json
from typing import Any

import pytest

from tests.support.asgi import AsgiTransport
from tests.unit.cluster.fake_api import Answer, FakeApi, status
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.model.vpa.webhooks import UPSTREAM_NAME
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.registration import (
    Registration,
    configuration_name,
    configurations,
    parse_labels,
)


def ours(settings, name="a"):
    service = {"namespace": settings.namespace, "name": settings.admission.webhook_service}
    return {"name": name, "clientConfig": {"service": service}}


THEIRS = {"name": "theirs", "clientConfig": {"service": {"namespace": "kube-system", "name": "vpa-webhook"}}}


def ensure(stored, times=1, **options):
    """Register, and return the patches by the last two parts of their path."""
    settings = Settings.of(namespace="trimtab", **options)
    clock, api = VirtualClock(), FakeApi()
    sent = []

    def fault(request):
        kind, name = request.path.split("/")[-2:]
        if request.method == "PATCH":
            sent.append((kind, name, json.loads(request.body)))
            return Answer(200, {"metadata": {"name": name, "generation": 1}})
        found = stored(settings).get((kind, name))
        return Answer(200, found) if found else Answer(404, status(404, "NotFound"))

    api.fault = fault

    async def main():
        registration = Registration(Client(clock, AsgiTransport(api), seed=1), settings)
        for _ in range(times):
            await registration.ensure(b"bundle")

    clock.run(main())
    return sent


MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"


def test_both_configurations_are_applied():
    applied = ensure(lambda settings: {})
    assert [(kind, name) for kind, name, _ in applied] == [
        (MUTATING, "trimtab-vpa"),
        (VALIDATING, "trimtab-vpa"),
    ]


@pytest.mark.parametrize(
    ("kinds", "emptied"),
    [
        ((MUTATING,), [MUTATING]),
        ((VALIDATING,), [VALIDATING]),
        ((MUTATING, VALIDATING), [MUTATING, VALIDATING]),
    ],
)
def test_ours_are_removed_from_upstreams_configurations_and_theirs_stay(kinds, emptied):
    def stored(settings):
        webhooks = [ours(settings, "a"), THEIRS, ours(settings, "b")]
        return {(kind, UPSTREAM_NAME): {"metadata": {}, "webhooks": webhooks} for kind in kinds}

    sent = ensure(stored)
    patches = [(kind, body) for kind, name, body in sent if name == UPSTREAM_NAME]
    assert patches == [(kind, {"webhooks": [THEIRS]}) for kind in emptied]


def test_a_configuration_without_ours_is_not_written():
    def stored(settings):
        return {(MUTATING, UPSTREAM_NAME): {"metadata": {}, "webhooks": [THEIRS]}}

    assert [name for _, name, _ in ensure(stored)] == ["trimtab-vpa"] * 2


def test_under_upstreams_naming_our_own_configurations_are_emptied_once():
    def stored(settings):
        return {
            (kind, "trimtab-vpa"): {"metadata": {}, "webhooks": [ours(settings)]}
            for kind in (MUTATING, VALIDATING)
        }

    sent = ensure(stored, times=2, webhook_naming="upstream")
    emptied = [(kind, body) for kind, name, body in sent if name == "trimtab-vpa"]
    assert emptied == [(MUTATING, {"webhooks": []}), (VALIDATING, {"webhooks": []})]


OURS_BY_URL = {"name": "a", "clientConfig": {"url": "https://10.0.0.1:8000/mutate-pods"}}
ANOTHERS_BY_URL = {"name": "b", "clientConfig": {"url": "https://10.0.0.2:8000/mutate-pods"}}


def test_outside_of_the_cluster_ours_are_known_by_their_url():
    def stored(settings):
        webhooks = [ANOTHERS_BY_URL, OURS_BY_URL, THEIRS, ours(settings)]
        return {(MUTATING, UPSTREAM_NAME): {"metadata": {}, "webhooks": webhooks}}

    sent = ensure(stored, webhook_url="https://10.0.0.1:8000")
    (emptied,) = [body for _, name, body in sent if name == UPSTREAM_NAME]
    kept = [webhook["name"] for webhook in emptied["webhooks"]]
    assert kept == ["b", "theirs", "a"], "the last is called through a Service"
    assert "service" in emptied["webhooks"][-1]["clientConfig"]


BUNDLE = "YnVuZGxl"
"""The bundle of `ensure` as configurations hold it."""


def with_bundle(webhook, bundle):
    return {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": bundle}}


def test_only_the_bundles_of_ours_are_written_and_only_if_they_differ():
    def stored(settings):
        mutating = [THEIRS, ours(settings, "a"), with_bundle(ours(settings, "b"), "b2xk")]
        validating = [with_bundle(ours(settings, "c"), BUNDLE)]
        return {
            (MUTATING, "trimtab-vpa"): {"metadata": {}, "webhooks": mutating},
            (VALIDATING, "trimtab-vpa"): {"metadata": {}, "webhooks": validating},
        }

    assert ensure(stored, webhook_registration="ca-bundle") == [
        (
            MUTATING,
            "trimtab-vpa",
            [
                {"op": "test", "path": "/webhooks/1/name", "value": "a"},
                {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": BUNDLE},
                {"op": "test", "path": "/webhooks/2/name", "value": "b"},
                {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": BUNDLE},
            ],
        )
    ]


@pytest.mark.parametrize(
    ("webhooks", "message"),
    [
        pytest.param(None, "trimtab-vpa is missing; apply the installation again", id="no configuration"),
        pytest.param([THEIRS], "has no webhook that calls this server", id="none of ours"),
        pytest.param([], "has no webhook that calls this server", id="none at all"),
    ],
)
def test_an_installation_without_our_webhooks_is_a_problem(webhooks, message):
    def stored(settings):
        found = {"metadata": {}, "webhooks": webhooks}
        return {} if webhooks is None else {(MUTATING, "trimtab-vpa"): found}

    with pytest.raises(ValueError, match=message):
        ensure(stored, webhook_registration="ca-bundle")


def test_a_configuration_is_applied_again_when_it_was_edited_or_its_bundle_changed():
    settings = Settings.of(namespace="trimtab")
    clock, api = VirtualClock(), FakeApi()
    generation, applied = [1], []

    def fault(request):
        kind, name = request.path.split("/")[-2:]
        if request.method == "PATCH":
            applied.append(kind)
            return Answer(200, {"metadata": {"name": name, "generation": generation[0]}})
        if name == UPSTREAM_NAME:
            return Answer(404, status(404, "NotFound"))
        return Answer(200, {"metadata": {"name": name, "generation": generation[0]}})

    api.fault = fault

    async def main():
        registration = Registration(Client(clock, AsgiTransport(api), seed=1), settings)
        for bundle, edits, want in ((b"a", 0, 2), (b"a", 0, 2), (b"b", 0, 4), (b"b", 1, 6), (b"b", 0, 6)):
            generation[0] += edits
            await registration.ensure(bundle)
            assert len(applied) == want

    clock.run(main())


@pytest.mark.parametrize(("fails", "policy"), [(False, "Ignore"), (True, "Fail")])
def test_each_webhook_is_called_at_the_service_with_the_timeout_and_policy_of_the_settings(fails, policy):
    settings = Settings.of(
        namespace="own",
        webhook_service="hook",
        webhook_timeout_seconds=3,
        webhook_failure_policy_fail=fails,
    )
    webhooks = [hook for _, found in configurations(settings, b"bundle") for hook in found["webhooks"]]
    assert webhooks
    for hook in webhooks:
        path = hook["clientConfig"]["service"].pop("path")
        assert path.startswith("/")
        service = {"namespace": "own", "name": "hook", "port": 443}
        assert hook["clientConfig"] == {"caBundle": BUNDLE, "service": service}
        assert hook["timeoutSeconds"] == 3
    policies = {hook["failurePolicy"] for hook in webhooks}
    assert policy in policies


def test_outside_of_the_cluster_webhooks_are_called_by_url():
    settings = Settings.of(webhook_url="https://10.0.0.1:8000/")
    for _, found in configurations(settings, b"bundle"):
        for hook in found["webhooks"]:
            client = hook["clientConfig"]
            assert client["url"].startswith("https://10.0.0.1:8000/")
            assert "//" not in client["url"].removeprefix("https://")
            assert "service" not in client


def test_the_names_of_configurations():
    assert configuration_name("ns") == "ns-vpa"
    assert configuration_name("ns", "upstream") == UPSTREAM_NAME


@pytest.mark.parametrize(
    ("text", "want"),
    [("", {}), ("a:b", {"a": "b"}), ('"a:b,c: d"', {"a": "b", "c": "d"}), ("a:", {"a": ""})],
)
def test_labels_are_pairs(text, want):
    assert parse_labels(text) == want


@pytest.mark.parametrize("text", ["a", ":b", "a:b,", "a:b,c", "c,a:b"])
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(ValueError, match="--webhook-labels"):
        parse_labels(text)


@pytest.mark.parametrize(
    ("option", "flag"),
    [
        ({"webhook_naming": "mine"}, "--webhook-naming=mine is not known; use .* or upstream"),
        (
            {"webhook_registration": "half"},
            "--webhook-registration=half is not known; use whole or ca-bundle",
        ),
        ({"webhook_labels": "a"}, "--webhook-labels=a"),
    ],
    ids=["naming", "registration", "labels"],
)
def test_a_setting_that_cannot_be_registered_is_refused_at_the_start(option, flag):
    """Later it would be a warning on each refresh, of a webhook that is never called."""
    client: Any = None
    with pytest.raises(ValueError, match=flag):
        Registration(client, Settings.of(namespace="trimtab", **option))
