"""What each program may do: exactly what it does, and nothing else (S2, S4).

Rights over the user's namespaces, over things of the whole cluster, and over our own namespace are kept apart, so that
`watchNamespaces` narrows the first by binding them there only.
"""

from dataclasses import dataclass
from typing import Any, Final

from trimtab.cluster.leases.shards import MOST_SHARDS
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
_FOLLOW = ("list", "watch")


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
    """The rights of one program, by where they hold."""

    namespaces: tuple[Tree, ...] = ()
    """In the user's namespaces."""
    cluster: tuple[Tree, ...] = ()
    """Over objects that have no namespace, and over requests that are about none."""
    home: tuple[Tree, ...] = ()
    """In our own namespace."""
    system: tuple[Tree, ...] = ()
    """In kube-system."""
    status: tuple[Tree, ...] = ()
    """In the namespace of admission's status Lease."""


_TELL = _rule("events.k8s.io", ("events",), "create", "patch")
_USAGE = _rule("metrics.k8s.io", ("pods",), "list")
_WORKLOADS = (
    _rule("apps", (*_APPS, "daemonsets"), *_FOLLOW),
    _rule("batch", ("jobs", "cronjobs"), *_FOLLOW),
)
_OWNERS = Each("scalable", {"apiGroups": [Item("group")], "resources": [Item("resource")], "verbs": ["get"]})


def _scales(*verbs: str) -> Each:
    scale = Text(Item("resource"), "/scale")
    return Each("scalable", {"apiGroups": [Item("group")], "resources": [scale], "verbs": list(verbs)})


_LEASES = "coordination.k8s.io"


# RBAC cannot narrow creation to a name: the name is not yet known when it is asked.
_CREATE_LEASES = _rule(_LEASES, ("leases",), "create")
_LIVE, _DRY = Not(Val("dryRun")), Val("dryRun")


def _over(*names: Tree) -> Rule:
    return _rule(_LEASES, ("leases",), "get", "update", named=names)


def _publish(*name: str | Val) -> Rule:
    """Return the right to publish settings where `extraArgs` turns the election off (decision 0173)."""
    return _rule(_LEASES, ("leases",), "patch", named=(Text(*name, "-settings"),))


def _lease(*name: str | Val) -> tuple[Tree, ...]:
    """Return rights over the Lease of a program, or over that of its dry run."""
    dry = (*name, "-dry-run")
    return (
        If(_LIVE, _over(Text(*name))),
        If(_LIVE, _publish(*name)),
        If(_DRY, _over(Text(*dry))),
        If(_DRY, _publish(*dry)),
    )


def _leases(value: str, condition: Condition | None, *name: str | Val) -> tuple[Tree, ...]:
    """Rights of a program that may share its work out: over one Lease, or over those of its shards instead."""
    shared = Val(value)
    found: list[Tree] = []
    for is_so, ending in ((_LIVE, ""), (_DRY, "-dry-run")):
        met = is_so if condition is None else Both(condition, is_so)
        kinds = [f"{ending}-{kind}-{number}" for kind in ("shard", "member") for number in range(MOST_SHARDS)]
        found += [
            If(Both(met, Not(shared)), _over(Text(*name, ending) if ending else Text(*name))),
            If(Both(met, Not(shared)), _publish(*name, *([ending] if ending else []))),
            If(Both(met, shared), _over(*(Text(*name, kind) for kind in kinds))),
        ]
    return tuple(found)


def _sharing(value: str) -> tuple[Tree, ...]:
    return _CREATE_LEASES, If(Val(value), _rule(_LEASES, ("leases",), "list"))


_RECOMMENDER_NAME = Val("vertical.recommender.name")
_OWN_HPAS = (OWN_GROUP, ("horizontalpodautoscalers",))
_NATIVE_HPAS = ("autoscaling", ("horizontalpodautoscalers",))
_READ_AGAIN = (
    _rule(*_OWN_HPAS, "get"),
    If(Val("horizontal.nativeHpas"), _rule(*_NATIVE_HPAS, "get")),
)
"""After a write that met a conflict."""

_TEMPLATES = (
    _rule("", ("pods", "replicationcontrollers"), "get"),
    _rule("apps", ("replicasets", "statefulsets", "daemonsets"), "get"),
    _rule("batch", ("jobs",), "get"),
)
"""For the replacement of a pod, which is made from its controller's template."""
_HORIZONTAL_VIEW = (
    _rule("", ("pods",), *_FOLLOW),
    # An owner that the watch does not show is read: it may be newer than the watch, or gone.
    _rule("", ("replicationcontrollers",), "get", *_FOLLOW),
    _rule("apps", (*_APPS, "daemonsets"), "get", *_FOLLOW),
    _rule("batch", ("jobs",), "get", *_FOLLOW),
    _rule("batch", ("cronjobs",), "get"),
    _OWNERS,
    _rule(*_OWN_HPAS, *_FOLLOW),
    _USAGE,
    # A metric's name is a resource to RBAC, and nobody knows all names when installing; see decision 0141.
    _rule("custom.metrics.k8s.io", Val("horizontal.customMetrics"), "get"),
    _rule("external.metrics.k8s.io", Val("horizontal.externalMetrics"), "list"),
)
_NATIVE_VIEW = If(Val("horizontal.nativeHpas"), _rule(*_NATIVE_HPAS, *_FOLLOW))
_VPA_VIEW = (
    _rule("", ("pods", "replicationcontrollers"), *_FOLLOW),
    *_WORKLOADS,
    _rule(VPA_GROUP, ("verticalpodautoscalers", "vpascopes"), *_FOLLOW),
    _OWNERS,
    _scales("get"),
)
_VERTICAL_VIEW = (_rule("", ("limitranges",), *_FOLLOW), *_VPA_VIEW)
"""For those who say which size a pod gets: LimitRanges bound it."""
_NODES = _rule("", ("nodes",), *_FOLLOW)
_REVIEWS = (
    _rule("authentication.k8s.io", ("tokenreviews",), "create"),
    _rule("authorization.k8s.io", ("subjectaccessreviews",), "create"),
)

SETTINGS_READ: Final = (_rule(_LEASES, ("leases",), "list"),)
"""To see by which settings the operator decides: everybody who may log in may, in our own namespace (decision 0173)."""

RIGHTS: Final[dict[str, Rights]] = {
    names.HORIZONTAL: Rights(
        namespaces=(
            *_HORIZONTAL_VIEW,
            _scales("get", "patch"),
            _rule("", ("replicationcontrollers/scale",), "get", "patch"),
            _rule("apps", tuple(f"{kind}/scale" for kind in _APPS), "get", "patch"),
            _rule(OWN_GROUP, ("horizontalpodautoscalers/status",), "patch"),
            _NATIVE_VIEW,
            *_READ_AGAIN,
            If(
                Val("horizontal.nativeHpas"),
                _rule("autoscaling", ("horizontalpodautoscalers/status",), "patch"),
            ),
            _TELL,
        ),
        home=(
            *_sharing("horizontal.shards"),
            *_leases("horizontal.shards", None, "trimtab-horizontal"),
        ),
    ),
    names.RECOMMENDER: Rights(
        namespaces=(
            *_VPA_VIEW,
            _rule("", ("events",), *_FOLLOW),
            # A VPA is read again before its checkpoint is deleted.
            _rule(VPA_GROUP, ("verticalpodautoscalers",), "get"),
            _rule(VPA_GROUP, ("verticalpodautoscalers/status",), "patch"),
            _rule(
                VPA_GROUP, ("verticalpodautoscalercheckpoints",), "get", "list", "create", "patch", "delete"
            ),
            _USAGE,
            _TELL,
        ),
        cluster=(_NODES,),
        home=(
            *_sharing("vertical.recommender.shards"),
            *_leases("vertical.recommender.shards", Not(_RECOMMENDER_NAME), "trimtab-recommender"),
            *_leases(
                "vertical.recommender.shards", _RECOMMENDER_NAME, "trimtab-recommender-", _RECOMMENDER_NAME
            ),
        ),
    ),
    names.UPDATER: Rights(
        namespaces=(
            *_VERTICAL_VIEW,
            _rule("", ("pods/eviction",), "create"),
            _rule("", ("pods/resize",), "patch"),
            # For role labels and the note of a resize; the ValidatingAdmissionPolicy refuses anything else.
            _rule("", ("pods",), "patch"),
            *_TEMPLATES,
            # The replacement is created in a dry run. The same policy refuses to create a pod in earnest.
            If(names.PROVES_REPLACEMENTS, _rule("", ("pods",), "create")),
            _rule("coordination.k8s.io", ("leases",), *_FOLLOW),
            _TELL,
        ),
        cluster=(_NODES,),
        # The probe of admission: a pod with dryRun, which is stored nowhere.
        home=(_CREATE_LEASES, *_lease("trimtab-updater"), _rule("", ("pods",), "create")),
        # For admissionCheck lease.
        status=(_rule("coordination.k8s.io", ("leases",), "get", named=names.STATUS_LEASE),),
    ),
    names.ADMISSION: Rights(
        namespaces=(*_VERTICAL_VIEW, _rule(VPA_GROUP, ("vpascopes",), "get")),
        cluster=(
            _NODES,
            *(
                _rule(
                    "admissionregistration.k8s.io",
                    (kind,),
                    "get",
                    "create",
                    "patch",
                    named=names.WEBHOOK_CONFIGURATIONS,
                )
                for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
            ),
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
        namespaces=(_rule("", ("pods",), *_FOLLOW),),
        cluster=_REVIEWS,
        system=(_rule("", ("configmaps",), *_FOLLOW, named="extension-apiserver-authentication"),),
    ),
    names.DASHBOARD: Rights(
        # It decides for itself what it shows, so it reads what the others read, and writes nothing.
        namespaces=(
            *_HORIZONTAL_VIEW,
            *_VERTICAL_VIEW,
            _rule("", ("replicationcontrollers/scale",), "get"),
            _rule("apps", tuple(f"{kind}/scale" for kind in _APPS), "get"),
            _scales("get"),
            _rule(VPA_GROUP, ("verticalpodautoscalercheckpoints",), "list"),
            _rule("", ("events",), "list"),
            _NATIVE_VIEW,
            # It foresees whether some node has room for a replacement.
            *_TEMPLATES,
        ),
        cluster=(_NODES, *_REVIEWS),
        # The operator's settings are annotations of its Leases.
        home=SETTINGS_READ,
    ),
}
"""Every right of every program; the golden files of the tests show them as the API server lists them."""

PEOPLE_READ: Final = (
    _rule(OWN_GROUP, ("horizontalpodautoscalers",), "get", *_FOLLOW),
    _rule(
        VPA_GROUP,
        ("verticalpodautoscalers", "verticalpodautoscalercheckpoints", "vpascopes"),
        "get",
        *_FOLLOW,
    ),
)
PEOPLE_WRITE: Final = tuple(
    _rule(group, kinds, "create", "delete", "deletecollection", "patch", "update")
    for group, kinds in (
        (OWN_GROUP, ("horizontalpodautoscalers",)),
        (VPA_GROUP, ("verticalpodautoscalers", "vpascopes")),
    )
)
"""What holders of the cluster's own roles view, edit and admin may do with autoscalers."""
