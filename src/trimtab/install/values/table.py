"""The values of an installation, with their defaults, types and help.

`values.yaml` and `values.schema.json` of the chart, `trimtab install` and the reference page all come from this table. To add a value,
add a row and use its path in a tree. `type` is needed where the default does not say enough.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

import trimtab
from trimtab.cluster.leases.family import MOST_SHARDS
from trimtab.install.values import types
from trimtab.install.values.chart_value import ChartValue, put
from trimtab.install.values.program_values import values_of_program
from trimtab.install.values.types import Schema, choice, list_of, none_or_several, optional, whole_number
from trimtab.model.feature_gates import ALL_ALPHA, ALL_BETA, GATES, OWN_FEATURES

_NO_RULES = "apiVersion: adapter.trimtab.dev/v1alpha1\nkind: MetricRules\nrules: []\n"

_POD_SECURITY: Final = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "fsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_SECURITY: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_SPREAD: Final = [
    {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
]

_VERSIONS: Final = r"(kubernetes-1\.36|kubernetes-1\.37)"
_COMPAT: Final = types.matching(
    rf"({_VERSIONS}(,vpa-1\.8)?|vpa-1\.8(,{_VERSIONS})?)?",
    "known; use kubernetes-1.36 or kubernetes-1.37, vpa-1.8, or both by a comma",
)
_GATES: Final = types.fields(**dict.fromkeys((ALL_ALPHA, ALL_BETA, *GATES), types.SWITCH))


CHART_VALUES: tuple[ChartValue, ...] = (
    ChartValue(
        "namespace.create",
        False,
        "Make the namespace, with pod security `restricted`; `trimtab install` does.",
    ),
    ChartValue(
        "crds.install",
        True,
        "Install the CustomResourceDefinitions; they are kept when the chart is removed.",
    ),
    ChartValue(
        "image.repository",
        "trimtab",
        "Image; build it as docs/install.md says and push it.",
        types.REPOSITORY,
    ),
    ChartValue("image.tag", trimtab.__version__, "Tag of the image.", types.TAG),
    ChartValue(
        "image.pullPolicy",
        "IfNotPresent",
        "When the image is pulled.",
        choice("Always", "IfNotPresent", "Never"),
    ),
    ChartValue(
        "image.digest",
        "",
        "Digest of the image, as `sha256:...`. It counts more than the tag.",
        optional(types.DIGEST),
    ),
    ChartValue(
        "imagePullSecrets", [], "Secrets for a private registry, as `[{name: NAME}]`.", types.PULL_SECRETS
    ),
    ChartValue(
        "replicas",
        2,
        "Replicas of each program. One leads, the rest stand by. All of them serve webhooks and metrics.",
    ),
    ChartValue("nodeSelector", {}, "Labels of the nodes to run on.", types.NODE_LABELS),
    ChartValue("tolerations", [], "Taints to tolerate.", types.TOLERATIONS),
    ChartValue(
        "affinity", {}, "Affinity of the pods. Replicas are spread over nodes in any case.", types.AFFINITY
    ),
    ChartValue(
        "topologySpreadConstraints",
        _SPREAD,
        "How the replicas of a program are spread, as in a pod. Their labelSelector is added.",
        types.SPREAD,
    ),
    ChartValue(
        "priorityClassName",
        "",
        "Priority of the pods, for example system-cluster-critical.",
        optional(types.OBJECT_NAME),
    ),
    ChartValue("commonLabels", {}, "Labels of every object but the definitions.", types.LABELS),
    ChartValue("podLabels", {}, "Labels of the pods.", types.LABELS),
    ChartValue("podAnnotations", {}, "Annotations of the pods.", types.TEXTS),
    ChartValue("podSecurityContext", _POD_SECURITY, "Security context of the pods.", types.ANY_MAP),
    ChartValue("securityContext", _SECURITY, "Security context of the containers.", types.ANY_MAP),
    ChartValue(
        "featureGates",
        dict(OWN_FEATURES),
        "Gates to set. Those of Trimtab's own features are ON here; the program alone leaves them off. All others have their "
        "defaults, or those of the version that `compat` names: HPAConfigurableTolerance and HPAScaleToZero are on, HPAScaleToZero "
        "is off with kubernetes-1.36.",
        _GATES,
    ),
    ChartValue(
        "compat",
        "",
        "Behave as upstream: `kubernetes-1.37` or `kubernetes-1.36` for HPAs, `vpa-1.8` for VPAs, or both; see docs/move-from-upstream-vpa.md.",
        _COMPAT,
    ),
    ChartValue(
        "watchNamespaces",
        [],
        "Namespaces to work in; rights are then given there only. Empty means all.",
        list_of(types.NAMESPACE_NAME),
    ),
    ChartValue(
        "plugins",
        [],
        "Plug-ins to load, such as `example.com/NotDraining`; the image must have their packages. See docs/plugins.md.",
        list_of(types.PLUGIN_NAME),
    ),
    ChartValue(
        "dryRun",
        False,
        "Decide, record and explain everything, write nothing but events and Leases of its own.",
    ),
    ChartValue("logFormat", "json", "text or json.", choice("text", "json")),
    ChartValue(
        "tokenSecret",
        "",
        "Secret of this namespace whose key `token` opens records and metrics. Empty: they are open on loopback, and metrics "
        "without names of objects everywhere.",
        optional(types.OBJECT_NAME),
    ),
    ChartValue(
        "scalable",
        [],
        "Further kinds with a scale, as `[{group: argoproj.io, resource: rollouts}]`. Built in are Deployment, "
        "ReplicaSet, StatefulSet, ReplicationController.",
        types.SCALABLE,
    ),
    ChartValue("horizontal.enabled", True, "Run the horizontal autoscaler."),
    ChartValue(
        "horizontal.nativeHpas",
        False,
        "Also act on autoscaling/v2; needs the cluster's own HPA controller off.",
    ),
    ChartValue(
        "horizontal.watchNodes",
        False,
        "Give the right to list and watch nodes, which pod filters such as `example.com/NotDraining` need.",
    ),
    ChartValue("horizontal.syncPeriod", "15s", "How often each HPA is decided.", types.DURATION),
    ChartValue(
        "horizontal.metricsMaxAge",
        "2m",
        "How old a sample may be; a metric may set its own limit (`maxAgeSeconds`).",
        types.DURATION,
    ),
    ChartValue(
        "horizontal.statusMaxAge",
        "60s",
        "How old the metric values in an HPA's status may be. Replicas and conditions are written at once. `0s` writes every "
        "change in every sync.",
    ),
    ChartValue(
        "horizontal.shards",
        0,
        "Number of shards of the HPAs, 2 to 16. Each shard is processed by one replica, so set `replicas`, too. 0: no sharding.",
        none_or_several(MOST_SHARDS),
    ),
    ChartValue(
        "horizontal.customMetrics",
        ["*"],
        "Custom metrics it may read, as `[pods/http_requests]`. Names are not known beforehand, hence all.",
        list_of(types.METRIC),
    ),
    ChartValue(
        "horizontal.externalMetrics",
        ["*"],
        "External metrics it may read, as `[queue_depth]`.",
        list_of(types.METRIC),
    ),
    *values_of_program("horizontal", "the horizontal autoscaler"),
    ChartValue("vertical.enabled", True, "Run the vertical autoscaler: recommender, updater, admission."),
    ChartValue(
        "vertical.includeKubeSystem",
        False,
        "Let VPAs in kube-system change pods; without it they recommend only. With `watchNamespaces` name kube-system there, "
        "too. On with `compat`.",
    ),
    ChartValue(
        "vertical.ignoredNamespaces",
        [],
        "Namespaces whose VPAs and pods recommender, updater and admission leave alone.",
        list_of(types.NAMESPACE_NAME),
    ),
    ChartValue(
        "vertical.recommender.shards",
        0,
        "Number of shards of the VPAs, 2 to 16. Each shard is processed by one recommender, so set `replicas`, too. 0: no sharding.",
        none_or_several(MOST_SHARDS),
    ),
    ChartValue(
        "vertical.recommender.name",
        "",
        "Serve the VPAs that name this recommender, in lower case letters, digits and dashes; it then leads by the Lease "
        "`trimtab-recommender-NAME`. Empty: those that name none.",
        optional(types.RECOMMENDER_NAME),
    ),
    *values_of_program("vertical.recommender", "the recommender"),
    *values_of_program("vertical.updater", "the updater"),
    ChartValue(
        "vertical.updater.minReplicas",
        2,
        "Minimum number of live pods before the updater disrupts one of them.",
    ),
    ChartValue(
        "vertical.updater.maxEvictionsPerMinute",
        "",
        "Evictions per minute in the whole cluster; 0: no bound. Empty: 10, and no bound with `compat` vpa-1.8.",
        {
            "type": ["integer", "string"],
            "minimum": 0,
            "maximum": 999_999,
            "pattern": "^[0-9]{0,6}$",
            "title": "a whole number from 0 to 999999, nor empty",
        },
    ),
    ChartValue(
        "vertical.updater.admissionCheck",
        "",
        "How the updater checks that admission works before it evicts: probe, lease or none. Empty: probe, and lease "
        "with `compat` vpa-1.8.",
        choice("", "probe", "lease", "none"),
    ),
    ChartValue(
        "vertical.updater.proveReplacements",
        True,
        "Create the replacement of a pod in a dry run before the pod is evicted. The updater may then create pods, and a "
        "policy refuses any that is not a dry run.",
    ),
    ChartValue(
        "vertical.updater.nodeFit",
        "free",
        "Room that some node must have before a pod is evicted: free (for the replacement), allocatable (the replacement fits "
        "on an empty node; for clusters that add nodes) or none.",
        choice("free", "allocatable", "none"),
    ),
    *values_of_program("vertical.admission", "admission"),
    ChartValue(
        "vertical.admission.timeoutSeconds",
        2,
        "How long the API server waits for the webhook; 1 to 3, and to 30 with `compat` vpa-1.8.",
        whole_number(1, 30),
    ),
    ChartValue(
        "vertical.admission.failurePolicy",
        "Ignore",
        "Ignore: pods and VPAs pass unchanged while the webhook does not answer. Fail: they are refused, also until the "
        "webhook runs for the first time.",
        choice("Ignore", "Fail"),
    ),
    ChartValue(
        "vertical.admission.registersItself",
        False,
        "Let admission write its webhook configurations, as flags such as `--webhook-naming` in `extraArgs` need. Otherwise "
        "the installation contains them, and admission may change their CA bundle only.",
    ),
    ChartValue(
        "vertical.admission.statusLease.name",
        "vpa-admission-controller",
        "Lease by which admission shows that it runs; the updater reads it with `admissionCheck` lease.",
        types.OBJECT_NAME,
    ),
    ChartValue(
        "vertical.admission.statusLease.namespace",
        "",
        "Namespace of that Lease. Empty: that of the installation. An upstream updater looks in kube-system.",
        optional(types.NAMESPACE_NAME),
    ),
    ChartValue(
        "vertical.admission.certificateSecret",
        "",
        "Secret of type kubernetes.io/tls (with ca.crt) made by another tool; empty: made and rotated by Trimtab.",
        optional(types.OBJECT_NAME),
    ),
    ChartValue("adapter.enabled", False, "Serve custom.metrics.k8s.io and external.metrics.k8s.io."),
    ChartValue("adapter.custom", True, "Register for custom.metrics.k8s.io; off if another adapter has it."),
    ChartValue(
        "adapter.external", True, "Register for external.metrics.k8s.io; off if another adapter has it."
    ),
    ChartValue(
        "adapter.prometheus", "http://prometheus.monitoring.svc:9090", "Address of Prometheus.", types.URL
    ),
    ChartValue("adapter.prometheusPort", 9090, "Port of Prometheus, for the network policy.", types.PORT),
    ChartValue("adapter.rules", _NO_RULES, "Rules file, as text; see docs/adapter.md."),
    ChartValue(
        "adapter.configuration",
        "",
        "The adapter's whole configuration, as text, for other sources such as plug-ins; empty: rules over a Prometheus.",
    ),
    ChartValue(
        "adapter.certificateSecret",
        "trimtab-adapter-tls",
        "Secret of type kubernetes.io/tls for its API.",
        types.OBJECT_NAME,
    ),
    ChartValue(
        "adapter.caBundle",
        "",
        "Base64 of the CA that signed it; or use adapter.injectCaFrom.",
        optional(types.BASE64),
    ),
    ChartValue(
        "adapter.injectCaFrom",
        "",
        "NAMESPACE/CERTIFICATE of cert-manager to take the CA from.",
        optional(types.NAMESPACE_AND_NAME),
    ),
    *values_of_program("adapter", "the adapter"),
    ChartValue(
        "dashboard.enabled",
        False,
        "Run the dashboard for your teams, with read rights only; each viewer logs in and sees what they may see. "
        "To look yourself nothing needs to be installed: `trimtab dashboard`.",
    ),
    ChartValue(
        "dashboard.hosts",
        [],
        "Host names that it is reached by, besides localhost of `kubectl port-forward`.",
        list_of(types.HOST),
    ),
    ChartValue(
        "dashboard.certificateSecret",
        "",
        "Secret of type kubernetes.io/tls: it then serves HTTPS through the Service trimtab-dashboard. Empty: it stays on "
        "the pod's loopback, for `kubectl port-forward`.",
        optional(types.OBJECT_NAME),
    ),
    ChartValue(
        "dashboard.ingressNamespace",
        "ingress-nginx",
        "Namespace of your ingress controller. Only its pods may connect to that Service.",
        types.NAMESPACE_NAME,
    ),
    *values_of_program("dashboard", "the dashboard"),
    ChartValue("networkPolicy.enabled", True, "Allow only the connections that are needed."),
    ChartValue(
        "networkPolicy.apiServerCidrs",
        ["0.0.0.0/0", "::/0"],
        "Where the API server is, by IPv4 and IPv6; narrow it to its addresses.",
        list_of(types.CIDR),
    ),
    ChartValue("networkPolicy.apiServerPorts", [443, 6443], "Ports of the API server.", list_of(types.PORT)),
    ChartValue(
        "networkPolicy.monitoringNamespace",
        "monitoring",
        "Who may read the metrics port.",
        types.NAMESPACE_NAME,
    ),
    ChartValue("serviceMonitor.enabled", False, "ServiceMonitor for the Prometheus operator."),
    ChartValue("serviceMonitor.interval", "30s", "How often Prometheus scrapes.", types.DURATION),
    ChartValue("prometheusRule.enabled", False, "Alerts for the Prometheus operator."),
    ChartValue("grafanaDashboard.enabled", False, "ConfigMap that Grafana's sidecar picks up."),
    ChartValue(
        "kubeStateMetrics.enabled",
        False,
        "ConfigMap for kube-state-metrics with the metrics of HPAs, VPAs and scopes, and its right to read them.",
    ),
    ChartValue(
        "kubeStateMetrics.namespace", "monitoring", "Namespace of kube-state-metrics.", types.NAMESPACE_NAME
    ),
    ChartValue(
        "kubeStateMetrics.serviceAccount",
        "kube-state-metrics",
        "Account of kube-state-metrics.",
        types.OBJECT_NAME,
    ),
)


COMBINATIONS: Final[tuple[tuple[Mapping[str, Schema], Mapping[str, Schema]], ...]] = (
    (
        {"compat": {"enum": ["", "kubernetes-1.36", "kubernetes-1.37"]}},
        {"vertical.admission.timeoutSeconds": {"minimum": 1, "maximum": 3}},
    ),
    (
        {"compat": {"pattern": "kubernetes-1.37"}},
        {"featureGates.HPAConfigurableTolerance": {"const": True, "title": " with compat kubernetes-1.37"}},
    ),
)
"""Types that some values have only if others have certain types. Those that need a sentence are `manifests.CHECKS`."""


def default_values() -> dict[str, Any]:
    """Return the chart's values, as nested maps."""
    values: dict[str, Any] = {}
    for value in CHART_VALUES:
        put(values, value.path, copy.deepcopy(value.default))
    return values
