"""Names, labels and the common fields of all objects."""

from typing import Any, Final

from trimtab.install.template import NAMESPACE, Condition, Entries, If, Mentions, Not, Text, Tree, Val
from trimtab.model.vpa.webhooks import UPSTREAM_NAME

HORIZONTAL: Final = "horizontal"
RECOMMENDER: Final = "recommender"
UPDATER: Final = "updater"
ADMISSION: Final = "admission"
ADAPTER: Final = "adapter"
DASHBOARD: Final = "dashboard"

ENABLED: Final[dict[str, Condition]] = {
    HORIZONTAL: Val("horizontal.enabled"),
    RECOMMENDER: Val("vertical.enabled"),
    UPDATER: Val("vertical.enabled"),
    ADMISSION: Val("vertical.enabled"),
    ADAPTER: Val("adapter.enabled"),
    DASHBOARD: Val("dashboard.enabled"),
}
"""The programs, each with its own ServiceAccount, and the condition of its installation."""

VALUES: Final = {
    HORIZONTAL: "horizontal",
    RECOMMENDER: "vertical.recommender",
    UPDATER: "vertical.updater",
    ADMISSION: "vertical.admission",
    ADAPTER: "adapter",
    DASHBOARD: "dashboard",
}
"""The path of each program's values."""

HEALTH_PORT: Final = 8080
WEBHOOK_PORT: Final = 8000
ADAPTER_PORT: Final = 6443
DASHBOARD_PORT: Final = 8443
WEBHOOK_SERVICE: Final = "trimtab-webhook"
STATUS_LEASE: Final = Val("vertical.admission.statusLease.name")
_STATUS_PLACE: Final = Val("vertical.admission.statusLease.namespace")
STATUS_LEASE_NAMESPACE: Final = If(_STATUS_PLACE, _STATUS_PLACE, NAMESPACE)
"""Our own namespace unless another is named, so that two installations do not share the Lease."""
WEBHOOK_CONFIGURATIONS: Final[dict[str, Tree]] = {
    "trimtab": Text(NAMESPACE, "-vpa"),
    "upstream": UPSTREAM_NAME,
}
"""The name of the webhook configurations, by `--webhook-naming`."""
UPSTREAM_NAMING: Final = Mentions("compat", "vpa-1.8")
FAILS_CLOSED: Final = Mentions("vertical.admission.failurePolicy", "Fail")
REGISTERS_ITSELF: Final = Val("vertical.admission.registersItself")
WEBHOOK_SECRET: Final = "trimtab-webhook-tls"  # noqa: S105 - a name
DASHBOARD_CERTIFICATE: Final = Val("dashboard.certificateSecret")
PROVES_REPLACEMENTS: Final = Val("vertical.updater.proveReplacements")
OWN_CERTIFICATE: Final = Not(Val("vertical.admission.certificateSecret"))

IMAGE: Final = If(
    Val("image.digest"),
    Text(Val("image.repository"), "@", Val("image.digest")),
    Text(Val("image.repository"), ":", Val("image.tag")),
)

_APP: Final = {"app.kubernetes.io/name": "trimtab"}


def selector(component: str) -> dict[str, str]:
    """Return the labels that select a program's pods."""
    return {**_APP, "app.kubernetes.io/component": component}


def account(component: str) -> str:
    """Return the name of a program's ServiceAccount. Other charts may install into the same namespace."""
    return f"trimtab-{component}"


def _labels(component: str = "") -> dict[Any, Tree]:
    return {**(selector(component) if component else _APP), Entries("commonLabels"): None}


def in_status_namespace(flag: str) -> If:
    """Return a flag whose value is the namespace of the status Lease."""
    return If(_STATUS_PLACE, Text(flag, _STATUS_PLACE), Text(flag, NAMESPACE))


def scoped_name(name: str) -> Text:
    """Return the name of an object outside of our namespace.

    It contains the namespace, so that two installations do not share an object. See
    docs/decisions/vpa-webhooks-fail-open-and-are-named-per-installation.md.
    """
    return Text(NAMESPACE, f"-{name}")


def cluster_object(api_version: str, kind: str, name: Tree, **rest: Tree) -> dict[str, Any]:
    """Return a cluster-scoped object."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "labels": _labels()},
        **rest,
    }


def namespaced_object(
    api_version: str, kind: str, name: Tree, component: str = "", *, namespace: Tree = NAMESPACE, **rest: Tree
) -> dict[str, Any]:
    """Return an object of our namespace, or of `namespace`."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": _labels(component)},
        **rest,
    }


def where_enabled(component: str, *trees: Tree) -> list[Tree]:
    """Return the trees, each conditional on the program's installation."""
    return [If(ENABLED[component], tree) for tree in trees]
