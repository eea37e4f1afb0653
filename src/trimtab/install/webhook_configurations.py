"""The webhook configurations, without the CA bundles that admission writes.

Objects of the installation are removed with it, and admission needs no right to write rules or addresses.
"""

from trimtab.install import names
from trimtab.install.names import REGISTERS_ITSELF, UPSTREAM_NAMING, cluster_object, where_enabled
from trimtab.install.template import NAMESPACE, Both, Condition, Each, Either, If, Item, Not, Tree, Val
from trimtab.model.vpa.webhooks import (
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    Webhook,
    WebhookNamespaces,
    declare,
    in_namespaces,
)

_WATCHES_SOME = Val("watchNamespaces")
_IGNORES_SOME = Val("vertical.ignoredNamespaces")
_ADMITS_KUBE_SYSTEM = Either(Val("vertical.includeKubeSystem"), Val("compat"))


def webhook_configurations() -> list[Tree]:
    """Return both configurations, under the name that admission looks for."""
    namings: tuple[tuple[str, Condition], ...] = (
        ("trimtab", Not(UPSTREAM_NAMING)),
        ("upstream", UPSTREAM_NAMING),
    )
    trees: list[Tree] = []
    for naming, condition in namings:
        for kind, webhooks in (
            ("MutatingWebhookConfiguration", MUTATING_WEBHOOKS[naming]),
            ("ValidatingWebhookConfiguration", VALIDATING_WEBHOOKS),
        ):
            configuration = cluster_object(
                "admissionregistration.k8s.io/v1",
                kind,
                names.WEBHOOK_CONFIGURATIONS[naming],
                webhooks=[_declared(webhook) for webhook in webhooks],
            )
            trees.append(If(condition, configuration))
    # In a dry run the API server calls no webhook.
    installed = Both(Not(REGISTERS_ITSELF), Not(Val("dryRun")))
    return where_enabled(names.ADMISSION, *(If(installed, tree) for tree in trees))


def _declared(webhook: Webhook) -> Tree:
    service = {"namespace": NAMESPACE, "name": names.WEBHOOK_SERVICE, "port": 443, "path": webhook.path}
    return declare(
        webhook,
        client={"service": service},
        failure_policy=Val("vertical.admission.failurePolicy"),
        timeout_seconds=Val("vertical.admission.timeoutSeconds"),
        namespaces=_selector(webhook.place),
    )


def _selector(place: WebhookNamespaces) -> Tree:
    if place is WebhookNamespaces.OWN:
        return {"matchExpressions": [in_namespaces("In", [NAMESPACE])]}
    ignored = Each("vertical.ignoredNamespaces", Item())
    watched = If(_WATCHES_SOME, in_namespaces("In", [Each("watchNamespaces", Item())]))
    if place is WebhookNamespaces.CHANGED:
        left_out = [NAMESPACE, If(Not(_ADMITS_KUBE_SYSTEM), "kube-system"), ignored]
        return {"matchExpressions": [watched, in_namespaces("NotIn", left_out)]}
    terms = [watched, If(_IGNORES_SOME, in_namespaces("NotIn", [ignored]))]
    return If(Either(_WATCHES_SOME, _IGNORES_SOME), {"matchExpressions": terms})
