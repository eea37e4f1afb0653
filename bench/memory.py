"""Memory of `trimtab run`: MiB by stage and bytes per pod, beside a stand-in server that makes its objects up.

`PODS` in the environment chooses how many pods (default 10,000 and 100,000), `EACH` how many belong to one HPA. The
stand-in answers lists in pages, keeps watches open, serves usage that moves by ±5 % and takes writes, so that the
program under measurement is the whole one, with its transport; the server's own cost is not in any figure.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from bench import Row, Rows
from tools.peers.cluster import free_port
from trimtab.clock import SystemClock
from trimtab.model.times import format_time
from trimtab.serving.server import served

Json = dict[str, Any]
Send = Callable[[Json], Awaitable[None]]

SIZES = [int(text) for text in os.environ.get("PODS", "10000,100000").split(",")]
EACH = int(os.environ.get("EACH", "10"))
NAMESPACES = int(os.environ.get("SPACES", "100"))
ROUNDS = int(os.environ.get("ROUNDS", "25"))
"""Rounds that are gone through; after 20 the ring of records of every HPA is full."""
PERIOD = os.environ.get("PERIOD", "5")
STARTED = "2026-01-01T00:00:00Z"
VERSION = 1_000_000_000


def run() -> Rows:
    """Measure every size in a process of its own."""
    return [row for pods in SIZES for row in asyncio.run(_measure(pods))]


async def _measure(pods: int) -> Rows:
    standin = StandIn(max(pods // EACH, 1))
    async with served(standin, "127.0.0.1", 0) as port:
        with tempfile.TemporaryDirectory(prefix="trimtab-memory-") as directory:
            kubeconfig = Path(directory) / "kubeconfig"
            kubeconfig.write_text(json.dumps(_kubeconfig(port)))
            return await _watch(standin, kubeconfig, pods)


async def _watch(standin: "StandIn", kubeconfig: Path, pods: int) -> Rows:
    port = free_port()
    command = [
        sys.executable, "-m", "trimtab", "run", "--native-hpas", "--no-own-hpas", "--no-leader-elect",
        f"--port={port}", f"--kubeconfig={kubeconfig}", f"--horizontal-pod-autoscaler-sync-period={PERIOD}s",
    ]  # fmt: skip
    began = time.monotonic()
    with (kubeconfig.parent / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)  # noqa: ASYNC220 - starting it is quick
    rows: list[Row] = []

    def note(stage: str) -> None:
        now, peak = _mib(process.pid, "VmRSS"), _mib(process.pid, "VmHWM")
        rows.append(
            {
                "stage": f"{pods:,} pods, {standin.hpas:,} HPAs: {stage}",
                "MiB": f"{now:.0f}",
                "peak MiB": f"{peak:.0f}",
                "seconds": f"{time.monotonic() - began:.1f}",
                "CPU s": f"{_cpu_seconds(process.pid):.1f}",
                "requests": standin.requests,
            }
        )

    try:
        await _until(lambda: standin.requests > 0)
        note("first request")
        await _until(lambda: standin.writes > 0)
        note("first status")
        await _until(lambda: standin.writes >= standin.hpas)
        note("all statuses")
        url = f"http://127.0.0.1:{port}/metrics"
        await _until(lambda: _decisions(url) >= ROUNDS * standin.hpas, every=1.0)
        note(f"after {ROUNDS} rounds")
    finally:
        process.terminate()
        process.wait(timeout=20)
        standin.closing.set()
    return rows


async def _until(is_so: Callable[[], bool], *, every: float = 0.01) -> None:
    async with asyncio.timeout(900):
        while not await asyncio.to_thread(is_so):  # noqa: ASYNC110 - the program that is waited for has no event for us
            await asyncio.sleep(every)


class StandIn:
    """An API server that makes up its pods, Deployments and HPAs from their numbers; an ASGI application."""

    def __init__(self, hpas: int) -> None:
        self.hpas = hpas
        self.requests = 0
        self.writes = 0
        self.closing = asyncio.Event()
        self._statuses: dict[int, Json] = {}
        self._version = VERSION
        self._random = random.Random(1)
        apps = sorted(range(hpas), key=lambda app: f"{_space(app)}/app-{app}")
        pods = sorted(range(hpas * EACH), key=lambda pod: f"{_space(pod // EACH)}/{_pod(pod)}")
        # The numbers of the objects in the order of their keys, in which an API server lists them.
        self._items = {
            "pods": (pods, pod_json),
            "deployments": (apps, deployment_json),
            "horizontalpodautoscalers": (apps, hpa_json),
        }

    async def __call__(self, scope: Json, receive: Callable[[], Awaitable[Json]], send: Send) -> None:
        """Answer one request."""
        self.requests += 1
        query = dict(parse_qsl(scope["query_string"].decode()))
        headers = [(b"content-type", b"application/json")]
        body = b""
        if scope["method"] != "GET":
            body = self._written(scope["path"], (await receive())["body"])
        elif query.get("watch"):
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for line in self._events(float(query["timeoutSeconds"])):
                await send({"type": "http.response.body", "body": line, "more_body": True})
        else:
            body = self._read(scope["path"], query)
        if not query.get("watch"):
            status = 200 if body else 404
            await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body or b"{}"})

    async def _events(self, seconds: float) -> AsyncIterator[bytes]:
        try:
            async with asyncio.timeout(seconds):
                await self.closing.wait()
        except TimeoutError:
            pass
        version = {"resourceVersion": str(self._version)}
        yield json.dumps({"type": "BOOKMARK", "object": {"metadata": version}}).encode() + b"\n"

    def _read(self, path: str, query: dict[str, str]) -> bytes:
        if path in {"/api", "/apis"}:
            return json.dumps(_discovery(path)).encode()
        if path == "/apis/metrics.k8s.io":
            return json.dumps(
                {"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}
            ).encode()
        plural = path.rpartition("/")[2]
        if path.startswith("/apis/metrics.k8s.io/"):
            return self._usage(path)
        if plural not in self._items:
            return b""
        numbers, make = self._items[plural]
        start, count = int(query.get("continue", "0")), len(numbers)
        end = min(start + int(query.get("limit", "0") or count), count)
        token = str(end) if end < count else ""
        meta = json.dumps({"resourceVersion": str(VERSION), "continue": token}).encode()
        items = b",".join(map(make, numbers[start:end]))
        return b'{"metadata":' + meta + b',"items":[' + items + b"]}"

    def _usage(self, path: str) -> bytes:
        parts = path.split("/")
        if len(parts) <= 4:
            return b'{"resources":[{"name":"pods","kind":"PodMetrics","namespaced":true,"verbs":["list"]}]}'
        spaces = [int(parts[5].removeprefix("bench-"))] if "namespaces" in parts else range(NAMESPACES)
        now, noise = format_time(SystemClock().now()), self._random.uniform
        items = [
            {
                "metadata": {"name": _pod(app * EACH + pod), "namespace": _space(app)},
                "timestamp": now,
                "window": "15s",
                "containers": [{"name": "main", "usage": self._amounts(noise(0.95, 1.05))}],
            }
            for space in spaces
            for app in range(space, self.hpas, NAMESPACES)
            for pod in range(EACH)
        ]
        return json.dumps({"items": items}, separators=(",", ":")).encode()  # as Go writes it

    def _amounts(self, load: float) -> dict[str, str]:
        return {"cpu": f"{round(6e7 * load)}n"}

    def _written(self, path: str, body: bytes) -> bytes:
        if "horizontalpodautoscalers" not in path:
            return body or b"{}"
        self.writes += 1
        self._version += 1
        number = int(path.split("/")[7].removeprefix("app-"))
        status = self._statuses.setdefault(number, {})
        status |= json.loads(body).get("status", {})
        whole = json.loads(hpa_json(number))
        whole["metadata"]["resourceVersion"] = str(self._version)
        return json.dumps({**whole, "status": status}).encode()


def _space(app: int) -> str:
    return f"bench-{app % NAMESPACES}"


def _pod(number: int) -> str:
    return f"app-{number // EACH}-{number // EACH:08x}-{number % EACH:05x}"


def _meta(app: int, name: str, uid: str, **more: object) -> Json:
    return {
        "name": name,
        "namespace": _space(app),
        "uid": f"{uid}-0000-4000-8000-{app:012d}",
        "resourceVersion": str(VERSION - 1),
        "generation": 1,
        "creationTimestamp": STARTED,
        **more,
    }


def hpa_json(app: int) -> bytes:
    """Return an HPA as the API server sends it."""
    target = {"type": "Utilization", "averageUtilization": 60}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"app-{app}"},
        "minReplicas": 1,
        "maxReplicas": 10 * EACH,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    return json.dumps({"metadata": _meta(app, f"app-{app}", "0000000a"), "spec": spec}).encode()


def deployment_json(app: int) -> bytes:
    """Return a Deployment, without the template, which nobody reads here."""
    spec = {"replicas": EACH, "selector": {"matchLabels": {"app": f"app-{app}"}}}
    status = {"replicas": EACH, "readyReplicas": EACH}
    meta = _meta(app, f"app-{app}", "0000000b")
    return json.dumps({"metadata": meta, "spec": spec, "status": status}).encode()


def pod_json(number: int) -> bytes:
    """Return a pod of 5.7 KB, a third of it managedFields, as a kube-apiserver sends it."""
    app = number // EACH
    labels = {
        "app": f"app-{app}",
        "app.kubernetes.io/name": f"app-{app}",
        "app.kubernetes.io/part-of": "shop",
        "pod-template-hash": f"{app:08x}",
        "tier": "web",
    }
    owner: Json = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"app-{app}-{app:08x}"}
    owner |= {"uid": f"0000000c-0000-4000-8000-{app:012d}", "controller": True, "blockOwnerDeletion": True}
    meta = _meta(
        app,
        _pod(number),
        f"{number:08x}",
        generateName=f"app-{app}-{app:08x}-",
        labels=labels,
        annotations={"checksum/config": "0" * 64, "prometheus.io/scrape": "true"},
        ownerReferences=[owner],
        managedFields=_MANAGED,
    )
    container = {**_CONTAINER, "image": f"shop/app-{app}:1.2.3"}
    spec = {"nodeName": f"node-{number % 200}", "containers": [container], **_SPEC}
    return json.dumps({"metadata": meta, "spec": spec, "status": _STATUS}, separators=(",", ":")).encode()


_PROBE = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
_CONTAINER: Json = {
    "name": "main",
    "env": [{"name": f"SETTING_{index}", "value": f"value-{index}"} for index in range(6)],
    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
    "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
    "terminationMessagePath": "/dev/termination-log",
}
_SPEC: Json = {
    "restartPolicy": "Always",
    "serviceAccountName": "default",
    "schedulerName": "default-scheduler",
    "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}] * 2,
    "volumes": [{"name": "config", "configMap": {"name": "config", "defaultMode": 420}}],
}
_MANAGED: list[Json] = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": STARTED,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            f"f:field{index}": {"f:inner": {}, f"k:{index}": {".": {}, "f:value": {}}} for index in range(19)
        },
    }
    for manager in ("kube-controller-manager", "kubelet")
]
_STATUS: Json = {
    "phase": "Running",
    "podIP": "10.1.2.3",
    "hostIP": "10.0.0.1",
    "startTime": STARTED,
    "qosClass": "Burstable",
    "conditions": [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": STARTED}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ],
    "containerStatuses": [
        {
            "name": "main",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "image": "shop/app:1.2.3",
            "imageID": "shop/app@sha256:" + "0" * 64,
            "containerID": "containerd://" + "0" * 64,
            "state": {"running": {"startedAt": STARTED}},
        }
    ],
}


def _discovery(path: str) -> Json:
    kinds: dict[tuple[str, str], list[tuple[str, str, list[str]]]] = {
        ("", "v1"): [("pods", "Pod", [])],
        ("apps", "v1"): [("deployments", "Deployment", ["scale"])],
        ("autoscaling", "v2"): [("horizontalpodautoscalers", "HorizontalPodAutoscaler", ["status"])],
        ("metrics.k8s.io", "v1"): [("pods", "PodMetrics", [])],
    }
    items = [
        {
            "metadata": {"name": group},
            "versions": [
                {
                    "version": version,
                    "freshness": "Current",
                    "resources": [
                        {
                            "resource": plural,
                            "responseKind": {"group": group, "version": version, "kind": kind},
                            "scope": "Namespaced",
                            "subresources": [{"subresource": name} for name in subresources],
                        }
                        for plural, kind, subresources in resources
                    ],
                }
            ],
        }
        for (group, version), resources in kinds.items()
        if (path == "/api") == (group == "")
    ]
    return {"kind": "APIGroupDiscoveryList", "items": items}


def _kubeconfig(port: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "bench", "user": {}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }


def _decisions(url: str) -> float:
    with urllib.request.urlopen(url, timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    name = "horizontal_pod_autoscaler_controller_reconciliations_total"
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _mib(pid: int, what: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))
