"""The table of built-in resources."""

from dataclasses import replace
from typing import Any

from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab.model.feature_gates import FeatureGates
from trimtab_lab.crd.definitions import DefinitionStrategy
from trimtab_lab.resources import (
    configuration,
    events,
    hpa,
    jobs,
    namespaces_nodes,
    pods,
    services,
    workloads,
)
from trimtab_lab.resources.registry import ALL_VERBS, ServedResource
from trimtab_lab.resources.strategy import ReturnedStrategy, Strategy

APPS, BATCH, POLICY = "apps", "batch", "policy"
RBAC = "rbac.authorization.k8s.io"
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
WEBHOOKS, METRICS = "admissionregistration.k8s.io", "metrics.k8s.io"
SCALE, GENERATION, EXTENSION = "status scale", "all generation", "cluster generation api-extensions"

BINDINGS = ("RoleBinding", "ClusterRoleBinding")

Row = tuple[str, str, str, str, str, type[Strategy]]
#: Group, kind, short names, subresources, traits, strategy. The plural is the kind in lower case with an s.
#:
#: Traits: `cluster` is without namespace, `generation` counts changes of the spec, `all` and `api-extensions` are categories
#: of `kubectl get`, `review` is created and never stored.
ROWS: tuple[Row, ...] = (
    ("", "Namespace", "ns", "status finalize", "cluster", namespaces_nodes.NamespaceStrategy),
    ("", "Pod", "po", pods.SUBRESOURCES, GENERATION, pods.PodStrategy),
    ("", "Node", "no", "status", "cluster", namespaces_nodes.NodeStrategy),
    ("", "Service", "svc", "status", "all", services.ServiceStrategy),
    ("", "Endpoints", "ep", "", "", Strategy),
    ("", "ConfigMap", "cm", "", "", configuration.DataStrategy),
    ("", "Secret", "", "", "", configuration.SecretStrategy),
    ("", "ServiceAccount", "sa", "token", "", ReturnedStrategy),
    ("", "Event", "ev", "", "", events.EventStrategy),
    ("", "LimitRange", "limits", "", "", configuration.LimitRangeStrategy),
    ("", "ResourceQuota", "quota", "status", "", ReturnedStrategy),
    ("", "ReplicationController", "rc", SCALE, GENERATION, workloads.ReplicationControllerStrategy),
    ("", "PersistentVolumeClaim", "pvc", "status", "", ReturnedStrategy),
    (APPS, "Deployment", "deploy", SCALE, GENERATION, workloads.DeploymentStrategy),
    (APPS, "ReplicaSet", "rs", SCALE, GENERATION, workloads.ReplicaSetStrategy),
    (APPS, "StatefulSet", "sts", SCALE, GENERATION, workloads.StatefulSetStrategy),
    (APPS, "DaemonSet", "ds", "status", GENERATION, workloads.DaemonSetStrategy),
    (APPS, "ControllerRevision", "", "", "", Strategy),
    (BATCH, "Job", "", "status", GENERATION, jobs.JobStrategy),
    (BATCH, "CronJob", "cj", "status", GENERATION, jobs.CronJobStrategy),
    ("autoscaling", "HorizontalPodAutoscaler", "hpa", "status", "all", Strategy),
    (POLICY, "PodDisruptionBudget", "pdb", "status", "generation", workloads.BudgetStrategy),
    ("coordination.k8s.io", "Lease", "", "", "", configuration.LeaseStrategy),
    ("events.k8s.io", "Event", "ev", "", "", events.EventStrategy),
    (RBAC, "Role", "", "", "", configuration.RbacStrategy),
    (RBAC, "RoleBinding", "", "", "", configuration.RbacStrategy),
    (RBAC, "ClusterRole", "", "", "cluster", configuration.RbacStrategy),
    (RBAC, "ClusterRoleBinding", "", "", "cluster", configuration.RbacStrategy),
    (AUTHENTICATION, "TokenReview", "", "", "cluster review", Strategy),
    (AUTHENTICATION, "SelfSubjectReview", "", "", "cluster review", Strategy),
    (AUTHORIZATION, "SubjectAccessReview", "", "", "cluster review", Strategy),
    (AUTHORIZATION, "SelfSubjectAccessReview", "", "", "cluster review", Strategy),
    (AUTHORIZATION, "SelfSubjectRulesReview", "", "", "cluster review", Strategy),
    (AUTHORIZATION, "LocalSubjectAccessReview", "", "", "review", Strategy),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "crd crds", "status", EXTENSION, DefinitionStrategy),
    (WEBHOOKS, "MutatingWebhookConfiguration", "", "", EXTENSION, configuration.WebhookStrategy),
    (WEBHOOKS, "ValidatingWebhookConfiguration", "", "", EXTENSION, configuration.WebhookStrategy),
    (
        "apiregistration.k8s.io",
        "APIService",
        "",
        "status",
        "cluster api-extensions",
        configuration.ApiServiceStrategy,
    ),
    (METRICS, "PodMetrics", "", "", "", Strategy),
    (METRICS, "NodeMetrics", "", "", "cluster", Strategy),
)
_METRICS: dict[str, Any] = {"versions": ("v1", "v1beta1"), "verbs": ("get", "list")}
#: What does not fit into a row.
DETAILS: dict[tuple[str, str], dict[str, Any]] = {
    ("", "Namespace"): {"verbs": tuple(verb for verb in ALL_VERBS if verb != "deletecollection")},
    ("", "Endpoints"): {"plural": "endpoints"},
    ("events.k8s.io", "Event"): {"storage_name": "events", "storage_group_name": ""},
    (METRICS, "PodMetrics"): {**_METRICS, "plural": "pods", "storage_name": "podmetrics"},
    (METRICS, "NodeMetrics"): {**_METRICS, "plural": "nodes", "storage_name": "nodemetrics"},
}


def _build(row: Row) -> ServedResource:
    group, kind, short_names, subresources, traits, strategy = row
    resource = ServedResource(
        group,
        f"{kind.lower()}s",
        kind,
        is_namespaced="cluster" not in traits,
        short_names=tuple(short_names.split()),
        categories=tuple(trait for trait in traits.split() if trait in ("all", "api-extensions")),
        subresources=tuple(subresources.split()),
        verbs=("create",) if "review" in traits else ALL_VERBS,
        has_generation="generation" in traits,
        strategy=strategy(),
    )
    return replace(resource, **DETAILS.get((group, kind), {}))


def builtin_resources(
    gates: FeatureGates, rules: ServerRules = KUBERNETES_1_37
) -> tuple[ServedResource, ...]:
    """Return the resources that are served before any definition is created."""
    by_rules: dict[str, dict[str, Any]] = {
        "HorizontalPodAutoscaler": {
            "versions": ("v2", "v1"),
            "has_generation": rules.hpa_generations,
            "strategy": hpa.HpaStrategy(gates, rules),
        },
        "Pod": {"strategy": pods.PodStrategy(rules)},
        "StatefulSet": {"strategy": workloads.StatefulSetStrategy(rules)},
        **{kind: {"strategy": configuration.RbacStrategy(rules)} for kind in BINDINGS},
    }
    return tuple(replace(resource, **by_rules.get(resource.kind, {})) for resource in map(_build, ROWS))
