"""Builders of HPAs as JSON, so that a test names only what matters to it."""

from typing import Any

CPU: dict[str, Any] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
QUEUE: dict[str, Any] = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}


def hpa(metadata: Any = None, status: Any = None, version: Any = "autoscaling/v2", **spec: Any) -> Any:
    built = {
        "apiVersion": version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7", **(metadata or {})},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 5,
            **spec,
        },
    }
    built["spec"] = {name: value for name, value in built["spec"].items() if value is not None}
    return built | ({"status": status} if status is not None else {})


def policy(kind: Any = "Pods", value: Any = 4, period: Any = 15) -> Any:
    return {"type": kind, "value": value, "periodSeconds": period}


def messages(errors: Any) -> Any:
    return [str(error) for error in errors]
