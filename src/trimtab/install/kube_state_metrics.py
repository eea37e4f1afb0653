"""The configuration of kube-state-metrics for Trimtab's objects.

kube-state-metrics reads custom kinds by a CustomResourceStateMetrics configuration. VPA metrics have the names that
kube-state-metrics had for them until v2.9. A prefix distinguishes our HPA metrics from those of the built-in HPA.
"""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from trimtab.install.names import cluster_object, namespaced_object, scoped_name
from trimtab.install.template import If, Tree, Val
from trimtab.model.vpa.types import UpdateMode

Json = dict[str, Any]

NAME: Final = scoped_name("kube-state-metrics")
CONFIG_KEY: Final = "config.yaml"
_RBAC: Final = "rbac.authorization.k8s.io"
_HPA: Final = "horizontalpodautoscaler"
_VPA: Final = "verticalpodautoscaler"
_QUIET: Final = 5
"""Verbosity at which kube-state-metrics logs a field that an object has not: that is no error here."""
_UNITS: Final = {"cpu": "core", "memory": "byte"}
_RECOMMENDED: Final = {
    "target": "recommends",
    "lowerBound": "takes for the least that is enough",
    "upperBound": "takes for the most that is useful",
    "uncappedTarget": "would recommend without the bounds of the resource policy",
}


def config() -> Json:
    """Return the configuration for `--custom-resource-state-config`."""
    return {
        "kind": "CustomResourceStateMetrics",
        "spec": {"resources": [_horizontal(), _vertical(), _scope()]},
    }


def config_text() -> str:
    """Return the configuration as the file that kube-state-metrics reads."""
    text: str = yaml.safe_dump(config(), sort_keys=False, width=1000)
    return text


def state_metrics() -> list[Tree]:
    """Return the configuration as a ConfigMap, and the right of kube-state-metrics to read the objects."""
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAME}
    namespace = Val("kubeStateMetrics.namespace")
    reader = {
        "kind": "ServiceAccount",
        "name": Val("kubeStateMetrics.serviceAccount"),
        "namespace": namespace,
    }
    rules = [
        _readable("autoscaling.trimtab.dev", "horizontalpodautoscalers"),
        _readable("autoscaling.k8s.io", "verticalpodautoscalers", "vpascopes"),
        _readable("apiextensions.k8s.io", "customresourcedefinitions"),
    ]
    trees = [
        namespaced_object("v1", "ConfigMap", NAME, namespace=namespace, data={CONFIG_KEY: config_text()}),
        cluster_object(f"{_RBAC}/v1", "ClusterRole", NAME, rules=rules),
        cluster_object(f"{_RBAC}/v1", "ClusterRoleBinding", NAME, roleRef=reference, subjects=[reader]),
    ]
    return [If(Val("kubeStateMetrics.enabled"), tree) for tree in trees]


def _readable(group: str, *resources: str) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["list", "watch"]}


def _horizontal() -> Json:
    target = ["spec", "scaleTargetRef"]
    info = {
        "scaletargetref_api_version": [*target, "apiVersion"],
        "scaletargetref_kind": [*target, "kind"],
        "scaletargetref_name": [*target, "name"],
        "selection_strategy": ["spec", "selectionStrategy"],
        "mode": ["metadata", "annotations", "autoscaling.trimtab.dev/mode"],
    }
    metrics = [
        _info(f"{_HPA}_info", "The target, the selection strategy and the mode of the autoscaler.", info),
        _gauge(f"{_HPA}_metadata_generation", "The version of the spec.", ["metadata", "generation"]),
        _gauge(f"{_HPA}_spec_min_replicas", "Lower limit of replicas.", ["spec", "minReplicas"]),
        _gauge(f"{_HPA}_spec_max_replicas", "Upper limit of replicas.", ["spec", "maxReplicas"]),
        # The API leaves out a count of zero.
        _gauge(
            f"{_HPA}_status_current_replicas",
            "Replicas that the target had.",
            ["status", "currentReplicas"],
            nilIsZero=True,
        ),
        _gauge(
            f"{_HPA}_status_desired_replicas",
            "Replicas that were decided on.",
            ["status", "desiredReplicas"],
            nilIsZero=True,
        ),
        _gauge(
            f"{_HPA}_status_observed_generation",
            "The version of the spec that was decided on.",
            ["status", "observedGeneration"],
        ),
        _gauge(f"{_HPA}_status_last_scale_time", "When it scaled last.", ["status", "lastScaleTime"]),
        *_conditions(_HPA),
    ]
    return _resource("autoscaling.trimtab.dev", "v2", "HorizontalPodAutoscaler", "kube_trimtab", metrics)


def _vertical() -> Json:
    target = ["spec", "targetRef"]
    labels = {
        "target_api_version": [*target, "apiVersion"],
        "target_kind": [*target, "kind"],
        "target_name": [*target, "name"],
    }
    scope = {"vpascope": ["spec", "vpaScope", "name"], "name": ["metadata", "name"]}
    modes = [str(mode) for mode in UpdateMode]
    mode = {"labelName": "update_mode", "path": ["spec", "updatePolicy", "updateMode"], "list": modes}
    metrics = [
        _info(f"{_VPA}_info", "The scope of the autoscaler, if it has one.", scope),
        _metric(f"{_VPA}_spec_updatepolicy_updatemode", "Update mode.", "StateSet", {"stateSet": mode}),
        *_bounds(),
        *_recommendations(),
        *_conditions(_VPA),
    ]
    return _resource("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "kube", metrics, labels)


def _bounds() -> Iterator[Json]:
    path = ["spec", "resourcePolicy", "containerPolicies"]
    for field, most in {"minAllowed": "least", "maxAllowed": "most"}.items():
        for resource in _UNITS:
            yield _of_containers(
                f"{_VPA}_spec_resourcepolicy_container_policies_{field.lower()}_{resource}",
                f"The {most} {resource} that may be recommended.",
                path,
                [field, resource],
            )


def _recommendations() -> Iterator[Json]:
    path = ["status", "recommendation", "containerRecommendations"]
    for field, does in _RECOMMENDED.items():
        for resource in _UNITS:
            yield _of_containers(
                f"{_VPA}_status_recommendation_containerrecommendations_{field.lower()}_{resource}",
                f"The {resource} that the recommender {does}.",
                path,
                [field, resource],
            )


def _of_containers(name: str, words: str, path: list[str], value: list[str]) -> Json:
    gauge = {"path": path, "labelsFromPath": {"container": ["containerName"]}, "valueFrom": value}
    labels = {"resource": value[-1], "unit": _UNITS[value[-1]]}
    return {**_metric(name, words, "Gauge", {"gauge": gauge}), "commonLabels": labels}


def _scope() -> Json:
    selectors = {
        "name": ["metadata", "name"],
        "pod_label_*": ["spec", "podSelector", "matchLabels"],
        "node_label_*": ["spec", "nodeSelector", "matchLabels"],
    }
    metrics = [
        _info("vpascope_info", "The labels that the scope selects pods and nodes by.", selectors),
        _gauge("vpascope_metadata_generation", "The version of the spec.", ["metadata", "generation"]),
        _gauge("vpascope_created", "When it was created.", ["metadata", "creationTimestamp"]),
    ]
    return _resource("autoscaling.k8s.io", "v1", "VPAScope", "kube", metrics)


def _conditions(kind: str) -> list[Json]:
    path = ["status", "conditions"]
    states = {
        "labelName": "status",
        "path": path,
        "labelsFromPath": {"condition": ["type"]},
        "valueFrom": ["status"],
        "list": ["True", "False", "Unknown"],
    }
    reason = {"condition": ["type"], "reason": ["reason"]}
    return [
        _metric(
            f"{kind}_status_condition", "The conditions and their status.", "StateSet", {"stateSet": states}
        ),
        _info(f"{kind}_status_condition_reason", "The reason of each condition.", reason, path),
    ]


def _resource(
    group: str,
    version: str,
    kind: str,
    prefix: str,
    metrics: list[Json],
    labels: dict[str, list[str]] | None = None,
) -> Json:
    own = {"namespace": ["metadata", "namespace"], kind.lower(): ["metadata", "name"]}
    return {
        "groupVersionKind": {"group": group, "version": version, "kind": kind},
        "metricNamePrefix": prefix,
        "labelsFromPath": {**own, **(labels or {})},
        "metrics": metrics,
    }


def _gauge(name: str, words: str, path: list[str], **more: bool) -> Json:
    return _metric(name, words, "Gauge", {"gauge": {"path": path, **more}})


def _info(name: str, words: str, labels: dict[str, list[str]], path: list[str] | None = None) -> Json:
    where = {"path": path} if path else {}
    return _metric(name, words, "Info", {"info": {**where, "labelsFromPath": labels}})


def _metric(name: str, words: str, kind: str, each: Json) -> Json:
    return {"name": name, "help": words, "errorLogV": _QUIET, "each": {"type": kind, **each}}
