"""Renew the lab's table of built-in types from a published OpenAPI v2 document of Kubernetes.

    python -m tools.lab_schemas path/to/swagger.json

Only what is API contract is kept: names, types, required fields, list and map kinds, merge keys. Prose is left out.
"""

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src" / "trimtab_lab" / "schemas" / "builtin.json"
SERVED = {
    "": (
        "Namespace Pod Node Service Endpoints ConfigMap Secret ServiceAccount Event LimitRange ResourceQuota "
        "ReplicationController PersistentVolumeClaim Binding"
    ),
    "apps": "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
    "batch": "Job CronJob",
    "autoscaling": "HorizontalPodAutoscaler Scale",
    "policy": "PodDisruptionBudget Eviction",
    "coordination.k8s.io": "Lease",
    "events.k8s.io": "Event",
    "rbac.authorization.k8s.io": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "authentication.k8s.io": "TokenReview SelfSubjectReview",
    "authorization.k8s.io": "SubjectAccessReview SelfSubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    "apiregistration.k8s.io": "APIService",
}
VERSIONS = {"v1", "v2"}
KEPT = (
    "$ref",
    "type",
    "format",
    "items",
    "additionalProperties",
    "required",
    "properties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-group-version-kind",
)


def trim(schema: dict[str, Any]) -> dict[str, Any]:
    """Keep the contract of one schema and drop its prose."""
    kept: dict[str, Any] = {}
    for key in KEPT:
        if key not in schema:
            continue
        value = schema[key]
        if key == "properties":
            value = {name: trim(child) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            value = trim(value)
        elif key == "x-kubernetes-group-version-kind" and len(value) > 1:
            continue  # shared types such as DeleteOptions list every group
        kept[key] = value
    return kept


def references(schema: Any) -> set[str]:
    """Return the names of the definitions that a schema points to."""
    if isinstance(schema, dict):
        found = {str(schema["$ref"]).rsplit("/", 1)[-1]} if isinstance(schema.get("$ref"), str) else set()
        return found.union(*(references(value) for value in schema.values()))
    return set()


def main(path: str) -> None:
    """Write the table."""
    definitions = json.loads(Path(path).read_text(encoding="utf-8"))["definitions"]
    wanted = [
        name
        for name, schema in definitions.items()
        for gvk in schema.get("x-kubernetes-group-version-kind", [])
        if gvk["version"] in VERSIONS and gvk["kind"] in SERVED.get(gvk["group"], "").split()
    ]
    kept: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept[name] = trim(definitions[name])
            wanted.extend(references(kept[name]))
    lines = [f"{json.dumps(name)}: {json.dumps(kept[name], separators=(',', ':'))}" for name in sorted(kept)]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(kept)} types, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
