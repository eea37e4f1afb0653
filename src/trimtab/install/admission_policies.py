"""Accounts, roles and bindings; and the policy that keeps the updater's hand off pod specs."""

from collections.abc import Iterator
from typing import Final

from trimtab.install.names import (
    ENABLED,
    STATUS_LEASE_NAMESPACE,
    UPDATER,
    installed,
    ours,
    selector,
    thing,
    where_enabled,
)
from trimtab.install.rbac import PEOPLE_READ, PEOPLE_WRITE, RIGHTS, SETTINGS_READ, Rights
from trimtab.install.template import (
    NAMESPACE,
    Each,
    If,
    Item,
    Not,
    Text,
    Tree,
    Val,
)

_RBAC: Final = "rbac.authorization.k8s.io"
_EVERYWHERE: Final = Not(Val("watchNamespaces"))


def accounts() -> list[Tree]:
    """Return one account per program; tokens are mounted by the pods that need them, not by default."""
    return [
        ours("v1", "ServiceAccount", component, component, automountServiceAccountToken=False)
        for component in ENABLED
    ]


def roles() -> list[Tree]:
    """Return the roles and bindings of every program, and those of people."""
    found: list[Tree] = []
    for component, rights in RIGHTS.items():
        found += where_enabled(component, *_roles_of(component, rights))
    return found + _roles_of_people()


def _roles_of(component: str, rights: Rights) -> Iterator[Tree]:
    name = installed(component)
    yield _cluster_role(name, rights.namespaces)
    yield If(_EVERYWHERE, _cluster_binding(name, component))
    # Not the name of the ClusterRole: one that is bound in our own namespace must not meet our own Role's binding.
    bound = installed(f"{component}-in-namespace")
    yield Each("watchNamespaces", _binding(bound, "ClusterRole", name, component, Item()))
    if rights.cluster:
        whole = installed(f"{component}-cluster")
        yield _cluster_role(whole, rights.cluster)
        yield _cluster_binding(whole, component)
    places: tuple[tuple[Tree, Tree, tuple[Tree, ...]], ...] = (
        (f"trimtab-{component}", NAMESPACE, rights.home),
        (name, "kube-system", rights.system),
        (installed(f"{component}-status"), STATUS_LEASE_NAMESPACE, rights.status),
    )
    for role_name, where, rules in places:
        if rules:
            role = ours(f"{_RBAC}/v1", "Role", role_name, component, namespace=where, rules=list(rules))
            for tree in (role, _binding(role_name, "Role", role_name, component, where)):
                # A role whose only rule is conditional goes with it: an empty role is a question to every reader.
                yield If(rules[0].condition, tree) if len(rules) == 1 and isinstance(rules[0], If) else tree


def _cluster_role(name: Tree, rules: tuple[Tree, ...]) -> Tree:
    return thing(f"{_RBAC}/v1", "ClusterRole", name, rules=list(rules))


def _cluster_binding(name: Tree, component: str) -> Tree:
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
    return thing(f"{_RBAC}/v1", "ClusterRoleBinding", name, roleRef=reference, subjects=[_subject(component)])


def _binding(name: Tree, kind: str, role: Tree, component: str, namespace: Tree) -> Tree:
    return ours(
        f"{_RBAC}/v1",
        "RoleBinding",
        name,
        component,
        namespace=namespace,
        roleRef={"apiGroup": _RBAC, "kind": kind, "name": role},
        subjects=[_subject(component)],
    )


def _subject(component: str) -> Tree:
    return {"kind": "ServiceAccount", "name": component, "namespace": NAMESPACE}


def _roles_of_people() -> list[Tree]:
    found = []
    for name, rules, joins in (
        (installed("view"), PEOPLE_READ, ("view", "edit", "admin")),
        (installed("edit"), PEOPLE_WRITE, ("edit", "admin")),
    ):
        role = _cluster_role(name, rules)
        role["metadata"]["labels"] |= {f"{_RBAC}/aggregate-to-{join}": "true" for join in joins}
        found.append(role)
    return [*found, *_settings_for_everybody()]


def _settings_for_everybody() -> list[Tree]:
    """Return the right to see by which settings the operator decides: a viewer of one namespace explains by them."""
    name = "trimtab-settings-view"
    everybody = {"kind": "Group", "name": "system:authenticated", "apiGroup": _RBAC}
    return [
        ours(f"{_RBAC}/v1", "Role", name, rules=list(SETTINGS_READ)),
        ours(
            f"{_RBAC}/v1",
            "RoleBinding",
            name,
            roleRef={"apiGroup": _RBAC, "kind": "Role", "name": name},
            subjects=[everybody],
        ),
    ]


def policies() -> list[Tree]:
    """Return the policy that lets the updater change labels and annotations of pods, and no more (S4).

    RBAC knows verbs and resources, not fields: `patch pods` alone would allow another image, and `create pods`, which
    dry runs need, any pod at all.
    """
    name = installed("updater-pods")
    registration = "admissionregistration.k8s.io/v1"
    account = Text("request.userInfo.username == 'system:serviceaccount:", NAMESPACE, f":{UPDATER}'")
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["pods"],
        "scope": "Namespaced",
    }
    policy = thing(
        registration,
        "ValidatingAdmissionPolicy",
        name,
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [pods]},
            "matchConditions": [{"name": "by-the-updater", "expression": account}],
            "validations": [
                {
                    "expression": "request.operation != 'UPDATE' || object.spec == oldObject.spec",
                    "message": "Trimtab's updater may change a pod's size, labels and annotations only",
                    "reason": "Forbidden",
                },
                {
                    "expression": "request.operation != 'CREATE' || (has(request.dryRun) && request.dryRun)",
                    "message": "Trimtab's updater may create pods in dry runs only",
                    "reason": "Forbidden",
                },
            ],
        },
    )
    binding = thing(
        registration,
        "ValidatingAdmissionPolicyBinding",
        name,
        spec={"policyName": name, "validationActions": ["Deny"]},
    )
    return where_enabled(UPDATER, policy, binding)


def disruption_budgets() -> list[Tree]:
    """Return budgets that keep one copy of each program through node drains."""
    return [
        tree
        for component in ENABLED
        for tree in where_enabled(
            component,
            ours(
                "policy/v1",
                "PodDisruptionBudget",
                f"trimtab-{component}",
                component,
                spec={
                    "maxUnavailable": 1,
                    "selector": {"matchLabels": selector(component)},
                    "unhealthyPodEvictionPolicy": "AlwaysAllow",
                },
            ),
        )
    ]
