"""A real API server takes our definitions, and judges objects by them as `trimtab validate` does."""

import copy
import json
from pathlib import Path

import pytest
import yaml

from tools.peers.cluster import RealCluster
from trimtab.model.crds import all_crds
from trimtab.model.gates import FeatureGates
from trimtab.model.manifest import read_manifest

pytestmark = pytest.mark.real

OURS = {"autoscaling.trimtab.dev/v2", "autoscaling.k8s.io/v1"}
GATES = FeatureGates.parse("AllAlpha=true")


@pytest.fixture(scope="module")
def server(real_cluster: RealCluster):
    definitions = {"apiVersion": "v1", "kind": "List", "items": all_crds()}
    real_cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(definitions))
    names = [f"crd/{crd['metadata']['name']}" for crd in all_crds()]
    real_cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    for namespace in ("logging", "search"):
        real_cluster.kubectl("create", "namespace", namespace, check=False)
    return real_cluster


def create(server, *objects):
    items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return server.kubectl(
        "create",
        "--validate=false",
        "--dry-run=server",
        "-o",
        "name",
        "-f",
        "-",
        stdin=json.dumps(items),
        check=False,
    )


HPA = {
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
    "apiVersion": "autoscaling.k8s.io/v1",
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
    "apiVersion": "autoscaling.k8s.io/v1",
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


def test_the_whole_objects_are_accepted(server):
    assert all(not read_manifest(one, GATES).errors for one in (HPA, VPA, SCOPE))
    assert create(server, HPA, VPA, SCOPE).split() == [
        "horizontalpodautoscaler.autoscaling.trimtab.dev/web",
        "verticalpodautoscaler.autoscaling.k8s.io/db",
        "vpascope.autoscaling.k8s.io/leader",
    ]


@pytest.mark.parametrize("path", sorted(Path("examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_accepted(server, path):
    objects = [one for one in yaml.safe_load_all(path.read_text()) if one["apiVersion"] in OURS]
    answer = create(server, *objects)
    assert len(answer.split()) == len(objects), answer


def test_the_default_is_one_replica_at_least(server):
    absent = changed(HPA, "spec.minReplicas", GONE)
    text = server.kubectl(
        "create",
        "--dry-run=server",
        "-o",
        "jsonpath={.spec.minReplicas}",
        "-f",
        "-",
        stdin=json.dumps(absent),
    )
    assert text == "1"


@pytest.mark.parametrize(
    ("good", "path", "value", "field"),
    [
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
    ],
)
def test_both_refuse_the_same_and_name_the_field(server, good, path, value, field):
    bad = changed(good, path, value)
    answer = create(server, bad)
    assert "is invalid" in answer
    assert field in answer
    assert any(error.field.startswith(field) for error in read_manifest(bad, GATES).errors)


def test_zero_replicas_need_a_metric_that_is_there_without_pods(server):
    bad = changed(changed(HPA, "spec.minReplicas", 0), "spec.metrics", HPA["spec"]["metrics"][1:])
    assert "spec.metrics: Forbidden: must specify at least one Object or External metric" in create(
        server, bad
    )
    assert "created" not in create(server, bad)


def test_two_spellings_with_two_values_are_refused(server):
    bad = changed(HPA, "spec.SelectionStrategy", "LabelSelector")
    assert "is given in two spellings" in create(server, bad)


def test_status_is_written_apart_and_an_empty_metric_in_it_is_kept(server):
    server.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(HPA))
    status = {
        "currentReplicas": 1,
        "desiredReplicas": 2,
        "currentMetrics": [
            {"type": ""},
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}},
        ],
        "conditions": [
            {"type": "ScalingActive", "status": "True", "lastTransitionTime": "2026-01-15T12:00:00Z"}
        ],
    }
    patch = json.dumps({"status": status, "spec": {"maxReplicas": 50}})
    server.kubectl("patch", "thpa", "web", "--subresource=status", "--type=merge", "-p", patch)
    seen = json.loads(server.kubectl("get", "thpa", "web", "-o", "json"))
    row = server.kubectl("get", "thpa", "web").splitlines()[1].split()
    server.kubectl("delete", "thpa", "web")
    assert seen["status"] == status
    assert seen["spec"]["maxReplicas"] == 5
    assert row[:8] == ["web", "Deployment", "web", "7", "1", "5", "1", "2"]


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
