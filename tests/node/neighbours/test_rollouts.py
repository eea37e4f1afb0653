"""HPAs scale a Rollout of Argo Rollouts by its scale, on CPU that a real kubelet measures, and count only its own pods."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.node.neighbours.conftest import NATIVE
from tests.node.neighbours.manifests import named, objects_in, with_our_image
from tests.node.stage import Stage, template
from tools.node.cluster import NodeCluster
from tools.peers import build
from tools.peers.cluster import free_port

pytestmark = pytest.mark.neighbours

API = "argoproj.io/v1alpha1"
RIGHT = "scalable=[{group: argoproj.io, resource: rollouts}]"
"""The value of the installation without which Rollouts are out of reach."""
BUSY = template("web", cpu=300, requests={"cpu": "200m", "memory": "32Mi"})
IDLE = template("web", cpu=1, requests={"cpu": "1", "memory": "32Mi"})
OTHER = {**IDLE, "metadata": {"labels": {"app": "web", "role": "other"}}}
"""With such a pod in the average a single busy pod uses 25 % of what is requested."""
OWN = "app=web,role!=other"
SPEC: dict[str, Any] = {
    "scaleTargetRef": {"apiVersion": API, "kind": "Rollout", "name": "web"},
    "minReplicas": 1,
    "maxReplicas": 2,
    "metrics": [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
        }
    ],
    "behavior": {"scaleDown": {"stabilizationWindowSeconds": 15}},
}
NATIVE_HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {
        "name": "web",
        "annotations": {"autoscaling.trimtab.dev/selection-strategy": "OwnerReference"},
    },
    "spec": SPEC,
}
OUR_HPA = {
    "apiVersion": "autoscaling.trimtab.dev/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {**SPEC, "selectionStrategy": "OwnerReference"},
}


@pytest.fixture(scope="module")
def rollouts(neighbour_cluster: NodeCluster) -> NodeCluster:
    """The controller of Argo Rollouts in a pod, by its own manifest."""
    stage = Stage(neighbour_cluster, "argo-rollouts")
    found = list(objects_in(build.sources_of("argo-rollouts") / "manifests", "install.yaml"))
    controller = named(found, "Deployment", "argo-rollouts")
    others = [each for each in found if each is not controller]
    neighbour_cluster.beside.apply(*(each for each in others if each["kind"] == "CustomResourceDefinition"))
    stage.apply(*(each for each in others if each["kind"] != "CustomResourceDefinition"))
    stage.apply(with_our_image(controller, "argo-rollouts"))
    stage.ready_pods("app.kubernetes.io/name=argo-rollouts", 1)
    return neighbour_cluster


@pytest.fixture
def plain_installation(rollouts: NodeCluster) -> Iterator[NodeCluster]:
    """Trimtab as it is installed without any value: for its own HPAs, with rights to the built-in kinds."""
    beside = rollouts.beside
    beside.stop("horizontal")
    beside.start_trimtab(programs=["horizontal"])
    yield rollouts
    beside.stop("horizontal")
    beside.start_trimtab(NATIVE, programs=["horizontal"])


def test_a_native_hpa_scales_a_rollout_by_its_own_pods(rollouts: NodeCluster):
    """In place of the cluster's controller Trimtab may scale every kind. A pod without an owner has the labels, too."""
    shop = Stage(rollouts, "native-rollout")
    stray = {**OTHER, "apiVersion": "v1", "kind": "Pod", "metadata": {**OTHER["metadata"], "name": "other"}}
    shop.apply(rollout("web", BUSY), stray, NATIVE_HPA)
    scales_up_and_down(shop)
    hpa = shop.get("hpa.autoscaling", "web")
    assert condition(hpa, "ScalingActive")["reason"] == "ValidMetricFound"
    assert shop.get("pod", "other")["status"]["phase"] == "Running"


def test_a_missing_right_is_named_until_it_is_given(plain_installation: NodeCluster):
    """Condition, log and `trimtab install` name the value. Then a Rollout with the same labels is not counted."""
    shop = Stage(plain_installation, "our-rollout")
    shop.apply(rollout("web", BUSY), rollout("other", OTHER), OUR_HPA)
    failed = shop.until("the HPA says what is missing", lambda: failed_scale(shop.get("thpa", "web")))
    assert 'cannot get resource "rollouts/scale" in API group "argoproj.io"' in failed
    assert failed.endswith(f"install with {RIGHT}")
    assert f"install with {RIGHT}" in (plain_installation.beside.directory / "horizontal.log").read_text()
    install = [sys.executable, "-m", "trimtab", "install"]
    assert RIGHT in subprocess.run(install, capture_output=True, text=True, check=True).stderr

    plain_installation.beside.install([RIGHT], free_port())
    (other,) = shop.ready_pods("role=other", 1)
    explained = scales_up_and_down(shop)
    assert "pods: 2 counted by OwnerReference, 1 left out" in explained
    assert f"{other['metadata']['name']}: it belongs to ReplicaSet/other-" in explained
    assert condition(shop.get("thpa", "web"), "AbleToScale")["status"] == "True"


def scales_up_and_down(shop: Stage) -> str:
    """See the Rollout with two busy pods, then with one that is idle; return what explains the two."""
    pods = shop.ready_pods(OWN, 2)
    (owner,) = {pod["metadata"]["ownerReferences"][0]["name"] for pod in pods}
    assert shop.get("replicaset", owner)["metadata"]["ownerReferences"][0]["kind"] == "Rollout"
    explained = shop.explain("hpa", "web")
    print("\n" + shop.kubectl("get", "rollouts,replicasets,pods,hpa,thpa") + explained)  # noqa: T201 - shown by -s
    for pod in pods:
        shop.ask(pod, "/cpu?m=1")
    assert len(shop.ready_pods(OWN, 1)) == 1
    assert shop.get("rollout", "web")["spec"]["replicas"] == 1
    return explained


def rollout(name: str, pod: dict[str, Any]) -> dict[str, Any]:
    """Return a Rollout of one pod, whose new versions replace the old at once."""
    spec = {"selector": {"matchLabels": pod["metadata"]["labels"]}, "template": pod, "replicas": 1}
    strategy: dict[str, Any] = {"strategy": {"canary": {}}}
    return {"apiVersion": API, "kind": "Rollout", "metadata": {"name": name}, "spec": spec | strategy}


def condition(hpa: dict[str, Any], kind: str) -> dict[str, str]:
    """Return a condition of an HPA, or an empty one."""
    found = [each for each in hpa.get("status", {}).get("conditions", []) if each["type"] == kind]
    return found[0] if found else {}


def failed_scale(hpa: dict[str, Any]) -> str:
    """Return why the scale of the target cannot be read, or nothing if it can or was not yet."""
    found = condition(hpa, "AbleToScale")
    return found["message"] if found.get("reason") == "FailedGetScale" else ""
