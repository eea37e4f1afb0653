"""KEDA creates native HPAs on its external metrics; Trimtab serves them in place of the cluster's controller."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.node.neighbours.manifests import named, objects_in, with_our_image
from tests.node.stage import Stage, workload
from tools.node.cluster import NodeCluster
from tools.peers import build

pytestmark = pytest.mark.neighbours

TINY = {"cpu": "5m", "memory": "16Mi"}
SCALED_OBJECT = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"name": "web"},
        "minReplicaCount": 0,
        "maxReplicaCount": 4,
        "pollingInterval": 5,
        "cooldownPeriod": 5,
        "advanced": {
            "horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
        },
        "triggers": [
            {"type": "kubernetes-workload", "metadata": {"podSelector": "app=client", "value": "1"}}
        ],
    },
}
"""As many pods of `web` as there are clients, none without a client."""


@pytest.fixture(scope="module")
def keda(neighbour_cluster: NodeCluster) -> Iterator[Stage]:
    """KEDA's operator and metrics server by its own manifests; no DNS is here, so the address is a flag."""
    stage = Stage(neighbour_cluster, "keda")
    folder = build.sources_of("keda") / "config"
    wanted = (
        "crd/bases/*.yaml",
        "rbac/*.yaml",
        "service_account/*.yaml",
        "manager/*.yaml",
        "metrics-server/*.yaml",
    )
    found = list(objects_in(folder, *wanted))
    operator = named(found, "Deployment", "keda-operator")
    adapter = named(found, "Deployment", "keda-metrics-apiserver")
    others = [each for each in found if each not in (operator, adapter) and each["kind"] != "Namespace"]
    neighbour_cluster.beside.apply(*(each for each in others if each["kind"] != "APIService"))
    neighbour_cluster.beside.apply(*others, with_our_image(operator, "keda"))
    stage.until("KEDA has made its certificates", lambda: stage.get("secret", "kedaorg-certs").get("data"))
    pod = stage.ready_pods("app=keda-operator", 1)[0]
    way = (
        f"--metrics-service-address={pod['status']['podIP']}:9666",
        "--metrics-service-grpc-authority=keda-operator.keda.svc.cluster.local",
    )
    neighbour_cluster.beside.apply(with_our_image(adapter, "keda-adapter", *way))
    stage.ready_pods("app=keda-metrics-apiserver", 1)
    stage.kubectl(
        "wait", "--for=condition=Available", "apiservice/v1beta1.external.metrics.k8s.io", "--timeout=100s"
    )
    yield stage
    for each in others:
        if each["kind"] == "APIService":
            stage.kubectl("delete", "apiservice", each["metadata"]["name"])


def test_trimtab_scales_the_hpa_of_a_scaled_object_and_keda_the_last_pod(
    neighbour_cluster: NodeCluster, keda: Stage
):
    """From one pod on Trimtab decides; to zero and from zero KEDA does, and Trimtab leaves zero alone."""
    shop = Stage(neighbour_cluster, "keda-shop")
    shop.apply(
        workload("Deployment", "web", requests=TINY),
        workload("Deployment", "client", replicas=3, requests=TINY),
    )
    shop.apply(SCALED_OBJECT)
    assert len(shop.ready_pods("app=web", 3)) == 3
    hpa = shop.get("hpa", "keda-hpa-web")
    assert condition(hpa, "ScalingActive") == ("True", "ValidMetricFound")
    assert hpa["metadata"]["ownerReferences"][0]["kind"] == "ScaledObject"
    events = json.loads(shop.kubectl("get", "events", "-o", "json"))["items"]
    assert any(event["reason"] == "SuccessfulRescale" for event in events)
    print("\n" + shop.kubectl("get", "scaledobject,hpa,deployments"))  # noqa: T201 - shown by -s

    shop.kubectl("scale", "deployment", "client", "--replicas=0")
    shop.until("KEDA removes the last pod", lambda: replicas(shop) == 0)
    shop.until(
        "Trimtab leaves zero alone",
        lambda: condition(shop.get("hpa", "keda-hpa-web"), "ScalingActive") == ("False", "ScalingDisabled"),
    )
    shop.kubectl("scale", "deployment", "client", "--replicas=2")
    assert len(shop.ready_pods("app=web", 2)) == 2


def replicas(stage: Stage) -> int:
    """Return how many replicas the workload should have."""
    count: int = stage.get("deployment", "web")["spec"]["replicas"]
    return count


def condition(hpa: dict[str, Any], kind: str) -> tuple[str, str]:
    """Return status and reason of a condition."""
    found = [each for each in hpa["status"].get("conditions", []) if each["type"] == kind]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")
