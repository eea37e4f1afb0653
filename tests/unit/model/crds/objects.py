"""Objects that the definitions accept, and what spoils them: for the lab's API server and for the real one."""

import copy
from typing import Any

HPA: dict[str, Any] = {
    "apiVersion": "autoscaling.trimtab.dev/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "External",
                "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "5"}},
                "onLoss": {"policy": "LastGood", "maxAgeSeconds": 60},
            },
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            },
        ],
        "behavior": {
            "scaleUp": {"tolerance": "0.05", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]},
        },
        "selectionStrategy": "OwnerReference",
    },
}
VPA = {
    "apiVersion": "autoscaling.trimtab.dev/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "db"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
        "vpaScope": {"name": "leader"},
        "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1},
        "resourcePolicy": {
            "containerPolicies": [
                {
                    "containerName": "app",
                    "minAllowed": {"cpu": "100m", "memory": "1Gi"},
                    "maxAllowed": {"cpu": 2, "memory": "4Gi"},
                    "targetPercentile": "0.95",
                    "safetyMarginFraction": "0.2",
                    "startupBoost": {"cpu": {"type": "Factor", "factor": 2}},
                }
            ]
        },
    },
}
SCOPE = {
    "apiVersion": "autoscaling.trimtab.dev/v1",
    "kind": "VPAScope",
    "metadata": {"name": "leader"},
    "spec": {
        "podSelector": {
            "matchLabels": {"app.kubernetes.io/name": "db"},
            "matchExpressions": [{"key": "role", "operator": "In", "values": ["leader"]}],
        }
    },
}
POLICY = "spec.resourcePolicy.containerPolicies[0]"
GONE = object()

BAD = [
    (HPA, "spec.maxReplicas", GONE, "spec.maxReplicas"),
    (HPA, "spec.maxReplicas", 0, "spec.maxReplicas"),
    (HPA, "spec.maxReplicas", "five", "spec.maxReplicas"),
    (HPA, "spec.minReplicas", 6, "spec.maxReplicas"),
    (HPA, "spec.minReplicas", -1, "spec.minReplicas"),
    (HPA, "spec.selectionStrategy", "OwnerReferences", "spec.selectionStrategy"),
    (HPA, "spec.scaleTargetRef.apiVersion", "v1", "spec.scaleTargetRef.apiVersion"),
    (HPA, "spec.scaleTargetRef.name", "a/b", "spec.scaleTargetRef.name"),
    (HPA, "spec.metrics.0.type", "Objects", "spec.metrics[0].type"),
    (HPA, "spec.metrics.0.type", "Pods", "spec.metrics[0].pods"),
    (HPA, "spec.metrics.0.external.target.value", "0", "spec.metrics[0].external.target.value"),
    (HPA, "spec.metrics.0.external.target.value", "5 Gi", "spec.metrics[0].external.target.value"),
    (HPA, "spec.metrics.0.external.target.value", 0, "spec.metrics[0].external.target.value"),
    (HPA, "spec.metrics.0.external.target.averageValue", 3, "spec.metrics[0].external.target"),
    (HPA, "spec.metrics.0.external.target.value", GONE, "spec.metrics[0].external.target"),
    (HPA, "spec.metrics.0.external.metric.name", "..", "spec.metrics[0].external.metric.name"),
    (HPA, "spec.metrics.1.resource.target.averageValue", "5", "spec.metrics[1].resource.target"),
    (
        HPA,
        "spec.metrics.1.resource.target.averageUtilization",
        0,
        "spec.metrics[1].resource.target.averageUtilization",
    ),
    (HPA, "spec.metrics.0.onLoss.policy", "Guess", "spec.metrics[0].onLoss.policy"),
    (HPA, "spec.metrics.0.onLoss.policy", GONE, "spec.metrics[0].onLoss.policy"),
    (HPA, "spec.metrics.0.onLoss.policy", "Ignore", "spec.metrics[0].onLoss.maxAgeSeconds"),
    (HPA, "spec.metrics.0.onLoss.maxAgeSeconds", 3601, "spec.metrics[0].onLoss.maxAgeSeconds"),
    (HPA, "spec.metrics.0.onLoss.replicas", 5, "spec.metrics[0].onLoss.replicas"),
    (HPA, "spec.metrics.0.onLoss", {"policy": "Replicas"}, "spec.metrics[0].onLoss.replicas"),
    (
        HPA,
        "spec.metrics.0.onLoss",
        {"policy": "Replicas", "replicas": 0},
        "spec.metrics[0].onLoss.replicas",
    ),
    (HPA, "spec.behavior.scaleUp.tolerance", "-1m", "spec.behavior.scaleUp.tolerance"),
    (HPA, "spec.behavior.scaleUp.tolerance", -0.1, "spec.behavior.scaleUp.tolerance"),
    (HPA, "spec.behavior.scaleUp.tolerance", [1], "spec.behavior.scaleUp.tolerance"),
    (
        HPA,
        "spec.behavior.scaleUp.stabilizationWindowSeconds",
        3601,
        "spec.behavior.scaleUp.stabilizationWindowSeconds",
    ),
    (
        HPA,
        "spec.behavior.scaleUp.policies.0.periodSeconds",
        1801,
        "spec.behavior.scaleUp.policies[0].periodSeconds",
    ),
    (HPA, "spec.behavior.scaleUp.policies.0.type", "Nodes", "spec.behavior.scaleUp.policies[0].type"),
    (VPA, "spec.targetRef", GONE, "spec.targetRef"),
    (VPA, "spec.vpaScope.name", "", "spec.vpaScope.name"),
    (VPA, "spec.updatePolicy.updateMode", "Sometimes", "spec.updatePolicy.updateMode"),
    (VPA, "spec.updatePolicy.minReplicas", 0, "spec.updatePolicy.minReplicas"),
    (VPA, f"{POLICY}.containerName", "", f"{POLICY}.containerName"),
    (VPA, f"{POLICY}.minAllowed.memory", "5Gi", f"{POLICY}.maxAllowed"),
    (VPA, f"{POLICY}.minAllowed.cpu", "much", f"{POLICY}.minAllowed"),
    (VPA, f"{POLICY}.targetPercentile", "95", f"{POLICY}.targetPercentile"),
    (VPA, f"{POLICY}.targetPercentile", 1.5, f"{POLICY}.targetPercentile"),
    (VPA, f"{POLICY}.safetyMarginFraction", -1, f"{POLICY}.safetyMarginFraction"),
    (VPA, f"{POLICY}.startupBoost.cpu.factor", GONE, f"{POLICY}.startupBoost.cpu.factor"),
    (VPA, f"{POLICY}.controlledValues", "LimitsOnly", f"{POLICY}.controlledValues"),
    (SCOPE, "spec.podSelector.matchExpressions.0.values", [], "spec.podSelector"),
    (SCOPE, "spec.podSelector.matchExpressions.0.operator", "Exists", "spec.podSelector"),
    (SCOPE, "spec.podSelector.matchExpressions.0.operator", "Like", "spec.podSelector"),
    (SCOPE, "spec.podSelector.matchExpressions.0.key", "a b", "spec.podSelector"),
    (SCOPE, "spec.podSelector.matchLabels", {"a b": "x"}, "spec.podSelector"),
    (SCOPE, "spec.podSelector.matchLabels", {"a": "x y"}, "spec.podSelector"),
]
"""A good object, a path in it, the value put there, and the field that the answer has to name."""


def changed(good, path, value):
    """Return a copy of an object with one field set, or taken away."""
    bad = copy.deepcopy(good)
    *steps, last = [part.removesuffix("]") for part in path.replace("[", ".").split(".")]
    node = bad
    for step in steps:
        node = node[int(step)] if isinstance(node, list) else node.setdefault(step, {})
    if value is GONE:
        del node[last]
    else:
        node[last] = value
    return bad
