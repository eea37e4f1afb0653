"""The RBAC rules of each program: the requests it sends, and no more.

Rules over the users' namespaces, over cluster-scoped objects and over our own namespace are separate, so that
`watchNamespaces` binds the first in these namespaces only.
"""

from dataclasses import dataclass
from typing import Any, Final

from trimtab.cluster.leases.family import MOST_SHARDS
from trimtab.install import names
from trimtab.install.template import (
    Both,
    Condition,
    Each,
    If,
    Item,
    Not,
    Text,
    Tree,
    Val,
)

Rule = dict[str, Any]

OWN_GROUP: Final = "autoscaling.trimtab.dev"
VPA_GROUP: Final = "autoscaling.k8s.io"
_APPS = ("deployments", "replicasets", "statefulsets")
_LIST_WATCH = ("list", "watch")


def _rule(group: str, resources: Tree, *verbs: str, named: str | Val | tuple[Tree, ...] = ()) -> Rule:
    rule: Rule = {
        "apiGroups": [group],
        "resources": list(resources) if isinstance(resources, tuple) else resources,
        "verbs": list(verbs),
    }
    if not named:
        return rule
    return {**rule, "resourceNames": [named] if isinstance(named, str | Val) else list(named)}


@dataclass(frozen=True, slots=True)
class Rights:
    """The rules of one program, by where they apply."""

    namespaces: tuple[Tree, ...] = ()
    """In the user's namespaces."""
    cluster: tuple[Tree, ...] = ()
    """Over cluster-scoped objects and requests."""
    home: tuple[Tree, ...] = ()
    """In our own namespace."""
    system: tuple[Tree, ...] = ()
    """In kube-system."""
    status: tuple[Tree, ...] = ()
    """In the namespace of admission's status Lease."""


_EMIT_EVENTS = _rule("events.k8s.io", ("events",), "create", "patch")
_USAGE = _rule("metrics.k8s.io", ("pods",), "list")
_WORKLOADS = (
    _rule("apps", (*_APPS, "daemonsets"), *_LIST_WATCH),
    _rule("batch", ("jobs", "cronjobs"), *_LIST_WATCH),
)
_OWNERS = Each("scalable", {"apiGroups": [Item("group")], "resources": [Item("resource")], "verbs": ["get"]})


def _scales(*verbs: str) -> Each:
    scale = Text(Item("resource"), "/scale")
    return Each("scalable", {"apiGroups": [Item("group")], "resources": [scale], "verbs": list(verbs)})


_LEASES = "coordination.k8s.io"


# RBAC cannot restrict creation by name. Who takes a Lease lists them all.
_SHARE_LEASES = _rule(_LEASES, ("leases",), "create", "list")
_ENDINGS: Final = (*map(str, range(MOST_SHARDS)), *(f"member-{number}" for number in range(MOST_SHARDS)))


def _leases(
    *name: str | Val, condition: Condition | None = None, endings: tuple[str, ...] = _ENDINGS
) -> tuple[Tree, ...]:
    """Return the rules over the Leases of a program, or over those of its dry run.

    They do not depend on the number of shards, so that replicas with another number can still renew theirs in a rollout.
    Settings are published where `extraArgs` turns leader election off.
    """
    rules: list[Tree] = []
    for mode, part in ((Not(Val("dryRun")), "-"), (Val("dryRun"), "-dry-run-")):
        met = mode if condition is None else Both(condition, mode)
        named = tuple(Text(*name, part, ending) for ending in endings)
        rules += [
            If(met, _rule(_LEASES, ("leases",), "get", "update", named=named)),
            If(met, _rule(_LEASES, ("leases",), "patch", named=(Text(*name, part, "settings"),))),
        ]
    return tuple(rules)


def _list_namespaces(value: str) -> Tree:
    """Return the rule by which the watches of a shard leave out the namespaces of other shards."""
    return If(Both(Val(value), Not(Val("watchNamespaces"))), _rule("", ("namespaces",), "list"))


_RECOMMENDER_NAME = Val("vertical.recommender.name")
_OWN_HPAS = (OWN_GROUP, ("horizontalpodautoscalers",))
_NATIVE_HPAS = ("autoscaling", ("horizontalpodautoscalers",))
_READ_AFTER_CONFLICT = (
    _rule(*_OWN_HPAS, "get"),
    If(Val("horizontal.nativeHpas"), _rule(*_NATIVE_HPAS, "get")),
)
"""Reads after a conflict."""

_TEMPLATES = (
    _rule("", ("pods", "replicationcontrollers"), "get"),
    _rule("apps", ("replicasets", "statefulsets", "daemonsets"), "get"),
    _rule("batch", ("jobs",), "get"),
)
"""For the replacement of a pod, which is made from its controller's template."""
_HORIZONTAL_VIEW = (
    _rule("", ("pods",), *_LIST_WATCH),
    # An owner that the watch does not show is read: it may be newer than the watch, or gone.
    _rule("", ("replicationcontrollers",), "get", *_LIST_WATCH),
    _rule("apps", (*_APPS, "daemonsets"), "get", *_LIST_WATCH),
    _rule("batch", ("jobs",), "get", *_LIST_WATCH),
    _rule("batch", ("cronjobs",), "get"),
    _OWNERS,
    _rule(*_OWN_HPAS, *_LIST_WATCH),
    _USAGE,
    # RBAC treats a metric's name as a resource, and the names are unknown at installation. See
    # docs/decisions/grant-each-component-the-least-rbac-rights.md.
    _rule("custom.metrics.k8s.io", Val("horizontal.customMetrics"), "get"),
    _rule("external.metrics.k8s.io", Val("horizontal.externalMetrics"), "list"),
)
_NATIVE_VIEW = If(Val("horizontal.nativeHpas"), _rule(*_NATIVE_HPAS, *_LIST_WATCH))
_VPA_VIEW = (
    _rule("", ("pods", "replicationcontrollers"), *_LIST_WATCH),
    *_WORKLOADS,
    _rule(VPA_GROUP, ("verticalpodautoscalers", "vpascopes"), *_LIST_WATCH),
    _OWNERS,
    _scales("get"),
)
_VERTICAL_VIEW = (_rule("", ("limitranges",), *_LIST_WATCH), *_VPA_VIEW)
"""For programs that size pods: LimitRanges bound the size."""
_NODES = _rule("", ("nodes",), *_LIST_WATCH)
_REVIEWS = (
    _rule("authentication.k8s.io", ("tokenreviews",), "create"),
    _rule("authorization.k8s.io", ("subjectaccessreviews",), "create"),
)

_WEBHOOKS = (
    "admissionregistration.k8s.io",
    ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
)
_NAMED = names.WEBHOOK_CONFIGURATIONS
# A ValidatingAdmissionPolicy lets admission change the CA bundle only, or register its own webhooks only.
_REGISTRATION = (
    If(
        Both(Not(names.REGISTERS_ITSELF), Not(names.UPSTREAM_NAMING)),
        _rule(*_WEBHOOKS, "get", "patch", named=(_NAMED["trimtab"],)),
    ),
    If(
        Both(Not(names.REGISTERS_ITSELF), names.UPSTREAM_NAMING),
        _rule(*_WEBHOOKS, "get", "patch", named=(_NAMED["upstream"],)),
    ),
    If(names.REGISTERS_ITSELF, _rule(*_WEBHOOKS, "get", "create", "patch", named=tuple(_NAMED.values()))),
)

SETTINGS_READ: Final = (_rule(_LEASES, ("leases",), "list"),)
"""Read the operator's published settings, in our own namespace."""

RIGHTS: Final[dict[str, Rights]] = {
    names.HORIZONTAL: Rights(
        namespaces=(
            *_HORIZONTAL_VIEW,
            _scales("get", "patch"),
            _rule("", ("replicationcontrollers/scale",), "get", "patch"),
            _rule("apps", tuple(f"{kind}/scale" for kind in _APPS), "get", "patch"),
            # A native HPA may target any kind that has a scale, and nobody had to name the kind so far.
            If(Val("horizontal.nativeHpas"), _rule("*", ("*/scale",), "get", "patch")),
            _rule(OWN_GROUP, ("horizontalpodautoscalers/status",), "patch"),
            _NATIVE_VIEW,
            *_READ_AFTER_CONFLICT,
            If(
                Val("horizontal.nativeHpas"),
                _rule("autoscaling", ("horizontalpodautoscalers/status",), "patch"),
            ),
            _EMIT_EVENTS,
        ),
        cluster=(
            If(Val("horizontal.watchNodes"), _NODES),
            _list_namespaces("horizontal.shards"),
        ),
        home=(
            _SHARE_LEASES,
            *_leases("trimtab-horizontal"),
        ),
    ),
    names.RECOMMENDER: Rights(
        namespaces=(
            *_VPA_VIEW,
            _rule("", ("events",), *_LIST_WATCH),
            # A VPA is read again before its checkpoint is deleted.
            _rule(VPA_GROUP, ("verticalpodautoscalers",), "get"),
            _rule(VPA_GROUP, ("verticalpodautoscalers/status",), "patch"),
            _rule(
                VPA_GROUP, ("verticalpodautoscalercheckpoints",), "get", "list", "create", "patch", "delete"
            ),
            _USAGE,
            _EMIT_EVENTS,
        ),
        cluster=(_NODES, _list_namespaces("vertical.recommender.shards")),
        home=(
            _SHARE_LEASES,
            *_leases("trimtab-recommender", condition=Not(_RECOMMENDER_NAME)),
            *_leases("trimtab-recommender-", _RECOMMENDER_NAME, condition=_RECOMMENDER_NAME),
        ),
    ),
    names.UPDATER: Rights(
        namespaces=(
            *_VERTICAL_VIEW,
            _rule("", ("pods/eviction",), "create"),
            _rule("", ("pods/resize",), "patch"),
            # For role labels and the annotation of a resize. The ValidatingAdmissionPolicy rejects other changes.
            _rule("", ("pods",), "patch"),
            *_TEMPLATES,
            # The replacement is created in a dry run. The same policy rejects creations that are not.
            If(names.PROVES_REPLACEMENTS, _rule("", ("pods",), "create")),
            _rule("coordination.k8s.io", ("leases",), *_LIST_WATCH),
            _EMIT_EVENTS,
        ),
        cluster=(_NODES,),
        # The webhook check creates a pod in a dry run.
        home=(_SHARE_LEASES, *_leases("trimtab-updater", endings=("0",)), _rule("", ("pods",), "create")),
        # For admissionCheck lease.
        status=(_rule("coordination.k8s.io", ("leases",), "get", named=names.STATUS_LEASE),),
    ),
    names.ADMISSION: Rights(
        namespaces=(*_VERTICAL_VIEW, _rule(VPA_GROUP, ("vpascopes",), "get")),
        cluster=(
            _NODES,
            *_REGISTRATION,
        ),
        home=(
            If(names.OWN_CERTIFICATE, _rule("", ("secrets",), "get", "update", named=names.WEBHOOK_SECRET)),
        ),
        status=(
            _rule("coordination.k8s.io", ("leases",), "create"),
            _rule("coordination.k8s.io", ("leases",), "patch", named=names.STATUS_LEASE),
        ),
    ),
    names.ADAPTER: Rights(
        namespaces=(_rule("", ("pods",), *_LIST_WATCH),),
        cluster=_REVIEWS,
        system=(_rule("", ("configmaps",), *_LIST_WATCH, named="extension-apiserver-authentication"),),
    ),
    names.DASHBOARD: Rights(
        # The dashboard decides itself what it shows, so it reads what the operator reads. It writes nothing.
        namespaces=(
            *_HORIZONTAL_VIEW,
            *_VERTICAL_VIEW,
            _rule("", ("replicationcontrollers/scale",), "get"),
            _rule("apps", tuple(f"{kind}/scale" for kind in _APPS), "get"),
            _scales("get"),
            _rule(VPA_GROUP, ("verticalpodautoscalercheckpoints",), "list"),
            _rule("", ("events",), "list"),
            _NATIVE_VIEW,
            # To preview whether some node has room for a replacement.
            *_TEMPLATES,
        ),
        cluster=(_NODES, *_REVIEWS),
        # The operator's settings are annotations of its Leases.
        home=SETTINGS_READ,
    ),
}
"""The rules of every program. Golden files of the tests show them as the API server lists them."""

USER_READ: Final = (
    _rule(OWN_GROUP, ("horizontalpodautoscalers",), "get", *_LIST_WATCH),
    _rule(
        VPA_GROUP,
        ("verticalpodautoscalers", "verticalpodautoscalercheckpoints", "vpascopes"),
        "get",
        *_LIST_WATCH,
    ),
)
USER_WRITE: Final = tuple(
    _rule(group, kinds, "create", "delete", "deletecollection", "patch", "update")
    for group, kinds in (
        (OWN_GROUP, ("horizontalpodautoscalers",)),
        (VPA_GROUP, ("verticalpodautoscalers", "vpascopes")),
    )
)
"""What the cluster's roles view, edit and admin may do with autoscalers."""
