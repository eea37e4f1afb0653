"""Builders of HPAs as JSON, so that a test names only what matters to it."""

CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}


def hpa(metadata=None, status=None, version="autoscaling/v2", **spec):
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


def policy(kind="Pods", value=4, period=15):
    return {"type": kind, "value": value, "periodSeconds": period}


def messages(errors):
    return [str(error) for error in errors]
