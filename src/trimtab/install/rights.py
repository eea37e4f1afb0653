"""What each program may do: exactly what it does, and nothing else (S2, S4).

Rights over the user's namespaces, over things of the whole cluster, and over our own namespace are kept apart, so that
`watchNamespaces` narrows the first by binding them there only.
"""

from dataclasses import dataclass
from typing import Any, Final

from trimtab.cluster.sharding import MOST_SHARDS
from trimtab.install import names
from trimtab.install.tree import Each, If, Item, Text, Tree, Val

Rule = dict[str, Any]

OWN_GROUP: Final = "autoscaling.trimtab.dev"
VPA_GROUP: Final = "autoscaling.k8s.io"
_APPS = ("deployments", "replicasets", "statefulsets")
_FOLLOW = ("list", "watch")


def _rule(group: str, resources: Tree, *verbs: str, named: str | tuple[str, ...] = ()) -> Rule:
    rule: Rule = {
        "apiGroups": [group],
        "resources": list(resources) if isinstance(resources, tuple) else resources,
        "verbs": list(verbs),
    }
    if not named:
        return rule
    return {**rule, "resourceNames": [named] if isinstance(named, str) else list(named)}


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


def _lease(name: str) -> tuple[Rule, ...]:
    # RBAC cannot narrow creation to a name: the name is not yet known when it is asked.
    group = "coordination.k8s.io"
    return _rule(group, ("leases",), "create"), _rule(group, ("leases",), "get", "update", named=name)


def _shards(name: str, value: str) -> tuple[Tree, ...]:
    """Rights of a program that shares its work out: to see all Leases here, and to write those of its shards."""
    group = "coordination.k8s.io"
    leases = tuple(f"{name}-{kind}-{number}" for kind in ("shard", "member") for number in range(MOST_SHARDS))
    shared = Val(value)
    return (
        If(shared, _rule(group, ("leases",), "list")),
        If(shared, _rule(group, ("leases",), "get", "update", named=leases)),
    )


_HORIZONTAL_VIEW = (
    _rule("", ("pods", "replicationcontrollers"), *_FOLLOW),
    _rule("apps", (*_APPS, "daemonsets"), *_FOLLOW),
    _rule("batch", ("jobs",), *_FOLLOW),
    _rule("batch", ("cronjobs",), "get"),
    _OWNERS,
    _rule(OWN_GROUP, ("horizontalpodautoscalers",), "get", *_FOLLOW),
    _USAGE,
    # A metric's name is a resource to RBAC, and nobody knows all names when installing; see decision 0141.
    _rule("custom.metrics.k8s.io", Val("horizontal.customMetrics"), "get"),
    _rule("external.metrics.k8s.io", Val("horizontal.externalMetrics"), "list"),
)
_NATIVE_VIEW = If(
    Val("horizontal.nativeHpas"), _rule("autoscaling", ("horizontalpodautoscalers",), "get", *_FOLLOW)
)
_VERTICAL_VIEW = (
    _rule("", ("pods", "limitranges", "replicationcontrollers"), *_FOLLOW),
    *_WORKLOADS,
    _rule(VPA_GROUP, ("verticalpodautoscalers", "vpascopes"), *_FOLLOW),
    _OWNERS,
    _scales("get"),
)
_NODES = _rule("", ("nodes",), *_FOLLOW)
_REVIEWS = (
    _rule("authentication.k8s.io", ("tokenreviews",), "create"),
    _rule("authorization.k8s.io", ("subjectaccessreviews",), "create"),
)

RIGHTS: Final[dict[str, Rights]] = {
    names.HORIZONTAL: Rights(
        namespaces=(
            *_HORIZONTAL_VIEW,
            _scales("get", "patch"),
            _rule("", ("replicationcontrollers/scale",), "get", "patch"),
            _rule("apps", tuple(f"{kind}/scale" for kind in _APPS), "get", "patch"),
            _rule(OWN_GROUP, ("horizontalpodautoscalers/status",), "patch"),
            _NATIVE_VIEW,
            If(
                Val("horizontal.nativeHpas"),
                _rule("autoscaling", ("horizontalpodautoscalers/status",), "patch"),
            ),
            _TELL,
        ),
        home=(*_lease("trimtab-horizontal"), *_shards("trimtab-horizontal", "horizontal.shards")),
    ),
    names.RECOMMENDER: Rights(
        namespaces=(
            *_VERTICAL_VIEW,
            _rule("", ("events",), *_FOLLOW),
            _rule(VPA_GROUP, ("verticalpodautoscalers/status",), "patch"),
            _rule(
                VPA_GROUP, ("verticalpodautoscalercheckpoints",), "get", "list", "create", "patch", "delete"
            ),
            _USAGE,
            _TELL,
        ),
        cluster=(_NODES,),
        home=(
            *_lease("trimtab-recommender"),
            *_shards("trimtab-recommender", "vertical.recommender.shards"),
        ),
    ),
    names.UPDATER: Rights(
        namespaces=(
            *_VERTICAL_VIEW,
            _rule("", ("pods/eviction",), "create"),
            _rule("", ("pods/resize",), "patch"),
            # For role labels and the note of a resize; the ValidatingAdmissionPolicy refuses anything else.
            _rule("", ("pods",), "patch"),
            _rule("coordination.k8s.io", ("leases",), *_FOLLOW),
            _TELL,
        ),
        cluster=(_NODES,),
        # The probe of admission: a pod with dryRun, which is stored nowhere.
        home=(*_lease("trimtab-updater"), _rule("", ("pods",), "create")),
    ),
    names.ADMISSION: Rights(
        namespaces=(*_VERTICAL_VIEW, _rule(VPA_GROUP, ("vpascopes",), "get")),
        cluster=(
            _NODES,
            *(
                _rule("admissionregistration.k8s.io", (kind,), "get", "create", "patch", named="trimtab-vpa")
                for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
            ),
        ),
        home=(
            If(names.OWN_CERTIFICATE, _rule("", ("secrets",), "get", "update", named=names.WEBHOOK_SECRET)),
        ),
        system=(
            _rule("coordination.k8s.io", ("leases",), "create"),
            _rule("coordination.k8s.io", ("leases",), "patch", named="vpa-admission-controller"),
        ),
    ),
    names.ADAPTER: Rights(
        namespaces=(_rule("", ("pods",), *_FOLLOW),),
        cluster=_REVIEWS,
        system=(_rule("", ("configmaps",), "get", *_FOLLOW, named="extension-apiserver-authentication"),),
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
        ),
        cluster=(_NODES, *_REVIEWS),
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
