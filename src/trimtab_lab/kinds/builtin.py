"""The table of built-in resources."""

from dataclasses import replace
from typing import Any

from trimtab.model.core.server_rules import KUBERNETES_1_37, ServerRules
from trimtab.model.feature_gates import FeatureGates
from trimtab_lab.crd.definitions import DefinitionStrategy
from trimtab_lab.kinds.configuration import (
    ApiServiceStrategy,
    DataStrategy,
    LeaseStrategy,
    LimitRangeStrategy,
    NamespaceStrategy,
    NodeStrategy,
    RbacStrategy,
    SecretStrategy,
    ServiceStrategy,
    WebhookStrategy,
)
from trimtab_lab.kinds.events import EventStrategy
from trimtab_lab.kinds.hpa import HpaStrategy
from trimtab_lab.kinds.pods import POD_SUBRESOURCES, PodStrategy
from trimtab_lab.kinds.registry import ALL_VERBS, ServedResource
from trimtab_lab.kinds.strategy import ReturnedStrategy, Strategy
from trimtab_lab.kinds.workloads import (
    BudgetStrategy,
    CronJobStrategy,
    DaemonSetStrategy,
    DeploymentStrategy,
    JobStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
    StatefulSetStrategy,
)

APPS, BATCH, POLICY = "apps", "batch", "policy"
RBAC = "rbac.authorization.k8s.io"
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
WEBHOOKS, METRICS = "admissionregistration.k8s.io", "metrics.k8s.io"
SCALE, GENERATION, EXTENSION = "status scale", "all generation", "cluster generation api-extensions"

Row = tuple[str, str, str, str, str, type[Strategy]]
#: Group, kind, short names, subresources, traits, strategy. The plural is the kind in lower case with an s.
#:
#: Traits: `cluster` is without namespace, `generation` counts changes of the spec, `all` and `api-extensions` are categories
#: of `kubectl get`, `review` is created and never stored.
ROWS: tuple[Row, ...] = (
    ("", "Namespace", "ns", "status finalize", "cluster", NamespaceStrategy),
    ("", "Pod", "po", POD_SUBRESOURCES, GENERATION, PodStrategy),
    ("", "Node", "no", "status", "cluster", NodeStrategy),
    ("", "Service", "svc", "status", "all", ServiceStrategy),
    ("", "Endpoints", "ep", "", "", Strategy),
    ("", "ConfigMap", "cm", "", "", DataStrategy),
    ("", "Secret", "", "", "", SecretStrategy),
    ("", "ServiceAccount", "sa", "token", "", ReturnedStrategy),
    ("", "Event", "ev", "", "", EventStrategy),
    ("", "LimitRange", "limits", "", "", LimitRangeStrategy),
    ("", "ResourceQuota", "quota", "status", "", ReturnedStrategy),
    ("", "ReplicationController", "rc", SCALE, GENERATION, ReplicationControllerStrategy),
    ("", "PersistentVolumeClaim", "pvc", "status", "", ReturnedStrategy),
    (APPS, "Deployment", "deploy", SCALE, GENERATION, DeploymentStrategy),
    (APPS, "ReplicaSet", "rs", SCALE, GENERATION, ReplicaSetStrategy),
    (APPS, "StatefulSet", "sts", SCALE, GENERATION, StatefulSetStrategy),
    (APPS, "DaemonSet", "ds", "status", GENERATION, DaemonSetStrategy),
    (APPS, "ControllerRevision", "", "", "", Strategy),
    (BATCH, "Job", "", "status", GENERATION, JobStrategy),
    (BATCH, "CronJob", "cj", "status", GENERATION, CronJobStrategy),
    ("autoscaling", "HorizontalPodAutoscaler", "hpa", "status", "all", HpaStrategy),
    (POLICY, "PodDisruptionBudget", "pdb", "status", "generation", BudgetStrategy),
    ("coordination.k8s.io", "Lease", "", "", "", LeaseStrategy),
    ("events.k8s.io", "Event", "ev", "", "", EventStrategy),
    (RBAC, "Role", "", "", "", RbacStrategy),
    (RBAC, "RoleBinding", "", "", "", RbacStrategy),
    (RBAC, "ClusterRole", "", "", "cluster", RbacStrategy),
    (RBAC, "ClusterRoleBinding", "", "", "cluster", RbacStrategy),
    (AUTHENTICATION, "TokenReview", "", "", "cluster review", Strategy),
    (AUTHENTICATION, "SelfSubjectReview", "", "", "cluster review", Strategy),
    (AUTHORIZATION, "SubjectAccessReview", "", "", "cluster review", Strategy),
    (AUTHORIZATION, "SelfSubjectAccessReview", "", "", "cluster review", Strategy),
    (AUTHORIZATION, "SelfSubjectRulesReview", "", "", "cluster review", Strategy),
    (AUTHORIZATION, "LocalSubjectAccessReview", "", "", "review", Strategy),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "crd crds", "status", EXTENSION, DefinitionStrategy),
    (WEBHOOKS, "MutatingWebhookConfiguration", "", "", EXTENSION, WebhookStrategy),
    (WEBHOOKS, "ValidatingWebhookConfiguration", "", "", EXTENSION, WebhookStrategy),
    (
        "apiregistration.k8s.io",
        "APIService",
        "",
        "status",
        "cluster api-extensions",
        ApiServiceStrategy,
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


def builtin_resources(
    gates: FeatureGates, rules: ServerRules = KUBERNETES_1_37
) -> tuple[ServedResource, ...]:
    """Return the resources that are served before any definition is created."""
    return tuple(_build(row, gates, rules) for row in ROWS)


def _build(row: Row, gates: FeatureGates, rules: ServerRules) -> ServedResource:
    group, kind, short_names, subresources, traits, strategy = row
    is_hpa = strategy is HpaStrategy
    resource = ServedResource(
        group,
        f"{kind.lower()}s",
        kind,
        versions=("v2", "v1") if is_hpa else ("v1",),
        is_namespaced="cluster" not in traits,
        short_names=tuple(short_names.split()),
        categories=tuple(trait for trait in traits.split() if trait in ("all", "api-extensions")),
        subresources=tuple(subresources.split()),
        verbs=("create",) if "review" in traits else ALL_VERBS,
        has_generation=rules.hpa_generations if is_hpa else "generation" in traits,
        strategy=HpaStrategy(rules, gates) if is_hpa else strategy(rules),
    )
    return replace(resource, **DETAILS.get((group, kind), {}))
