"""Assembles the objects of an installation, in order of application."""

from typing import Any, Final

from trimtab.install import (
    admission_policies,
    deployments,
    kube_state_metrics,
    monitoring,
    network,
    rbac,
    webhook_configurations,
)
from trimtab.install.names import cluster_object
from trimtab.install.template import (
    NAMESPACE,
    Both,
    Condition,
    If,
    Not,
    Tree,
    Val,
    Values,
    holds,
    resolve,
)
from trimtab.install.values.assignments import ValueProblem
from trimtab.model.crds import all_crds

CHECKS: Final[tuple[tuple[Condition, str], ...]] = (
    (
        Both(Val("adapter.enabled"), Both(Not(Val("adapter.caBundle")), Not(Val("adapter.injectCaFrom")))),
        "adapter.enabled needs adapter.caBundle or adapter.injectCaFrom, to verify its certificate; see docs/install.md",
    ),
    (
        Both(Val("networkPolicy.enabled"), Not(Val("networkPolicy.apiServerCidrs"))),
        "networkPolicy.apiServerCidrs is empty, which would allow every address; name the API server's, or 0.0.0.0/0 and ::/0",
    ),
    (
        Both(
            Both(Not(Val("horizontal.enabled")), Not(Val("vertical.enabled"))),
            Both(Not(Val("adapter.enabled")), Not(Val("dashboard.enabled"))),
        ),
        "nothing would run; set horizontal.enabled, vertical.enabled, adapter.enabled or dashboard.enabled to true",
    ),
    (Not(Val("featureGates")), "featureGates must name at least one gate, for example HPAScaleToZero: true"),
)
"""Values that cannot work, and the error message for each."""


def parts() -> dict[str, list[Tree]]:
    """Return the trees of the installation by the chart's file names, in order of application."""
    return {
        "namespace": [If(Val("namespace.create"), _namespace())],
        "crds": [If(Val("crds.install"), crd) for crd in _definitions()],
        "accounts": rbac.accounts(),
        "roles": rbac.roles(),
        "policies": admission_policies.policies(),
        "services": network.services(),
        "webhook": [*network.webhook_secret(), *webhook_configurations.webhook_configurations()],
        "adapter": [*network.adapter_configuration(), *network.api_services()],
        "networkpolicies": network.policies(),
        "deployments": deployments.deployments(),
        "disruptionbudgets": deployments.disruption_budgets(),
        "monitoring": [*monitoring.monitors(), *kube_state_metrics.state_metrics()],
    }


def manifests(values: Values) -> list[dict[str, Any]]:
    """Return the objects of an installation. Raise ValueProblem if the values cannot work."""
    for condition, message in CHECKS:
        if holds(condition, values):
            raise ValueProblem(message)
    return [manifest for trees in parts().values() for manifest in resolve(trees, values)]


def _namespace() -> Tree:
    namespace = cluster_object("v1", "Namespace", NAMESPACE)
    for mode in ("enforce", "audit", "warn"):
        namespace["metadata"]["labels"][f"pod-security.kubernetes.io/{mode}"] = "restricted"
    return namespace


def _definitions() -> list[Tree]:
    definitions: list[Any] = all_crds()
    for definition in definitions:
        # Uninstalling the chart must not delete the users' autoscalers.
        annotations = definition["metadata"].setdefault("annotations", {})
        annotations["helm.sh/resource-policy"] = "keep"
    return definitions
