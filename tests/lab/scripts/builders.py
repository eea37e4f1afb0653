"""Paths and objects that the scripts share."""

from typing import Any

CORE = "/api/v1/namespaces/{ns}"
APPS = "/apis/apps/v1/namespaces/{ns}"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}], **spec},
    }


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def hpa(name: str, **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec},
    }


CM = f"{CORE}/configmaps"
DEPLOY = f"{APPS}/deployments"
AUTOSCALING = "/apis/autoscaling/{v}/namespaces/{{ns}}/horizontalpodautoscalers"
V1, V2 = AUTOSCALING.format(v="v1"), AUTOSCALING.format(v="v2")
RBAC_PATH = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}"
