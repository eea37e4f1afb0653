"""Webhook configurations: what is applied, and what is removed from those of the other naming."""

import json
from typing import Any

import pytest

from tests.unit.cluster.fake_api import Answer, FakeApi, status
from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.transport.asgi import AsgiTransport
from trimtab.model.vpa.webhooks import UPSTREAM_NAME
from trimtab.operator.settings.settings import Settings
from trimtab.operator.vertical.admission.registration import (
    Registration,
    configuration_name,
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
