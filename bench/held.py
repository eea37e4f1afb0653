"""1,000 HPAs with ten pods each on the real API server, held at 15 s: calls, cores and MiB of `trimtab run`.

Usage moves by a few percent at every question, so that most decisions write a status. `HPAS` and `SECONDS` in the
environment make it smaller. Peers for comparison: kube-controller-manager holds 300 with its default limits.
"""

import asyncio
import json
import os
import random
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from bench import Rows
from tools.peers import cluster as peers
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.resources import DEPLOYMENTS, PODS
from trimtab.model.times import format_time
from trimtab.operator.horizontal.kinds import NATIVE_HPAS
from trimtab.serving import served

HPAS = int(os.environ.get("HPAS", "1000"))
SECONDS = float(os.environ.get("SECONDS", "60"))
NAMESPACES = 100
PODS_EACH = 10
PERIOD = 15
_AT_ONCE = 32

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", Json, namespaced=False)
_SERVICES = Resource("", "v1", "services", "Service", Json)
_API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", Json, namespaced=False)


def run() -> Rows:
    """Fill a cluster, run the operator beside it, and read its counters."""
    why_not = peers.available()
    if why_not:
        return [{"held": f"skipped: {why_not}"}]
    with (
        tempfile.TemporaryDirectory(prefix="trimtab-held-") as name,
        peers.RealCluster(Path(name)) as cluster,
    ):
        return asyncio.run(_measure(cluster))


async def _measure(cluster: peers.RealCluster) -> Rows:
    clock = SystemClock()
    connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
    client = Client(clock, HttpTransport(clock, connection, concurrency=_AT_ONCE))
    try:
        began = time.monotonic()
        await _fill(client)
        print(
            f"filled with {HPAS} HPAs and {HPAS * PODS_EACH} pods in {time.monotonic() - began:.0f} s",
            flush=True,
        )
        async with _metrics(client, cluster.directory):
            return await _watch_operator(cluster)
    finally:
        await client.close()


async def _fill(client: Client) -> None:
    names = [f"bench-{number}" for number in range(min(NAMESPACES, HPAS))]
    for name in names:
        await client.create(_NAMESPACES, {"metadata": {"name": name}})
    await _all(_workload(client, names[number % len(names)], f"app-{number}") for number in range(HPAS))


async def _workload(client: Client, namespace: str, name: str) -> None:
    labels = {"app": name}
    container = {"name": "app", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": PODS_EACH, "selector": {"matchLabels": labels}, "template": template}
    deployments, pods, hpas = DEPLOYMENTS.untyped(), PODS.untyped(), NATIVE_HPAS.untyped()
    await client.create(deployments, {"metadata": {"name": name}, "spec": spec}, namespace)
    status = {"status": {"replicas": PODS_EACH}}
    await client.patch(deployments, name, namespace, status, subresource="status")
    started = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": started}
    running = {"status": {"phase": "Running", "startTime": started, "conditions": [ready]}}
    for number in range(PODS_EACH):
        pod = f"{name}-{number}"
        await client.create(
            pods, {"metadata": {"name": pod, "labels": labels}, "spec": template["spec"]}, namespace
        )
        await client.patch(pods, pod, namespace, running, subresource="status")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    hpa = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 50}
    hpa["metrics"] = [{"type": "Resource", "resource": metric}]
    await client.create(hpas, {"metadata": {"name": name}, "spec": hpa}, namespace)


async def _all(work: Iterable[Awaitable[None]]) -> None:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(awaitable: Awaitable[None]) -> None:
        async with turns:
            await awaitable

    await asyncio.gather(*(one(awaitable) for awaitable in work))


@asynccontextmanager
async def _metrics(client: Client, directory: Path) -> AsyncIterator[None]:
    """Serve metrics.k8s.io behind the real aggregator."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(directory / "apiserver.crt", directory / "apiserver.key")
    async with served(_usage_app(), "127.0.0.1", 0, tls=tls) as port:
        service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        await client.create(_SERVICES, {"metadata": {"name": "usage"}, "spec": service}, "kube-system")
        spec = {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": "usage", "namespace": "kube-system", "port": port},
        }
        await client.create(_API_SERVICES, {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec})
        yield


def _usage_app() -> Callable[..., Awaitable[None]]:
    chance = random.Random(1)

    async def app(scope: Json, _receive: object, send: Callable[[Json], Awaitable[None]]) -> None:
        body = json.dumps(_answer(scope["path"], chance)).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def _answer(path: str, chance: random.Random) -> Json:
    parts = path.strip("/").split("/")
    if len(parts) < 6:
        pods = {"name": "pods", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
        return {"kind": "APIResourceList", "groupVersion": "metrics.k8s.io/v1beta1", "resources": [pods]}
    namespace = parts[4]
    place = int(namespace.removeprefix("bench-"))
    spaces = min(NAMESPACES, HPAS)
    now = format_time(SystemClock().now())
    items = [
        {
            "metadata": {"name": f"app-{app}-{pod}", "namespace": namespace, "labels": {"app": f"app-{app}"}},
            "timestamp": now,
            "window": "30s",
            "containers": [{"name": "app", "usage": {"cpu": f"{round(60 * chance.uniform(0.95, 1.05))}m"}}],
        }
        for app in range(place, HPAS, spaces)
        for pod in range(PODS_EACH)
    ]
    return {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items}


async def _watch_operator(cluster: peers.RealCluster) -> Rows:
    port = peers.free_port()
    command = [
        sys.executable, "-m", "trimtab", "run", "--native-hpas", "--no-own-hpas", "--no-leader-elect",
        f"--port={port}", f"--kubeconfig={cluster.kubeconfig}",
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: ASYNC220 - starting it is quick
    try:
        url = f"http://127.0.0.1:{port}/metrics"
        await _until_decided(url, HPAS)
        before, cpu = _counters(url), _cpu_seconds(process.pid)
        await asyncio.sleep(SECONDS)
        after, spent = _counters(url), _cpu_seconds(process.pid) - cpu
        peak = _peak_mib(process.pid)
    finally:
        process.terminate()
        process.wait(timeout=20)
    decisions = (after["decisions"] - before["decisions"]) / SECONDS
    calls = (after["calls"] - before["calls"]) / SECONDS
    return [
        {"figure": "HPAs x pods", "ours": f"{HPAS} x {PODS_EACH}"},
        {"figure": f"decisions/s (wanted {HPAS / PERIOD:.1f})", "ours": f"{decisions:.1f}"},
        {"figure": "calls/s to the API server", "ours": f"{calls:.1f}"},
        {"figure": "cores", "ours": f"{spent / SECONDS:.3f}"},
        {"figure": "CPU ms per decision", "ours": f"{spent / SECONDS / max(decisions, 0.001) * 1000:.2f}"},
        {"figure": "peak MiB", "ours": f"{peak:.0f}"},
    ]


async def _until_decided(url: str, wanted: int) -> None:
    for _ in range(600):
        await asyncio.sleep(0.2)
        try:
            if _counters(url)["decisions"] >= wanted:
                return
        except OSError:
            continue
    raise SystemExit("the operator did not decide about every HPA within two minutes")


def _counters(url: str) -> dict[str, float]:
    found = {"decisions": 0.0, "calls": 0.0}
    with urllib.request.urlopen(url, timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name.startswith("horizontal_pod_autoscaler_controller_reconciliations_total"):
                found["decisions"] += float(value)
            elif name.startswith("trimtab_api_requests_total"):
                found["calls"] += float(value)
    return found


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
