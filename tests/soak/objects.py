"""The manifests that come and go in a soak: workloads, HPAs of both kinds, VPAs, scopes, and pods without a workload."""

from typing import Any

Json = dict[str, Any]
OWN = "autoscaling.trimtab.dev/v2"
NATIVE = "autoscaling/v2"


def namespace(name: str) -> Json:
    """Return a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def workload(kind: str, name: str, home: str, replicas: int) -> Json:
    """Return a Deployment or a StatefulSet whose pods request little."""
    labels = {"app": name}
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _pod_spec()},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": home},
        "spec": spec,
    }


def orphan(name: str, home: str) -> Json:
    """Return a pod whose controller is of a kind that the cluster does not serve."""
    owner = {
        "apiVersion": "foreign.example/v1",
        "kind": "Batch",
        "name": f"{name}-owner",
        "uid": f"uid-{home}-{name}",
        "controller": True,
    }
    meta = {"name": name, "namespace": home, "labels": {"app": name}, "ownerReferences": [owner]}
    note = "x" * 512
    meta["annotations"] = {f"soak.example/{name}": note}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _pod_spec()}


def _pod_spec() -> Json:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "app", "image": "none", "resources": resources}],
    }


def hpa(version: str, name: str, home: str, metric: Json) -> Json:
    """Return an HPA of the Deployment with its name."""
    return {
        "apiVersion": version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": home},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [metric],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
        },
    }


CPU: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


def external(metric: str) -> Json:
    """Return an external metric with a name of its own."""
    return {
        "type": "External",
        "external": {"metric": {"name": metric}, "target": {"type": "AverageValue", "averageValue": "10"}},
    }


def vpa(name: str, home: str, target: tuple[str, str], scope: str = "") -> Json:
    """Return a VPA that resizes in place where it can."""
    kind, workload_name = target
    spec: Json = {
        "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": workload_name},
        "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1},
    }
    if scope:
        spec["vpaScope"] = {"name": scope}
    return {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name, "namespace": home},
        "spec": spec,
    }


def scope(name: str, home: str) -> Json:
    """Return a scope of the pods that lead."""
    return {
        "apiVersion": "autoscaling.trimtab.dev/v1",
        "kind": "VPAScope",
        "metadata": {"name": name, "namespace": home},
        "spec": {"podSelector": {"matchLabels": {"role": "leader"}}},
    }


def round_objects(number: int) -> list[Json]:
    """Return the objects of one round. Every name is used once only."""
    home = f"soak-{number}"
    web, jobs, app, db = (f"{name}-{number}" for name in ("web", "jobs", "app", "db"))
    return [
        namespace(home),
        workload("Deployment", web, home, 2),
        hpa(OWN, web, home, CPU),
        workload("Deployment", jobs, home, 1),
        hpa(NATIVE, jobs, home, external(f"queue-{number}")),
        workload("Deployment", app, home, 2),
        vpa(app, home, ("Deployment", app)),
        workload("StatefulSet", db, home, 2),
        scope(f"leader-{number}", home),
        vpa(f"{db}-all", home, ("StatefulSet", db)),
        vpa(f"{db}-leader", home, ("StatefulSet", db), f"leader-{number}"),
        orphan(f"orphan-{number}", home),
    ]


def standing_objects() -> list[Json]:
    """Return the objects that stay for the whole soak."""
    home = "soak-stays"
    return [
        namespace(home),
        workload("Deployment", "stay-web", home, 2),
        hpa(OWN, "stay-web", home, CPU),
        workload("Deployment", "stay-native", home, 2),
        hpa(NATIVE, "stay-native", home, CPU),
        workload("StatefulSet", "stay-db", home, 3),
        scope("leader", home),
        vpa("stay-db", home, ("StatefulSet", "stay-db")),
        vpa("stay-leader", home, ("StatefulSet", "stay-db"), "leader"),
    ]
