"""Objects spoilt at random: whatever is sent, the server answers, and never with a failure of its own."""

import json
import random
from typing import Any

import pytest

from tests.lab.scripts.builders import config_map, deployment, hpa, pod
from tests.unit.lab.api import running

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
DEFAULT = "namespaces/default"
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": True}
OBJECTS = (
    (f"/api/v1/{DEFAULT}/pods", pod("a")),
    (
        f"/api/v1/{DEFAULT}/configmaps",
        {**config_map("a", x="1"), "metadata": {"name": "a", "ownerReferences": [OWNER]}},
    ),
    (f"/api/v1/{DEFAULT}/services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}),
    (
        f"/api/v1/{DEFAULT}/events",
        {"metadata": {"name": "a"}, "involvedObject": {"name": "p"}, "lastTimestamp": "2026-01-01T00:00:00Z"},
    ),
    (f"/apis/apps/v1/{DEFAULT}/deployments", deployment("a", replicas=1)),
    (f"/apis/apps/v1/{DEFAULT}/statefulsets", {**deployment("a", serviceName="s"), "kind": "StatefulSet"}),
    (f"/apis/batch/v1/{DEFAULT}/jobs", {"metadata": {"name": "a"}, "spec": JOB}),
    (
        f"/apis/batch/v1/{DEFAULT}/cronjobs",
        {"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}},
    ),
    (
        f"/apis/autoscaling/v2/{DEFAULT}/horizontalpodautoscalers",
        hpa("a", behavior={"scaleUp": {"policies": []}}),
    ),
    (
        f"/apis/policy/v1/{DEFAULT}/poddisruptionbudgets",
        {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {}}},
    ),
    (
        f"/apis/coordination.k8s.io/v1/{DEFAULT}/leases",
        {"metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": 5}},
    ),
    (
        f"/apis/rbac.authorization.k8s.io/v1/{DEFAULT}/roles",
        {"metadata": {"name": "a"}, "rules": [{"verbs": ["get"]}]},
    ),
)
MEDIA = (
    "application/json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


def spoil(obj, chance):
    """Replace, remove or add something somewhere."""
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


async def send(api, chance, number):
    path, obj = chance.choice(OBJECTS)
    spoilt = spoil(obj, chance)
    media = chance.choice(MEDIA)
    method = "PATCH" if "patch" in media else chance.choice(("POST", "PUT"))
    part = chance.choice(("", "", "/status", "/scale")) if method == "PATCH" else ""
    place = path if method == "POST" else f"{path}/a{part}"
    if method == "POST" and isinstance(spoilt.get("metadata"), dict):
        spoilt["metadata"]["name"] = f"n{number}"
    headers = {
        "authorization": f"Bearer {api.server.tokens.admin}",
        "content-type": media,
        "accept": "application/json",
    }
    query = "fieldManager=x&force=true"
    return await api.server.request(method, place, query, headers, json.dumps(spoilt).encode()), spoilt


@pytest.mark.parametrize("seed", range(4))
async def test_a_spoilt_object_is_refused_or_stored_but_never_breaks_the_server(seed):
    chance = random.Random(seed)
    async with running() as api:
        for path, obj in OBJECTS[:-1]:
            await api.create(path, obj)
        for number in range(250):
            response, spoilt = await send(api, chance, number)
            assert response.status < 500, f"{spoilt}: {response.body!r}"
            await api.settle()
        for path, _ in OBJECTS:
            table = {
                "authorization": f"Bearer {api.server.tokens.admin}",
                "accept": "application/json;as=Table;g=meta.k8s.io;v=v1",
            }
            assert (await api.server.request("GET", path, "", table)).status == 200
