"""A list of 10,000 pods with and without managedFields: bytes, and CPU of the lab's server and of the cache."""

import asyncio
import json
import time
from urllib.parse import urlencode

from bench import Rows
from trimtab.clock import SystemClock
from trimtab.cluster.client import PAGE_SIZE, WITHOUT_MANAGED_FIELDS
from trimtab.cluster.codec.objects import decode_page
from trimtab.operator.pods.decoder import PodDecoder
from trimtab.operator.pods.wire import PodWire
from trimtab_lab.apiserver.server import Server

PODS = 10_000
ROUNDS = 3
_PATH = "/api/v1/namespaces/default/pods"
_STARTED = "2026-01-01T00:00:00Z"
_FORMS = {"whole": "application/json", "without managedFields": WITHOUT_MANAGED_FIELDS["Accept"]}


def run() -> Rows:
    """Create the pods as a controller and a kubelet do, and list them in both forms by turns."""
    return asyncio.run(_measure())


async def _measure() -> Rows:
    async with Server(SystemClock()) as server:
        for number in range(PODS):
            await _create(server, f"web-7d4b9c6f5-{number:05}")
        figures = {form: await _list(server, accept) for form, accept in _FORMS.items()}
        for _ in range(ROUNDS - 1):
            for form, accept in _FORMS.items():
                figures[form] = tuple(map(min, figures[form], await _list(server, accept)))
    whole = figures["whole"]
    return [
        {
            "list": form,
            "MB": f"{found[0] / 1e6:.1f}",
            "server CPU ms": f"{found[1] * 1e3:.0f}",
            "cache CPU ms": f"{found[2] * 1e3:.0f}",
            "bytes, ratio": f"{found[0] / whole[0]:.2f}",
            "cache CPU, ratio": f"{found[2] / whole[2]:.2f}",
        }
        for form, found in figures.items()
    ]


async def _list(server: Server, accept: str) -> tuple[float, ...]:
    """Return bytes, the server's CPU seconds, and those of decoding and reducing the pods."""
    headers = {"authorization": f"Bearer {server.tokens.admin}", "accept": accept}
    reduce = PodDecoder(pod_level_resources=True)
    size, token = 0, ""
    serving = caching = 0.0
    while True:
        query = urlencode({"limit": PAGE_SIZE, **({"continue": token} if token else {})})
        began = time.process_time()
        body = (await server.request("GET", _PATH, query, headers)).body
        served = time.process_time()
        page = decode_page("listing pods", body, PodWire)
        for pod in page.items:
            reduce(pod)
        caching += time.process_time() - served
        serving += served - began
        size += len(body)
        token = page.continue_token
        if not token:
            return size, serving, caching


async def _create(server: Server, name: str) -> None:
    await _send(server, "POST", _PATH, "kube-controller-manager", "application/json", _pod(name))
    patch, path = "application/strategic-merge-patch+json", f"{_PATH}/{name}/status"
    await _send(server, "PATCH", path, "kubelet", patch, {"status": _status(name)})


async def _send(server: Server, method: str, path: str, manager: str, media: str, body: object) -> None:
    headers = {
        "authorization": f"Bearer {server.tokens.admin}",
        "content-type": media,
        "user-agent": f"{manager}/v1.37.1",
    }
    response = await server.request(method, path, "", headers, json.dumps(body).encode())
    assert response.status < 300, response.body


def _pod(name: str) -> object:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-7d4b9c6f5",
        "uid": "0b9f8f6e-2f57-4b7e-9d7c-6f2f0e6f7a11",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
    container = {
        "name": "main",
        "image": "shop/app:1.2.3",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": f"SETTING_{number}", "value": "value"} for number in range(4)],
        "resources": resources,
        "readinessProbe": probe,
        "livenessProbe": probe,
    }
    labels = {"app": "web", "pod-template-hash": "7d4b9c6f5"}
    meta = {"name": name, "labels": labels, "ownerReferences": [owner]}
    return {"metadata": meta, "spec": {"containers": [container], "nodeName": "node-1"}}


def _status(name: str) -> object:
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _STARTED}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    container = {
        "name": "main",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": "shop/app:1.2.3",
        "imageID": "shop/app@sha256:" + "0" * 64,
        "containerID": f"containerd://{abs(hash(name)):064x}",
        "state": {"running": {"startedAt": _STARTED}},
    }
    return {
        "phase": "Running",
        "startTime": _STARTED,
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.7",
        "podIPs": [{"ip": "10.1.0.7"}],
        "qosClass": "Burstable",
        "conditions": conditions,
        "containerStatuses": [container],
    }
