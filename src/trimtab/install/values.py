"""The values of an installation, with their defaults and help.

`values.yaml` of the chart, `--set` of `trimtab install` and the reference page all come from here.
"""

import copy
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

import trimtab
from trimtab.install.template import look_up
from trimtab.model.feature_gates import OWN_FEATURES
from trimtab.model.labels.names import dns1123_label_problems

_SMALL = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}

_NO_RULES = "apiVersion: adapter.trimtab.dev/v1alpha1\nkind: MetricRules\nrules: []\n"


class ValueProblem(Exception):  # noqa: N818 - a problem of what was typed, shown as it is
    """A value is invalid. The message names it and what is valid."""


@dataclass(frozen=True, slots=True)
class ChartValue:
    """A value of the chart: its path, default and help."""

    path: str
    default: Any
    help: str


def _extras(path: str, program: str) -> tuple[ChartValue, ...]:
    """Return the values for flags, variables and connections that the chart does not cover."""
    return (
        ChartValue(
            f"{path}.extraArgs",
            [],
            f"Further arguments of {program}, as `[--flag=value]`; the last of a flag counts.",
        ),
        ChartValue(f"{path}.extraEnv", [], f"Environment variables of {program}, as in a container's `env`."),
        ChartValue(
            f"{path}.extraEgress",
            [],
            f"Further connections that {program} may open, as rules of a NetworkPolicy's `egress`.",
        ),
    )


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
    ),
    ChartValue("image.tag", trimtab.__version__, "Tag of the image."),
    ChartValue("image.pullPolicy", "IfNotPresent", "When the image is pulled."),
    ChartValue("imagePullSecrets", [], "Secrets for a private registry, as `[{name: NAME}]`."),
    ChartValue(
        "replicas",
        2,
        "Replicas of each program. One leads, the rest stand by. All of them serve webhooks and metrics.",
    ),
    ChartValue("nodeSelector", {}, "Labels of the nodes to run on."),
    ChartValue("tolerations", [], "Taints to tolerate."),
    ChartValue("affinity", {}, "Affinity of the pods. Replicas are spread over nodes in any case."),
    ChartValue("priorityClassName", "", "Priority of the pods, for example system-cluster-critical."),
    ChartValue("podAnnotations", {}, "Annotations of the pods."),
    ChartValue(
        "featureGates",
        dict(OWN_FEATURES),
        "Gates to set. Those of Trimtab's own features are ON here; the program alone leaves them off. All others have their "
        "defaults, or those of the version that `compat` names: HPAConfigurableTolerance and HPAScaleToZero are on, HPAScaleToZero "
        "is off with kubernetes-1.36.",
    ),
    ChartValue(
        "compat",
        "",
        "Behave as upstream: `kubernetes-1.37` or `kubernetes-1.36` for HPAs, `vpa-1.8` for VPAs, or both; see docs/move-from-upstream-vpa.md.",
    ),
    ChartValue(
        "watchNamespaces", [], "Namespaces to work in; rights are then given there only. Empty means all."
    ),
    ChartValue(
        "dryRun",
        False,
        "Decide, record and explain everything, write nothing but events and Leases of its own.",
    ),
    ChartValue("logFormat", "json", "text or json."),
    ChartValue(
        "tokenSecret",
        "",
        "Secret of this namespace whose key `token` opens records and metrics. Empty: they are open on loopback, and metrics "
        "without names of objects everywhere.",
    ),
    ChartValue(
        "scalable",
        [],
        "Further kinds with a scale, as `[{group: argoproj.io, resource: rollouts}]`. Built in are Deployment, "
        "ReplicaSet, StatefulSet, ReplicationController.",
    ),
    ChartValue("horizontal.enabled", True, "Run the horizontal autoscaler."),
    ChartValue(
        "horizontal.nativeHpas",
        False,
        "Also act on autoscaling/v2; needs the cluster's own HPA controller off.",
    ),
    ChartValue("horizontal.syncPeriod", "15s", "How often each HPA is decided."),
    ChartValue(
        "horizontal.metricsMaxAge",
        "2m",
        "How old a sample may be; a metric may set its own limit (`maxAgeSeconds`).",
    ),
    ChartValue(
        "horizontal.shards",
        0,
        "Number of shards of the HPAs, 2 to 16. Each shard is processed by one replica, so set `replicas`, too. 0: no sharding.",
    ),
    ChartValue(
        "horizontal.customMetrics",
        ["*"],
        "Custom metrics it may read, as `[pods/http_requests]`. Names are not known beforehand, hence all.",
    ),
    ChartValue("horizontal.externalMetrics", ["*"], "External metrics it may read, as `[queue_depth]`."),
    ChartValue("horizontal.resources", _SMALL, "Resources of the horizontal autoscaler."),
    *_extras("horizontal", "the horizontal autoscaler"),
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
    ),
    ChartValue(
        "vertical.recommender.shards",
        0,
        "Number of shards of the VPAs, 2 to 16. Each shard is processed by one recommender, so set `replicas`, too. 0: no sharding.",
    ),
    ChartValue(
        "vertical.recommender.name",
        "",
        "Serve the VPAs that name this recommender, in lower case letters, digits and dashes; it then leads by the Lease "
        "`trimtab-recommender-NAME`. Empty: those that name none.",
    ),
    ChartValue("vertical.recommender.resources", _SMALL, "Resources of the recommender."),
    *_extras("vertical.recommender", "the recommender"),
    ChartValue("vertical.updater.resources", _SMALL, "Resources of the updater."),
    *_extras("vertical.updater", "the updater"),
    ChartValue(
        "vertical.updater.minReplicas",
        2,
        "Minimum number of live pods before the updater disrupts one of them.",
    ),
    ChartValue(
        "vertical.updater.maxEvictionsPerMinute",
        "",
        "Evictions per minute in the whole cluster; 0: no bound. Empty: 10, and no bound with `compat` vpa-1.8.",
    ),
    ChartValue(
        "vertical.updater.admissionCheck",
        "",
        "How the updater checks that admission works before it evicts: probe, lease or none. Empty: probe, and lease "
        "with `compat` vpa-1.8.",
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
    ),
    ChartValue("vertical.admission.resources", _SMALL, "Resources of the admission webhook."),
    *_extras("vertical.admission", "admission"),
    ChartValue(
        "vertical.admission.timeoutSeconds",
        2,
        "How long the API server waits for the webhook; 1 to 3, and to 30 with `compat` vpa-1.8.",
    ),
    ChartValue(
        "vertical.admission.failurePolicy",
        "Ignore",
        "Ignore: pods and VPAs pass unchanged while the webhook does not answer. Fail: they are refused, also until the "
        "webhook runs for the first time.",
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
    ),
    ChartValue("vertical.admission.statusLease.namespace", "kube-system", "Namespace of that Lease."),
    ChartValue(
        "vertical.admission.certificateSecret",
        "",
        "Secret of type kubernetes.io/tls (with ca.crt) made by another tool; empty: made and rotated by Trimtab.",
    ),
    ChartValue("adapter.enabled", False, "Serve custom.metrics.k8s.io and external.metrics.k8s.io."),
    ChartValue("adapter.custom", True, "Register for custom.metrics.k8s.io; off if another adapter has it."),
    ChartValue(
        "adapter.external", True, "Register for external.metrics.k8s.io; off if another adapter has it."
    ),
    ChartValue("adapter.prometheus", "http://prometheus.monitoring.svc:9090", "Address of Prometheus."),
    ChartValue("adapter.prometheusPort", 9090, "Port of Prometheus, for the network policy."),
    ChartValue("adapter.rules", _NO_RULES, "Rules file, as text; see docs/adapter.md."),
    ChartValue(
        "adapter.certificateSecret", "trimtab-adapter-tls", "Secret of type kubernetes.io/tls for its API."
    ),
    ChartValue("adapter.caBundle", "", "Base64 of the CA that signed it; or use adapter.injectCaFrom."),
    ChartValue("adapter.injectCaFrom", "", "NAMESPACE/CERTIFICATE of cert-manager to take the CA from."),
    ChartValue("adapter.resources", _SMALL, "Resources of the adapter."),
    *_extras("adapter", "the adapter"),
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
    ),
    ChartValue(
        "dashboard.certificateSecret",
        "",
        "Secret of type kubernetes.io/tls: it then serves HTTPS through the Service trimtab-dashboard. Empty: it stays on "
        "the pod's loopback, for `kubectl port-forward`.",
    ),
    ChartValue(
        "dashboard.ingressNamespace",
        "ingress-nginx",
        "Namespace of your ingress controller. Only its pods may connect to that Service.",
    ),
    ChartValue("dashboard.resources", _SMALL, "Resources of the dashboard."),
    *_extras("dashboard", "the dashboard"),
    ChartValue("networkPolicy.enabled", True, "Allow only the connections that are needed."),
    ChartValue(
        "networkPolicy.apiServerCidrs",
        ["0.0.0.0/0", "::/0"],
        "Where the API server is, by IPv4 and IPv6; narrow it to its addresses.",
    ),
    ChartValue("networkPolicy.apiServerPorts", [443, 6443], "Ports of the API server."),
    ChartValue("networkPolicy.monitoringNamespace", "monitoring", "Who may read the metrics port."),
    ChartValue("serviceMonitor.enabled", False, "ServiceMonitor for the Prometheus operator."),
    ChartValue("serviceMonitor.interval", "30s", "How often Prometheus scrapes."),
    ChartValue("prometheusRule.enabled", False, "Alerts for the Prometheus operator."),
    ChartValue("grafanaDashboard.enabled", False, "ConfigMap that Grafana's sidecar picks up."),
    ChartValue(
        "kubeStateMetrics.enabled",
        False,
        "ConfigMap for kube-state-metrics with the metrics of HPAs, VPAs and scopes, and its right to read them.",
    ),
    ChartValue("kubeStateMetrics.namespace", "monitoring", "Namespace of kube-state-metrics."),
    ChartValue("kubeStateMetrics.serviceAccount", "kube-state-metrics", "Account of kube-state-metrics."),
)


_NAMESPACE_LISTS = ("watchNamespaces", "vertical.ignoredNamespaces")


def default_values() -> dict[str, Any]:
    """Return the chart's values, as nested maps."""
    values: dict[str, Any] = {}
    for value in CHART_VALUES:
        _put(values, value.path, copy.deepcopy(value.default))
    return values


def set_values(assignments: Iterable[str], *, namespace: str = "trimtab") -> dict[str, Any]:
    """Return the values of a flat installation after `path=value` assignments. The value is YAML."""
    values = default_values()
    values["namespace"] = {"create": True, "name": namespace}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals:
            raise ValueProblem(f"--set {assignment}: expected KEY=VALUE, for example replicas=3")
        _assign(values, path, text)
    return values


def _assign(values: dict[str, Any], path: str, text: str) -> None:
    try:
        before = look_up(values, path)
    except (KeyError, TypeError):
        parent = path.rpartition(".")[0]
        if not _is_open_map(values, parent):
            raise ValueProblem(f"--set {path}: there is no such value; {_hint(path)}") from None
        before = None
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueProblem(f"--set {path}: {text!r} is not YAML: {error}") from error
    _put(values, path, _like(before, value, text, path))


def _hint(path: str) -> str:
    known = [value.path for value in CHART_VALUES]
    near = difflib.get_close_matches(path, known, 1, 0.75)
    if near:
        return f"did you mean {near[0]}?"
    group = path.partition(".")[0]
    inside = [path for path in known if path.startswith(f"{group}.")]
    return f"known are: {', '.join(inside or known)}"


def _like(before: Any, value: Any, text: str, path: str) -> Any:
    """Return the value in the type that the default has."""
    if isinstance(before, str):
        return text
    if isinstance(before, list):
        items = value if isinstance(value, list) else _split_items(text)
        if path in _NAMESPACE_LISTS:
            _check_namespaces(items, f"--set {path}={text}")
        return items
    if before is not None and type(value) is not type(before):
        wanted = {bool: "true or false", int: "a whole number", dict: "a map", list: "a list"}[type(before)]
        raise ValueProblem(f"--set {path}={text}: must be {wanted}")
    return value


def _split_items(text: str) -> list[str]:
    """Return the items of `a,b`, or of `{a,b}` as Helm spells a list. A backslash escapes a comma."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1]
    items = [item.replace("\\,", ",").strip() for item in re.split(r"(?<!\\),", inner)]
    return [item for item in items if item]


def _check_namespaces(names: list[Any], where: str) -> None:
    """Raise if a name cannot be that of a namespace."""
    for name in names:
        problems = dns1123_label_problems(name) if isinstance(name, str) else ["must be a text"]
        if problems:
            raise ValueProblem(f"{where}: {name!r} cannot be a namespace: {problems[0]}")


def _is_open_map(values: Mapping[str, Any], path: str) -> bool:
    """Return whether users choose the keys of a map, as in nodeSelector."""
    return any(value.path == path and isinstance(value.default, dict) for value in CHART_VALUES)


def _put(values: dict[str, Any], path: str, value: Any) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
    values[name] = value
