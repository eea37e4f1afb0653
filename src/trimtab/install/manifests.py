"""All parts of an installation in the order in which they are applied, and the checks that come before."""

from typing import Any, Final

from trimtab.install import (
    admission_policies,
    deployments,
    kube_state_metrics,
    monitoring,
    network,
)
from trimtab.install.names import thing
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
from trimtab.install.values import ValueProblem
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
    (Not(Val("featureGates")), "featureGates must name at least one gate, for example HPAScaleToZero: true"),
)
"""What cannot work, and what to say about it."""


def parts() -> dict[str, list[Tree]]:
    """Return the trees of the installation by the chart's file names, in order of application."""
    return {
        "namespace": [If(Val("namespace.create"), _namespace())],
        "crds": [If(Val("crds.install"), crd) for crd in _definitions()],
        "accounts": admission_policies.accounts(),
        "roles": admission_policies.roles(),
        "policies": admission_policies.policies(),
        "services": network.services(),
        "webhook": network.webhook_secret(),
        "adapter": [*network.adapter_configuration(), *network.api_services()],
        "networkpolicies": network.policies(),
        "deployments": deployments.deployments(),
        "disruptionbudgets": admission_policies.disruption_budgets(),
        "monitoring": [*monitoring.monitors(), *kube_state_metrics.state_metrics()],
    }


def manifests(values: Values) -> list[dict[str, Any]]:
    """Return the objects of an installation with these values; raise ValueProblem if they cannot work."""
    for condition, message in CHECKS:
        if holds(condition, values):
            raise ValueProblem(message)
    return [found for trees in parts().values() for found in resolve(trees, values)]


def _namespace() -> Tree:
    made = thing("v1", "Namespace", NAMESPACE)
    for mode in ("enforce", "audit", "warn"):
        made["metadata"]["labels"][f"pod-security.kubernetes.io/{mode}"] = "restricted"
    return made


def _definitions() -> list[Tree]:
    definitions: list[Any] = all_crds()
    for definition in definitions:
        # Removing the chart must not take everybody's autoscalers with it.
        annotations = definition["metadata"].setdefault("annotations", {})
        annotations["helm.sh/resource-policy"] = "keep"
    return definitions
