"""Deployments, their HPAs, and what became of them; no controller makes pods here, so the status is what we say it is."""

import json
from typing import Any

from tests.real.adapter.registered import until
from tools.peers.cluster import RealCluster

Json = dict[str, Any]


def deployment(namespace: str, name: str, replicas: int) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }  # fmt: skip


def hpa(namespace: str, name: str, metric: Json, most: int = 20) -> Json:
    # Down as fast as up, so that both directions are seen within seconds.
    rules = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 50, "periodSeconds": 1}]}
    return {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "minReplicas": 1, "maxReplicas": most, "metrics": [metric],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "behavior": {"scaleDown": rules, "scaleUp": rules},
        },
    }  # fmt: skip


def queue_metric(queue: str, target: Json) -> Json:
    described = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "foo"}
    metric = {"name": "queue_length", "selector": {"matchLabels": {"queue": queue}}}
    return {"type": "Object", "object": {"describedObject": described, "metric": metric, "target": target}}


def replicas(cluster: RealCluster, namespace: str, name: str) -> int:
    """Return how many replicas a Deployment is asked to have."""
    return int(
        cluster.kubectl("get", f"deployment/{name}", "-n", namespace, "-o", "jsonpath={.spec.replicas}")
    )


def settles(cluster: RealCluster, namespace: str, name: str, want: int) -> bool:
    """Wait until an autoscaler has brought a Deployment to a number of replicas."""
    return bool(until(f"{name} at {want} replicas", lambda: replicas(cluster, namespace, name) == want))


def report(cluster: RealCluster, namespace: str, name: str, count: int) -> None:
    """Say that a Deployment has so many replicas."""
    patch = json.dumps({"status": {"replicas": count, "readyReplicas": count, "observedGeneration": 1}})
    where = (f"deployment/{name}", "-n", namespace)
    cluster.kubectl("patch", *where, "--subresource=status", "--type=merge", "-p", patch)
