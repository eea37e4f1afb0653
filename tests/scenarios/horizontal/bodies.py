"""Objects for horizontal scenarios, with sane defaults."""

from trimtab.cluster.resource import Json


def pod_spec(cpu: str | None) -> Json:
    resources = {"requests": {"cpu": cpu, "memory": "100Mi"}} if cpu else {}
    return {"containers": [{"name": "app", "image": "none", "resources": resources}]}


def owner_of(api_version: str, kind: str, thing: Json) -> Json:
    meta = thing["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }


def workload(name: str, replicas: int, labels: Json, cpu: str | None, owner: Json | None = None) -> Json:
    return {
        "metadata": {"name": name, "ownerReferences": [owner] if owner else []},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(cpu)},
        },
    }


def stateful_set(name: str, replicas: int) -> Json:
    body = workload(name, replicas, {"app": name}, "100m")
    return {**body, "spec": body["spec"] | {"serviceName": name}}


def cpu_metric(percent: int) -> Json:
    return _resource_metric("cpu", percent)


def memory_metric(percent: int) -> Json:
    return _resource_metric("memory", percent)


def _resource_metric(name: str, percent: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def target_of(average: str | None, value: str | None) -> Json:
    if average is not None:
        return {"type": "AverageValue", "averageValue": average}
    return {"type": "Value", "value": value}


def _metric(name: str, labels: dict[str, str]) -> Json:
    return {"name": name, "selector": {"matchLabels": labels}} if labels else {"name": name}


def external_metric(
    name: str, *, average: str | None = None, value: str | None = None, **labels: str
) -> Json:
    return {
        "type": "External",
        "external": {"metric": _metric(name, labels), "target": target_of(average, value)},
    }


def object_metric(
    name: str,
    described: tuple[str, str, str] = ("v1", "Service", "front"),
    *,
    average: str | None = None,
    value: str | None = None,
    **labels: str,
) -> Json:
    api_version, kind, called = described
    return {
        "type": "Object",
        "object": {
            "describedObject": {"apiVersion": api_version, "kind": kind, "name": called},
            "metric": _metric(name, labels),
            "target": target_of(average, value),
        },
    }


def pods_metric(name: str, average: str, **labels: str) -> Json:
    return {
        "type": "Pods",
        "pods": {"metric": _metric(name, labels), "target": target_of(average, None)},
    }


NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def tolerances(up: str | None = None, down: str | None = None, window: int = 0) -> Json:
    """Return a behavior with these tolerances; scaling down waits for `window` seconds."""
    scale_down: Json = {"stabilizationWindowSeconds": window}
    if down is not None:
        scale_down["tolerance"] = down
    return {"scaleDown": scale_down, **({"scaleUp": {"tolerance": up}} if up is not None else {})}
