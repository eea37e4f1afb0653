"""The admission webhooks: their names, paths and rules, as webhook configurations declare them.

The installation contains the configurations, and the webhook can also register itself; both build them here.
Arguments may be placeholders of a template.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from trimtab.model.groups import NATIVE_VPA_GROUP, OWN_GROUP, VPA_VERSION

MUTATE_PODS, PROBE, DEFAULT_VPAS = "/mutate-pods", "/probe", "/default-vpas"
VALIDATE_VPAS, VALIDATE_SCOPES = "/validate-vpas", "/validate-scopes"
PODS_AND_VPAS: Final = "/pods-and-vpas"
"""The path of upstream's one webhook, which sizes pods and completes and validates VPAs."""
PROBE_LABEL: Final = "trimtab.dev/admission-probe"
UPSTREAM_NAME: Final = "vpa-webhook-config"
UPSTREAM_WEBHOOK: Final = "vpa.k8s.io"
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"

_HAS_CONTROLLER: Final = (
    "has(object.metadata.ownerReferences) && "
    "object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller)"
)


class WebhookNamespaces(Enum):
    """The namespaces that a webhook is called for."""

    CHANGED = "where pods are changed"
    WATCHED = "where VPAs are read"
    OWN = "our own namespace"


@dataclass(frozen=True)
class Webhook:
    """One webhook of a configuration."""

    name: str
    path: str
    rules: tuple[dict[str, Any], ...]
    place: WebhookNamespaces
    match_conditions: tuple[dict[str, str], ...] = ()
    reinvocation: str = ""
    """Empty for validating webhooks, which are called once."""


def _rule(group: str, plural: str, *operations: str) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [VPA_VERSION],
        "resources": [plural],
        "operations": list(operations),
        "scope": "Namespaced",
    }


_PODS: Final = _rule("", "pods", "CREATE")
_VPAS: Final = _rule(OWN_GROUP, "verticalpodautoscalers", "CREATE", "UPDATE")
_SCOPES: Final = _rule(OWN_GROUP, "vpascopes", "CREATE", "UPDATE")
# No VPA matches a pod without a controller, so its creation need not wait for the webhook.
_IS_CONTROLLED: Final = {"name": "has-a-controller", "expression": _HAS_CONTROLLER}
_IS_VPA_OR_CONTROLLED: Final = {
    "name": "is-a-vpa-or-has-a-controller",
    "expression": f"request.kind.kind != 'Pod' || ({_HAS_CONTROLLER})",
}
_PROBE: Final = Webhook("probe.vpa.trimtab.dev", PROBE, (_PODS,), WebhookNamespaces.OWN, reinvocation="Never")

MUTATING_WEBHOOKS: Final = {
    "trimtab": (
        Webhook(
            "pods.vpa.trimtab.dev",
            MUTATE_PODS,
            (_PODS,),
            WebhookNamespaces.CHANGED,
            (_IS_CONTROLLED,),
            "IfNeeded",
        ),
        Webhook(
            "default-vpas.vpa.trimtab.dev",
            DEFAULT_VPAS,
            (_VPAS,),
            WebhookNamespaces.WATCHED,
            reinvocation="Never",
        ),
        _PROBE,
    ),
    "upstream": (
        Webhook(
            UPSTREAM_WEBHOOK,
            PODS_AND_VPAS,
            (_PODS, _VPAS),
            WebhookNamespaces.CHANGED,
            (_IS_VPA_OR_CONTROLLED,),
            "IfNeeded",
        ),
        _PROBE,
    ),
}
"""By --webhook-naming. Upstream's has one webhook for pods and VPAs."""
VALIDATING_WEBHOOKS: Final = (
    Webhook("validate-vpas.vpa.trimtab.dev", VALIDATE_VPAS, (_VPAS,), WebhookNamespaces.WATCHED),
    Webhook("validate-scopes.vpa.trimtab.dev", VALIDATE_SCOPES, (_SCOPES,), WebhookNamespaces.WATCHED),
)
"""Most checks are in the CRDs too, which need no running webhook."""


def declare(
    webhook: Webhook,
    *,
    client: Any,
    failure_policy: Any,
    timeout_seconds: Any,
    namespaces: Any,
    has_native_vpas: bool = False,
) -> dict[str, Any]:
    """Return a webhook as its configuration declares it."""
    native = {"apiGroups": [OWN_GROUP, NATIVE_VPA_GROUP]}
    is_probe = webhook.path == PROBE
    declared: dict[str, Any] = {
        "name": webhook.name,
        "clientConfig": client,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        # Without a running webhook the probe must come back unchanged, whatever the policy of the others.
        "failurePolicy": "Ignore" if is_probe else failure_policy,
        "matchPolicy": "Equivalent",
        "timeoutSeconds": timeout_seconds,
        "rules": [
            rule | native if rule == _VPAS and has_native_vpas else dict(rule) for rule in webhook.rules
        ],
        "namespaceSelector": namespaces,
    }
    if is_probe:
        declared["objectSelector"] = {"matchExpressions": [{"key": PROBE_LABEL, "operator": "Exists"}]}
    if webhook.match_conditions:
        declared["matchConditions"] = [dict(condition) for condition in webhook.match_conditions]
    if webhook.reinvocation:
        declared["reinvocationPolicy"] = webhook.reinvocation
    return declared


def in_namespaces(operator: str, names: Any) -> dict[str, Any]:
    """Return the term of a namespace selector: `In` or `NotIn` some names."""
    return {"key": NAMESPACE_LABEL, "operator": operator, "values": names}
