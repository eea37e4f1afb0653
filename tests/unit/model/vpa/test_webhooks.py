"""Webhook configurations: which requests reach which path, and when a pod need not wait."""

import pytest

from trimtab.model.vpa import webhooks
from trimtab.model.vpa.webhooks import (
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    WebhookNamespaces,
    declare,
    in_namespaces,
)

OURS = MUTATING_WEBHOOKS["trimtab"]
UPSTREAM = MUTATING_WEBHOOKS["upstream"]
CLIENT = {"url": "https://webhook"}
NAMESPACES = {"matchExpressions": [in_namespaces("In", ["shop"])]}


def declared(webhook, policy="Fail"):
    return declare(webhook, client=CLIENT, failure_policy=policy, timeout_seconds=5, namespaces=NAMESPACES)


def reached(webhook):
    """Return (group, resource, operations) of each rule."""
    return [(rule["apiGroups"], rule["resources"], rule["operations"]) for rule in declared(webhook)["rules"]]


PODS = ([""], ["pods"], ["CREATE"])
VPAS = (["autoscaling.trimtab.dev"], ["verticalpodautoscalers"], ["CREATE", "UPDATE"])
SCOPES = (["autoscaling.trimtab.dev"], ["vpascopes"], ["CREATE", "UPDATE"])


@pytest.mark.parametrize(
    ("listed", "want"),
    [
        pytest.param(
            OURS,
            [
                ("pods.vpa.trimtab.dev", "/mutate-pods", [PODS], WebhookNamespaces.CHANGED, "IfNeeded"),
                ("default-vpas.vpa.trimtab.dev", "/default-vpas", [VPAS], WebhookNamespaces.WATCHED, "Never"),
                ("probe.vpa.trimtab.dev", "/probe", [PODS], WebhookNamespaces.OWN, "Never"),
            ],
            id="ours",
        ),
        pytest.param(
            UPSTREAM,
            [
                ("vpa.k8s.io", "/pods-and-vpas", [PODS, VPAS], WebhookNamespaces.CHANGED, "IfNeeded"),
                ("probe.vpa.trimtab.dev", "/probe", [PODS], WebhookNamespaces.OWN, "Never"),
            ],
            id="with upstream's names",
        ),
        pytest.param(
            VALIDATING_WEBHOOKS,
            [
                ("validate-vpas.vpa.trimtab.dev", "/validate-vpas", [VPAS], WebhookNamespaces.WATCHED, None),
                (
                    "validate-scopes.vpa.trimtab.dev",
                    "/validate-scopes",
                    [SCOPES],
                    WebhookNamespaces.WATCHED,
                    None,
                ),
            ],
            id="validating",
        ),
    ],
)
def test_each_webhook_is_called_for_its_resources(listed, want):
    got = [
        (
            webhook.name,
            webhook.path,
            reached(webhook),
            webhook.place,
            declared(webhook).get("reinvocationPolicy"),
        )
        for webhook in listed
    ]
    assert got == want


@pytest.mark.parametrize(
    "webhook", [*OURS, *UPSTREAM, *VALIDATING_WEBHOOKS], ids=lambda webhook: webhook.name
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_declaration_has_what_its_caller_asks_for(webhook, policy):
    made = declared(webhook, policy)
    is_probe = webhook.path == webhooks.PROBE
    assert (made["clientConfig"], made["timeoutSeconds"], made["namespaceSelector"]) == (
        CLIENT,
        5,
        NAMESPACES,
    )
    assert made["failurePolicy"] == ("Ignore" if is_probe else policy)
    assert (made["sideEffects"], made["matchPolicy"], made["admissionReviewVersions"]) == (
        "None",
        "Equivalent",
        ["v1"],
    )
    assert {(rule["scope"], *rule["apiVersions"]) for rule in made["rules"]} == {("Namespaced", "v1")}
    probed = {"matchExpressions": [{"key": "trimtab.dev/admission-probe", "operator": "Exists"}]}
    assert made.get("objectSelector") == (probed if is_probe else None)


def test_only_pods_with_a_controller_wait():
    """VPAs reach the webhook always, and the probe has no controller."""
    conditions = {
        webhook.path: [condition["expression"] for condition in declared(webhook).get("matchConditions", [])]
        for webhook in (*OURS, *UPSTREAM, *VALIDATING_WEBHOOKS)
    }
    assert {path for path, found in conditions.items() if found} == {"/mutate-pods", "/pods-and-vpas"}
    (ours,), (upstreams,) = conditions["/mutate-pods"], conditions["/pods-and-vpas"]
    assert ours.startswith("has(object.metadata.ownerReferences) && ")
    assert upstreams == f"request.kind.kind != 'Pod' || ({ours})"


def test_declarations_do_not_share_their_parts():
    first, second = declared(OURS[0]), declared(OURS[0])
    first["rules"][0]["operations"] = []
    first["matchConditions"][0]["expression"] = "false"
    assert second == declared(OURS[0]) != first


@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_a_term_selects_namespaces_by_name(operator):
    assert in_namespaces(operator, ["a"]) == {
        "key": "kubernetes.io/metadata.name",
        "operator": operator,
        "values": ["a"],
    }
