"""Requests spoilt at random, from a seed: a good object with something in it replaced, sent in one of many ways."""

import json
import random
from dataclasses import dataclass
from typing import Any

from tests.lab.scripts.builders import config_map, deployment, hpa, pod
from tests.unit.model.crds.objects import HPA, SCOPE, VPA

JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**40,
    1.5,
    "",
    "x",
    "é",
    "a" * 300,
    [],
    [None],
    ["a"],
    {},
    {"a": None},
    {"name": "x"},
    [{}],
)
NAMESPACE = "namespaces/{ns}"
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": True}
BUILT_IN: tuple[tuple[str, dict[str, Any]], ...] = (
    (f"/api/v1/{NAMESPACE}/pods", pod("a")),
    (
        f"/api/v1/{NAMESPACE}/configmaps",
        {**config_map("a", x="1"), "metadata": {"name": "a", "ownerReferences": [OWNER]}},
    ),
    (f"/api/v1/{NAMESPACE}/services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}),
    (
        f"/api/v1/{NAMESPACE}/events",
        {
            "metadata": {"name": "a"},
            "involvedObject": {"name": "p", "namespace": "{ns}"},
            "lastTimestamp": "2026-01-01T00:00:00Z",
        },
    ),
    (f"/apis/apps/v1/{NAMESPACE}/deployments", deployment("a", replicas=1)),
    (f"/apis/apps/v1/{NAMESPACE}/statefulsets", {**deployment("a", serviceName="s"), "kind": "StatefulSet"}),
    (f"/apis/batch/v1/{NAMESPACE}/jobs", {"metadata": {"name": "a"}, "spec": JOB}),
    (
        f"/apis/batch/v1/{NAMESPACE}/cronjobs",
        {"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}},
    ),
    (
        f"/apis/autoscaling/v2/{NAMESPACE}/horizontalpodautoscalers",
        hpa("a", behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}),
    ),
    (
        f"/apis/policy/v1/{NAMESPACE}/poddisruptionbudgets",
        {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {}}},
    ),
    (
        f"/apis/coordination.k8s.io/v1/{NAMESPACE}/leases",
        {"metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": 5}},
    ),
    (
        f"/apis/rbac.authorization.k8s.io/v1/{NAMESPACE}/roles",
        {"metadata": {"name": "a"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
    ),
)
OWN: tuple[tuple[str, dict[str, Any]], ...] = tuple(
    (f"/apis/{obj['apiVersion']}/{NAMESPACE}/{plural}", {**obj, "metadata": {"name": "a"}})
    for plural, obj in (
        ("horizontalpodautoscalers", HPA),
        ("verticalpodautoscalers", VPA),
        ("vpascopes", SCOPE),
    )
)
"""Objects of the definitions that we bring along."""
MEDIA = (
    "application/json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


def spoil(obj: Any, chance: random.Random) -> Any:
    """Replace something somewhere."""
    spoilt = json.loads(json.dumps(obj))
    node = spoilt
    while isinstance(node, dict) and node:
        name = chance.choice(sorted(node))
        inner = node[name][0] if isinstance(node[name], list) and node[name] else node[name]
        if not isinstance(inner, dict) or chance.random() < 0.3:
            node[name] = json.loads(json.dumps(chance.choice(JUNK)))
            break
        node = inner
    return spoilt


@dataclass(frozen=True)
class Spoilt:
    """One request; `{ns}` in its path stands for a namespace where each object exists under the name `a`."""

    method: str
    path: str
    media: str
    body: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.media} {self.body.decode()}"


def spoilt_request(
    chance: random.Random, number: int, objects: tuple[tuple[str, dict[str, Any]], ...] = BUILT_IN
) -> Spoilt:
    """Return a request; `number` makes the name of what it would create."""
    path, obj = chance.choice(objects)
    spoilt = spoil(obj, chance)
    media = chance.choice(MEDIA)
    method = "PATCH" if "patch" in media else chance.choice(("POST", "PUT"))
    part = chance.choice(("", "", "/status", "/scale")) if method == "PATCH" else ""
    if method == "POST" and isinstance(spoilt.get("metadata"), dict):
        spoilt["metadata"]["name"] = f"n{number}"
    return Spoilt(method, path if method == "POST" else f"{path}/a{part}", media, json.dumps(spoilt).encode())
