"""The ValidatingAdmissionPolicies that restrict the accounts, where RBAC cannot.

RBAC restricts verbs and resources. These policies restrict fields, dry runs and names of new objects. Each one applies
to a single account, and rejects what it cannot evaluate.
"""

from typing import Any, Final

from trimtab.install import names
from trimtab.install.names import (
    ADMISSION,
    HORIZONTAL,
    RECOMMENDER,
    UPDATER,
    cluster_object,
    scoped_name,
    where_enabled,
)
from trimtab.install.template import NAMESPACE, If, Not, Text, Tree
from trimtab.model.vpa.admission import GROUP

_API: Final = "admissionregistration.k8s.io"


def policies() -> list[Tree]:
    """Return all policies, each with its binding."""
    return [
        *_policy(
            "updater-pods",
            UPDATER,
            _rule("", ["pods"], scope="Namespaced"),
            [
                _validation(
                    "request.operation != 'UPDATE' || object.spec == oldObject.spec",
                    "Trimtab's updater may change a pod's size, labels and annotations only",
                ),
                _validation(
                    f"request.operation != 'UPDATE' || ({_same('object', 'oldObject', _OWNERSHIP)})",
                    "Trimtab's updater may not change a pod's owners and finalizers",
                ),
                _validation(
                    "request.operation != 'CREATE' || (has(request.dryRun) && request.dryRun)",
                    "Trimtab's updater may create pods in dry runs only",
                ),
            ],
        ),
        *_policy(
            "admission-webhooks",
            ADMISSION,
            _rule(
                _API, ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"], scope="Cluster"
            ),
            [
                If(Not(names.REGISTERS_ITSELF), _ONLY_CA_BUNDLES),
                If(names.REGISTERS_ITSELF, _validation(_only_own_webhooks(), _ONLY_OWN)),
            ],
        ),
        *(tree for account in _LEASE_NAMES for tree in _lease_policy(account)),
    ]


_LEASE_NAMES: Final[dict[str, Tree]] = {
    **{
        account: f"object.metadata.name.startsWith('trimtab-{account}')"
        for account in (HORIZONTAL, RECOMMENDER, UPDATER)
    },
    ADMISSION: Text("object.metadata.name == '", names.STATUS_LEASE, "'"),
}
"""The Leases that each account may create. With others it could take the place of another program's leader."""


def _lease_policy(account: str) -> list[Tree]:
    rule = _rule("coordination.k8s.io", ["leases"], scope="Namespaced", operations=("CREATE",))
    message = f"Trimtab's {account} may create its own Leases only"
    return _policy(f"{account}-leases", account, rule, [_validation(_LEASE_NAMES[account], message)])


def _policy(name: str, account: str, rule: Tree, validations: list[Tree]) -> list[Tree]:
    full_name = scoped_name(name)
    by_account = Text(
        "request.userInfo.username == 'system:serviceaccount:", NAMESPACE, f":{names.account(account)}'"
    )
    policy = cluster_object(
        f"{_API}/v1",
        "ValidatingAdmissionPolicy",
        full_name,
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": f"by-the-{account}", "expression": by_account}],
            "validations": validations,
        },
    )
    binding = cluster_object(
        f"{_API}/v1",
        "ValidatingAdmissionPolicyBinding",
        full_name,
        spec={"policyName": full_name, "validationActions": ["Deny"]},
    )
    return where_enabled(account, policy, binding)


def _rule(
    group: str, resources: list[str], *, scope: str, operations: tuple[str, ...] = ("CREATE", "UPDATE")
) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": resources,
        "scope": scope,
    }


def _validation(expression: Tree, message: str) -> Tree:
    return {"expression": expression, "message": message, "reason": "Forbidden"}


def _same(new: str, old: str, fields: tuple[str, ...]) -> str:
    """Return the expression that optional fields are equal, or missing in both."""
    return " && ".join(f"{new}.{field} == {old}.{field}" for field in fields)


_OWNERSHIP: Final = ("metadata.?ownerReferences", "metadata.?finalizers")
"""With a foreign owner the garbage collector would delete a pod, without asking its disruption budget."""
_METADATA: Final = (*_OWNERSHIP, "metadata.?labels", "metadata.?annotations")
_WEBHOOK_FIELDS: Final = (
    "name",
    "clientConfig.?service",
    "clientConfig.?url",
    *(
        f"?{field}"
        for field in (
            "rules",
            "failurePolicy",
            "matchPolicy",
            "namespaceSelector",
            "objectSelector",
            "sideEffects",
            "timeoutSeconds",
            "admissionReviewVersions",
            "reinvocationPolicy",
            "matchConditions",
        )
    ),
)
"""All fields of a webhook but the CA bundle."""
_ONLY_CA_BUNDLES: Final = _validation(
    "request.operation == 'UPDATE'"
    f" && {_same('object', 'oldObject', _METADATA)}"
    " && object.?webhooks.orValue([]).size() == oldObject.?webhooks.orValue([]).size()"
    " && object.?webhooks.orValue([]).all(webhook, oldObject.webhooks.exists(old, "
    f"{_same('webhook', 'old', _WEBHOOK_FIELDS)}))",
    "Trimtab's admission may change only the CA bundle of its webhook configurations",
)
_ONLY_OWN: Final = "Trimtab's admission may register only its own Service, for pods, VPAs and VPAScopes"


def _only_own_webhooks() -> Text:
    """Return the expression that new or changed webhooks call our Service, for our rules."""
    pods = "rule.apiGroups == [''] && rule.resources == ['pods'] && rule.operations == ['CREATE']"
    vpas = (
        f"rule.apiGroups == ['{GROUP}'] && "
        "rule.resources.all(resource, resource in ['verticalpodautoscalers', 'vpascopes'])"
    )
    return Text(
        # Upstream's configuration may hold webhooks of upstream, which stay as they are.
        "object.?webhooks.orValue([]).all(webhook, "
        "(oldObject != null && oldObject.?webhooks.orValue([]).exists(old, old == webhook)) || ("
        "!has(webhook.clientConfig.url) && has(webhook.clientConfig.service)"
        f" && webhook.clientConfig.service.name == '{names.WEBHOOK_SERVICE}'"
        " && webhook.clientConfig.service.namespace == '",
        NAMESPACE,
        f"' && webhook.rules.all(rule, ({pods}) || ({vpas}))))",
    )
