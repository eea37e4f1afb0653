"""The built-in resources, as data."""

from trimtab.lab.crd.definitions import DefinitionStrategy
from trimtab.lab.resources import (
    configuration,
    events,
    hpa,
    namespaces_nodes,
    pods,
    services,
    workloads,
)
from trimtab.lab.resources.registry import ALL_VERBS, ServedResource
from trimtab.model.feature_gates import FeatureGates

CREATE_ONLY = ("create",)
READ_ONLY = ("get", "list")
ALL = ("all",)
RBAC = "rbac.authorization.k8s.io"
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
WEBHOOKS = "admissionregistration.k8s.io"
API_EXTENSIONS = ("api-extensions",)


def core() -> tuple[ServedResource, ...]:
    """Return the resources of core/v1."""
    return (
        ServedResource(
            "",
            "namespaces",
            "Namespace",
            is_namespaced=False,
            short_names=("ns",),
            subresources=("status", "finalize"),
            verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
            strategy=namespaces_nodes.NamespaceStrategy(),
        ),
        ServedResource(
            "",
            "pods",
            "Pod",
            short_names=("po",),
            categories=ALL,
            subresources=("status", "eviction", "binding", "resize", "log", "ephemeralcontainers"),
            has_generation=True,
            strategy=pods.PodStrategy(),
        ),
        ServedResource(
            "",
            "nodes",
            "Node",
            is_namespaced=False,
            short_names=("no",),
            subresources=("status",),
            strategy=namespaces_nodes.NodeStrategy(),
        ),
        ServedResource(
            "",
            "services",
            "Service",
            short_names=("svc",),
            categories=ALL,
            subresources=("status",),
            strategy=services.ServiceStrategy(),
        ),
        ServedResource("", "endpoints", "Endpoints", short_names=("ep",)),
        ServedResource(
            "", "configmaps", "ConfigMap", short_names=("cm",), strategy=configuration.DataStrategy()
        ),
        ServedResource("", "secrets", "Secret", strategy=configuration.SecretStrategy()),
        ServedResource(
            "",
            "serviceaccounts",
            "ServiceAccount",
            short_names=("sa",),
            subresources=("token",),
            strategy=configuration.ReturnedStrategy(),
        ),
        ServedResource("", "events", "Event", short_names=("ev",), strategy=events.EventStrategy()),
        ServedResource(
            "",
            "limitranges",
            "LimitRange",
            short_names=("limits",),
            strategy=configuration.LimitRangeStrategy(),
        ),
        ServedResource(
            "",
            "resourcequotas",
            "ResourceQuota",
            short_names=("quota",),
            subresources=("status",),
            strategy=configuration.ReturnedStrategy(),
        ),
        ServedResource(
            "",
            "replicationcontrollers",
            "ReplicationController",
            short_names=("rc",),
            categories=ALL,
            subresources=("status", "scale"),
            has_generation=True,
            strategy=workloads.ReplicationControllerStrategy(),
        ),
        ServedResource(
            "",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            short_names=("pvc",),
            subresources=("status",),
            strategy=configuration.ReturnedStrategy(),
        ),
    )


def workload_resources() -> tuple[ServedResource, ...]:
    """Return the resources of apps/v1 and batch/v1."""
    scaled = ("status", "scale")
    return (
        ServedResource(
            "apps",
            "deployments",
            "Deployment",
            short_names=("deploy",),
            categories=ALL,
            subresources=scaled,
            has_generation=True,
            strategy=workloads.DeploymentStrategy(),
        ),
        ServedResource(
            "apps",
            "replicasets",
            "ReplicaSet",
            short_names=("rs",),
            categories=ALL,
            subresources=scaled,
            has_generation=True,
            strategy=workloads.ReplicaSetStrategy(),
        ),
        ServedResource(
            "apps",
            "statefulsets",
            "StatefulSet",
            short_names=("sts",),
            categories=ALL,
            subresources=scaled,
            has_generation=True,
            strategy=workloads.StatefulSetStrategy(),
        ),
        ServedResource(
            "apps",
            "daemonsets",
            "DaemonSet",
            short_names=("ds",),
            categories=ALL,
            subresources=("status",),
            has_generation=True,
            strategy=workloads.DaemonSetStrategy(),
        ),
        ServedResource("apps", "controllerrevisions", "ControllerRevision"),
        ServedResource(
            "batch",
            "jobs",
            "Job",
            categories=ALL,
            subresources=("status",),
            has_generation=True,
            strategy=workloads.JobStrategy(),
        ),
        ServedResource(
            "batch",
            "cronjobs",
            "CronJob",
            short_names=("cj",),
            categories=ALL,
            subresources=("status",),
            has_generation=True,
            strategy=workloads.CronJobStrategy(),
        ),
    )


def policy_resources(gates: FeatureGates) -> tuple[ServedResource, ...]:
    """Return autoscalers, budgets, leases, events of the new group, and access rules."""
    rules = [
        ServedResource(RBAC, plural, kind, is_namespaced=is_namespaced, strategy=configuration.RbacStrategy())
        for plural, kind, is_namespaced in (
            ("roles", "Role", True),
            ("rolebindings", "RoleBinding", True),
            ("clusterroles", "ClusterRole", False),
            ("clusterrolebindings", "ClusterRoleBinding", False),
        )
    ]
    return (
        ServedResource(
            "autoscaling",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            versions=("v2", "v1"),
            short_names=("hpa",),
            categories=ALL,
            subresources=("status",),
            strategy=hpa.HpaStrategy(gates),
        ),
        ServedResource(
            "policy",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            short_names=("pdb",),
            subresources=("status",),
            has_generation=True,
            strategy=workloads.BudgetStrategy(),
        ),
        ServedResource("coordination.k8s.io", "leases", "Lease", strategy=configuration.LeaseStrategy()),
        ServedResource(
            "events.k8s.io",
            "events",
            "Event",
            short_names=("ev",),
            storage_name="events",
            storage_group_name="",
            strategy=events.EventStrategy(),
        ),
        *rules,
    )


def machinery() -> tuple[ServedResource, ...]:
    """Return reviews and the resources that extend the API itself."""
    reviews = [
        ServedResource(group, plural, kind, is_namespaced=is_namespaced, verbs=CREATE_ONLY)
        for group, plural, kind, is_namespaced in (
            (AUTHENTICATION, "tokenreviews", "TokenReview", False),
            (AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", False),
            (AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", False),
            (AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
            (AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", False),
            (AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
        )
    ]
    return (
        *reviews,
        ServedResource(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            is_namespaced=False,
            short_names=("crd", "crds"),
            categories=API_EXTENSIONS,
            subresources=("status",),
            has_generation=True,
            strategy=DefinitionStrategy(),
        ),
        *(
            ServedResource(
                WEBHOOKS,
                f"{name.lower()}webhookconfigurations",
                f"{name}WebhookConfiguration",
                is_namespaced=False,
                categories=API_EXTENSIONS,
                has_generation=True,
                strategy=configuration.WebhookStrategy(),
            )
            for name in ("Mutating", "Validating")
        ),
        ServedResource(
            "apiregistration.k8s.io",
            "apiservices",
            "APIService",
            is_namespaced=False,
            categories=API_EXTENSIONS,
            subresources=("status",),
            strategy=configuration.ApiServiceStrategy(),
        ),
        ServedResource(
            "metrics.k8s.io",
            "pods",
            "PodMetrics",
            versions=("v1beta1",),
            verbs=READ_ONLY,
            storage_name="podmetrics",
        ),
        ServedResource(
            "metrics.k8s.io",
            "nodes",
            "NodeMetrics",
            versions=("v1beta1",),
            verbs=READ_ONLY,
            is_namespaced=False,
            storage_name="nodemetrics",
        ),
    )


def builtin_resources(gates: FeatureGates) -> tuple[ServedResource, ...]:
    """Return everything that is served before any definition is created."""
    return (*core(), *workload_resources(), *policy_resources(gates), *machinery())
