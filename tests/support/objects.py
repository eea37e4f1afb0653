"""Objects as API JSON, with sane defaults, so that a test names only what matters to it."""

from collections.abc import Mapping
from typing import Any

from trimtab.cluster.resource import Json, Resource

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", Json, namespaced=False)
CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", Json, False
)
SMALL = {"cpu": "100m", "memory": "50Mi"}


def pod_spec(requests: Json | None = None, limits: Json | None = None) -> Json:
    """Return the spec of a pod with one container; None requests little, an empty mapping nothing."""
    resources = {
        "requests": SMALL if requests is None else requests,
        **({"limits": limits} if limits else {}),
    }
    return {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "app", "image": "none", "resources": resources}],
    }


def pod(name: str, *, spec: Json | None = None, owners: list[Json] | None = None, **metadata: Any) -> Json:
    meta = {"name": name, "ownerReferences": owners or [], **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec or pod_spec()}


def owner_of(api_version: str, kind: str, owner: Json) -> Json:
    """Return the reference of an object to its controller."""
    meta = owner["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }


def target_of(kind: str, name: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name}


def workload(
    kind: str,
    name: str,
    replicas: int | None = 1,
    *,
    selector: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Json | None = None,
    owners: list[Json] | None = None,
) -> Json:
    """Return a workload whose pods have the labels of its selector and more."""
    match = selector or {"app": name}
    template = {
        "metadata": {"labels": {**match, **(labels or {})}, "annotations": annotations or {}},
        "spec": spec or pod_spec(),
    }
    body: Json = {"selector": {"matchLabels": match}, "template": template}
    body |= {"serviceName": name} if kind == "StatefulSet" else {}
    body |= {"replicas": replicas} if kind != "DaemonSet" else {}
    return {
        **target_of(kind, name),
        "metadata": {"name": name, "ownerReferences": owners or []},
        "spec": body,
    }


def deployment(name: str, replicas: int = 1, **fields: Any) -> Json:
    return workload("Deployment", name, replicas, **fields)


def statefulset(name: str, replicas: int = 1, **fields: Any) -> Json:
    return workload("StatefulSet", name, replicas, **fields)


def hpa(
    name: str,
    *,
    on: Json | None = None,
    api_version: str = "autoscaling/v2",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """Return an HPA of the Deployment of its name, or of another target."""
    return {
        "apiVersion": api_version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"scaleTargetRef": on or target_of("Deployment", name), "maxReplicas": 10, **spec},
    }


def vpa(
    name: str, *, on: Json | None = None, mode: str = "Off", policy: Json | None = None, **spec: Any
) -> Json:
    """Return a VPA of the StatefulSet of its name, or of another target."""
    return {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "targetRef": on or target_of("StatefulSet", name),
            "updatePolicy": {"updateMode": mode, **(policy or {})},
            **spec,
        },
    }


def scope(name: str, *, pods: Json | None = None, nodes: Json | None = None) -> Json:
    """Return a VPAScope of pods and nodes with these labels."""
    selectors = {"podSelector": pods, "nodeSelector": nodes}
    return {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VPAScope",
        "metadata": {"name": name},
        "spec": {key: {"matchLabels": labels} for key, labels in selectors.items() if labels is not None},
    }


def cpu_metric(percent: int) -> Json:
    return _resource_metric("cpu", percent)


def memory_metric(percent: int) -> Json:
    return _resource_metric("memory", percent)


def _resource_metric(name: str, percent: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def metric_target(average: str | None, value: str | None) -> Json:
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
        "external": {"metric": _metric(name, labels), "target": metric_target(average, value)},
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
            "target": metric_target(average, value),
        },
    }


def pods_metric(name: str, average: str, **labels: str) -> Json:
    return {
        "type": "Pods",
        "pods": {"metric": _metric(name, labels), "target": metric_target(average, None)},
    }


NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def tolerances(up: str | None = None, down: str | None = None, window: int = 0) -> Json:
    """Return a behavior with these tolerances; scaling down waits for `window` seconds."""
    scale_down: Json = {"stabilizationWindowSeconds": window}
    if down is not None:
        scale_down["tolerance"] = down
    return {"scaleDown": scale_down, **({"scaleUp": {"tolerance": up}} if up is not None else {})}
