"""Builders with sane defaults, so that a test names only what matters to it."""

from trimtab.cluster.resource import Json, Resource

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", Json)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Json)
DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    Json,
    namespaced=False,
)


def config_map(name: str, *, labels: Json | None = None, **data: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels or {}},
        "data": data,
    }


def pod(name: str, *, labels: Json | None = None, cpu: str = "100m", owner: Json | None = None) -> Json:
    container = {"name": "app", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    meta: Json = {"name": name, "labels": labels or {}}
    if owner is not None:
        meta["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}


def deployment(name: str, *, replicas: int = 2) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "none"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def owner_of(thing: Json, kind: str) -> Json:
    meta = thing["metadata"]
    return {"apiVersion": "v1", "kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}


def gadget_definition(group: str) -> Json:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 0, "default": 3},
                    "colour": {"type": "string", "enum": ["red", "green"]},
                },
            },
            "status": {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "selector": {"type": "string"}},
            },
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.size",
                "labelSelectorPath": ".status.selector",
            },
        },
    }
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
