"""The adapter under load: 200 requests a second over 10,000 series, through TLS, for 10 seconds."""

import asyncio
import os
import random
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import trustme
import uvloop
import yaml
from yarl import URL

from bench import Rows
from tests.adapter.fake_cluster import FakeCluster
from trimtab.adapter.adapter import serve
from trimtab.adapter.config import load_configuration
from trimtab.adapter.files import API_VERSION
from trimtab.clock import SystemClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport

RATE = 200
SECONDS = 10
SERIES = 10_000
PODS_PER_NAMESPACE = 50
HPA = {"X-Remote-User": "hpa", "X-Remote-Group": "system:authenticated"}


def run() -> Rows:
    """Serve in a process of its own, ask from this one, at a fixed rate whatever the answers take."""
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as name:
        directory = Path(name)
        front = trustme.CA()
        proxy = front.issue_cert(common_name="front-proxy-client")
        _write(directory, front)
        server = subprocess.Popen(
            [sys.executable, "-m", "bench.adapter", name], stdout=subprocess.PIPE, text=True, env=os.environ
        )
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            before = _cpu_seconds(server.pid)
            rows = asyncio.run(_load(port, directory, proxy))
            cpu = _cpu_seconds(server.pid) - before
        finally:
            server.terminate()
            server.wait()
    return [{**row, "server cpu ms/request": f"{cpu * 1e3 / (RATE * SECONDS + 100):.2f}"} for row in rows]


def _write(directory: Path, front: trustme.CA) -> None:
    values = [
        {"metric": "rps", "namespace": f"ns-{n // PODS_PER_NAMESPACE}", "name": f"pod-{n}", "value": n % 97,
         "labels": {"verb": "GET" if n % 2 else "POST"}, "objectLabels": {"app": f"app-{n % 5}"}}
        for n in range(SERIES // 2)
    ]  # fmt: skip
    external = [
        {"metric": "backlog", "namespace": f"ns-{n // 50}", "labels": {"queue": f"q-{n}"}, "value": n}
        for n in range(SERIES // 2)
    ]
    data = {"custom": values, "external": external}
    source = {"name": "by-hand", "testing": {"file": "values.yaml"}}
    for name, kind, fields in (
        ("values", "MetricValues", data),
        ("config", "AdapterConfiguration", {"listen": {"port": 0}, "sources": [source]}),
    ):
        text = yaml.dump({"apiVersion": API_VERSION, "kind": kind, **fields}, Dumper=yaml.CSafeDumper)
        (directory / f"{name}.yaml").write_text(text)
    front.cert_pem.write_to_path(directory / "front.crt")


async def _load(port: int, directory: Path, proxy: trustme.LeafCert) -> Rows:
    tls = ssl.create_default_context(cafile=str(directory / "adapter-ca.crt"))
    proxy.configure_cert(tls)
    pick = random.Random(1)
    taken: list[float] = []
    bad: list[int] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64, ssl=tls)) as session:

        async def ask(record: bool) -> None:
            started = time.perf_counter()
            async with session.get(
                URL(f"https://localhost:{port}{_path(pick)}", encoded=True), headers=HPA
            ) as answer:
                await answer.read()
                if record:
                    taken.append(time.perf_counter() - started)
                    bad.extend([answer.status] if answer.status != 200 else [])

        await asyncio.gather(*(ask(False) for _ in range(100)))
        started = time.perf_counter()
        tasks = []
        for n in range(RATE * SECONDS):
            await asyncio.sleep(max(0.0, started + n / RATE - time.perf_counter()))
            tasks.append(asyncio.create_task(ask(True)))
        await asyncio.gather(*tasks)
        seconds = time.perf_counter() - started
    taken.sort()
    return [
        {
            "requests": str(len(taken)),
            "per second": f"{len(taken) / seconds:.0f}",
            "not 200": str(len(bad)),
            "p50 ms": f"{taken[len(taken) // 2] * 1e3:.1f}",
            "p99 ms": f"{taken[len(taken) * 99 // 100] * 1e3:.1f}",
            "max ms": f"{taken[-1] * 1e3:.1f}",
            "machine": f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores",
        }
    ]


def _path(pick: random.Random) -> str:
    namespace = f"ns-{pick.randrange(SERIES // 2 // PODS_PER_NAMESPACE)}"
    if pick.random() < 0.5:
        return f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/backlog"
    selectors = f"labelSelector=app%3Dapp-{pick.randrange(5)}&metricLabelSelector=verb%3DGET"
    return f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/*/rps?{selectors}"


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _serve(directory: Path) -> None:
    cluster = FakeCluster()
    data = {
        "requestheader-client-ca-file": (directory / "front.crt").read_text(),
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
    }
    await cluster.put("configmaps", "extension-apiserver-authentication", "kube-system", data=data)
    clock = SystemClock()
    client = Client(clock, InProcessTransport(cluster))
    async with serve(clock, client, load_configuration(directory / "config.yaml"), directory) as adapter:
        while adapter.trust.current is None:  # noqa: ASYNC110 - what happens is not an event of ours
            await asyncio.sleep(0.01)
        print(adapter.port, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1])))
