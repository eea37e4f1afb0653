"""ServiceAccounts, roles and bindings, from the rules of `rbac_rules`."""

from collections.abc import Iterator
from functools import reduce
from typing import Final

from trimtab.install.names import (
    ENABLED,
    STATUS_LEASE_NAMESPACE,
    VALUES,
    cluster_object,
    namespaced_object,
    scoped_name,
    where_enabled,
)
from trimtab.install.names import account as account_name
from trimtab.install.rbac_rules import RIGHTS, SETTINGS_READ, USER_READ, USER_WRITE, Rights
from trimtab.install.template import (
    NAMESPACE,
    Each,
    Either,
    If,
    Item,
    Not,
    Tree,
    Val,
)

_RBAC: Final = "rbac.authorization.k8s.io"
_ALL_NAMESPACES: Final = Not(Val("watchNamespaces"))
_FEW: Final = 2
"""Roles with more rules have one that always applies."""


def accounts() -> list[Tree]:
    """Return one ServiceAccount per program. Pods that need a token mount it themselves."""
    return [_account(component) for component in ENABLED]


def _account(component: str) -> Tree:
    account = namespaced_object(
        "v1", "ServiceAccount", account_name(component), component, automountServiceAccountToken=False
    )
    annotations = f"{VALUES[component]}.serviceAccount.annotations"
    account["metadata"]["annotations"] = If(Val(annotations), Val(annotations))
    return account


def roles() -> list[Tree]:
    """Return the roles and bindings of every program, and those of users."""
    trees: list[Tree] = []
    for component, rights in RIGHTS.items():
        trees += where_enabled(component, *_program_roles(component, rights))
    return trees + _user_roles()


def _program_roles(component: str, rights: Rights) -> Iterator[Tree]:
    name = scoped_name(component)
    yield _cluster_role(name, rights.namespaces)
    yield If(_ALL_NAMESPACES, _cluster_binding(name, component))
    # The name differs from the ClusterRole's: in our own namespace a RoleBinding of that name exists already.
    bound = scoped_name(f"{component}-in-namespace")
    yield Each("watchNamespaces", _binding(bound, "ClusterRole", name, component, Item()))
    if rights.cluster:
        cluster_name = scoped_name(f"{component}-cluster")
        role = _cluster_role(cluster_name, rights.cluster)
        yield from _unless_empty(rights.cluster, role, _cluster_binding(cluster_name, component))
    places: tuple[tuple[Tree, Tree, tuple[Tree, ...]], ...] = (
        (f"trimtab-{component}", NAMESPACE, rights.home),
        (name, "kube-system", rights.system),
        (scoped_name(f"{component}-status"), STATUS_LEASE_NAMESPACE, rights.status),
    )
    for role_name, where, rules in places:
        if rules:
            role = namespaced_object(
                f"{_RBAC}/v1", "Role", role_name, component, namespace=where, rules=list(rules)
            )
            binding = _binding(role_name, "Role", role_name, component, where)
            yield from _unless_empty(rules, role, binding)


def _unless_empty(rules: tuple[Tree, ...], *trees: Tree) -> Iterator[Tree]:
    """Yield a role and its binding. If its one or two rules are conditional, both are, so that no role is empty."""
    conditions = [rule.condition for rule in rules if isinstance(rule, If)]
    condition = reduce(Either, conditions) if len(conditions) == len(rules) <= _FEW else None
    for tree in trees:
        yield tree if condition is None else If(condition, tree)


def _cluster_role(name: Tree, rules: tuple[Tree, ...]) -> Tree:
    return cluster_object(f"{_RBAC}/v1", "ClusterRole", name, rules=list(rules))


def _cluster_binding(name: Tree, component: str) -> Tree:
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
    return cluster_object(
        f"{_RBAC}/v1", "ClusterRoleBinding", name, roleRef=reference, subjects=[_subject(component)]
    )


def _binding(name: Tree, kind: str, role: Tree, component: str, namespace: Tree) -> Tree:
    return namespaced_object(
        f"{_RBAC}/v1",
        "RoleBinding",
        name,
        component,
        namespace=namespace,
        roleRef={"apiGroup": _RBAC, "kind": kind, "name": role},
        subjects=[_subject(component)],
    )


def _subject(component: str) -> Tree:
    return {"kind": "ServiceAccount", "name": account_name(component), "namespace": NAMESPACE}


def _user_roles() -> list[Tree]:
    roles = []
    for name, rules, joins in (
        (scoped_name("view"), USER_READ, ("view", "edit", "admin")),
        (scoped_name("edit"), USER_WRITE, ("edit", "admin")),
    ):
        role = _cluster_role(name, rules)
        role["metadata"]["labels"] |= {f"{_RBAC}/aggregate-to-{join}": "true" for join in joins}
        roles.append(role)
    return [*roles, *_settings_view()]


def _settings_view() -> list[Tree]:
    """Let every authenticated user read the operator's published settings, which `explain` uses."""
    name = "trimtab-settings-view"
    authenticated = {"kind": "Group", "name": "system:authenticated", "apiGroup": _RBAC}
    return [
        namespaced_object(f"{_RBAC}/v1", "Role", name, rules=list(SETTINGS_READ)),
        namespaced_object(
            f"{_RBAC}/v1",
            "RoleBinding",
            name,
            roleRef={"apiGroup": _RBAC, "kind": "Role", "name": name},
            subjects=[authenticated],
        ),
    ]
