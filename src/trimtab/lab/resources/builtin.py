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
from trimtab.lab.resources.registry import ALL_VERBS, Resource
from trimtab.model.feature_gates import FeatureGates

CREATE_ONLY = ("create",)
READ_ONLY = ("get", "list")
ALL = ("all",)
RBAC = "rbac.authorization.k8s.io"
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
WEBHOOKS = "admissionregistration.k8s.io"
API_EXTENSIONS = ("api-extensions",)


def core() -> tuple[Resource, ...]:
    """Return the resources of core/v1."""
    return (
        Resource(
            "",
            "namespaces",
            "Namespace",
            is_namespaced=False,
            short_names=("ns",),
            subresources=("status", "finalize"),
            verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
            strategy=namespaces_nodes.NamespaceStrategy(),
        ),
        Resource(
            "",
            "pods",
            "Pod",
            short_names=("po",),
            categories=ALL,
            subresources=("status", "eviction", "binding", "resize", "log", "ephemeralcontainers"),
            has_generation=True,
            strategy=pods.PodStrategy(),
        ),
        Resource(
            "",
            "nodes",
            "Node",
            is_namespaced=False,
            short_names=("no",),
            subresources=("status",),
            strategy=namespaces_nodes.NodeStrategy(),
        ),
        Resource(
            "",
            "services",
            "Service",
            short_names=("svc",),
            categories=ALL,
            subresources=("status",),
            strategy=services.ServiceStrategy(),
        ),
        Resource("", "endpoints", "Endpoints", short_names=("ep",)),
        Resource("", "configmaps", "ConfigMap", short_names=("cm",), strategy=configuration.DataStrategy()),
        Resource("", "secrets", "Secret", strategy=configuration.SecretStrategy()),
        Resource(
            "",
            "serviceaccounts",
            "ServiceAccount",
            short_names=("sa",),
            subresources=("token",),
            strategy=configuration.ReturnedStrategy(),
        ),
        Resource("", "events", "Event", short_names=("ev",), strategy=events.EventStrategy()),
        Resource(
            "",
            "limitranges",
            "LimitRange",
            short_names=("limits",),
            strategy=configuration.LimitRangeStrategy(),
        ),
        Resource(
            "",
            "resourcequotas",
            "ResourceQuota",
            short_names=("quota",),
            subresources=("status",),
            strategy=configuration.ReturnedStrategy(),
        ),
        Resource(
            "",
            "replicationcontrollers",
            "ReplicationController",
            short_names=("rc",),
            categories=ALL,
            subresources=("status", "scale"),
            has_generation=True,
            strategy=workloads.ReplicationControllerStrategy(),
        ),
        Resource(
            "",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            short_names=("pvc",),
            subresources=("status",),
            strategy=configuration.ReturnedStrategy(),
        ),
    )


def workload_resources() -> tuple[Resource, ...]:
    """Return the resources of apps/v1 and batch/v1."""
    scaled = ("status", "scale")
    return (
        Resource(
            "apps",
            "deployments",
            "Deployment",
            short_names=("deploy",),
            categories=ALL,
            subresources=scaled,
            has_generation=True,
            strategy=workloads.DeploymentStrategy(),
        ),
        Resource(
            "apps",
            "replicasets",
            "ReplicaSet",
            short_names=("rs",),
            categories=ALL,
            subresources=scaled,
            has_generation=True,
            strategy=workloads.ReplicaSetStrategy(),
        ),
        Resource(
            "apps",
            "statefulsets",
            "StatefulSet",
            short_names=("sts",),
            categories=ALL,
            subresources=scaled,
            has_generation=True,
            strategy=workloads.StatefulSetStrategy(),
        ),
        Resource(
            "apps",
            "daemonsets",
            "DaemonSet",
            short_names=("ds",),
            categories=ALL,
            subresources=("status",),
            has_generation=True,
            strategy=workloads.DaemonSetStrategy(),
        ),
        Resource("apps", "controllerrevisions", "ControllerRevision"),
        Resource(
            "batch",
            "jobs",
            "Job",
            categories=ALL,
            subresources=("status",),
            has_generation=True,
            strategy=workloads.JobStrategy(),
        ),
        Resource(
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


def policy_resources(gates: FeatureGates) -> tuple[Resource, ...]:
    """Return autoscalers, budgets, leases, events of the new group, and access rules."""
    rules = [
        Resource(RBAC, plural, kind, is_namespaced=is_namespaced, strategy=configuration.RbacStrategy())
        for plural, kind, is_namespaced in (
            ("roles", "Role", True),
            ("rolebindings", "RoleBinding", True),
            ("clusterroles", "ClusterRole", False),
            ("clusterrolebindings", "ClusterRoleBinding", False),
        )
    ]
    return (
        Resource(
            "autoscaling",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            versions=("v2", "v1"),
            short_names=("hpa",),
            categories=ALL,
            subresources=("status",),
            strategy=hpa.HpaStrategy(gates),
        ),
        Resource(
            "policy",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            short_names=("pdb",),
            subresources=("status",),
            has_generation=True,
            strategy=workloads.BudgetStrategy(),
        ),
        Resource("coordination.k8s.io", "leases", "Lease", strategy=configuration.LeaseStrategy()),
        Resource(
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


def machinery() -> tuple[Resource, ...]:
    """Return reviews and the resources that extend the API itself."""
    reviews = [
        Resource(group, plural, kind, is_namespaced=is_namespaced, verbs=CREATE_ONLY)
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
        Resource(
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
            Resource(
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
        Resource(
            "apiregistration.k8s.io",
            "apiservices",
            "APIService",
            is_namespaced=False,
            categories=API_EXTENSIONS,
            subresources=("status",),
            strategy=configuration.ApiServiceStrategy(),
        ),
        Resource(
            "metrics.k8s.io",
            "pods",
            "PodMetrics",
            versions=("v1beta1",),
            verbs=READ_ONLY,
            storage_name="podmetrics",
        ),
        Resource(
            "metrics.k8s.io",
            "nodes",
            "NodeMetrics",
            versions=("v1beta1",),
            verbs=READ_ONLY,
            is_namespaced=False,
            storage_name="nodemetrics",
        ),
    )


def builtin_resources(gates: FeatureGates) -> tuple[Resource, ...]:
    """Return everything that is served before any definition is created."""
    return (*core(), *workload_resources(), *policy_resources(gates), *machinery())
