"""One healthy HPA beside 200 whose metrics source hangs, on the real API server: reaction, and gaps between renewals.

`make bench ARGS=bulkheads` needs the real programs, as `make test-real` does. A stand-in serves metrics.k8s.io, healthy,
and external.metrics.k8s.io, broken, behind the aggregator. `trimtab run` is a process of its own with leader election.
"""

import asyncio
import contextlib
import json
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import trustme
from aiohttp import web

from bench import Rows
from tests.real.adapter.registered import apply
from tests.scenarios.horizontal.conftest import play_on_real
from tests.scenarios.horizontal.stage import Stage
from tests.support.objects import NO_WINDOW, cpu_metric, external_metric
from tools.peers.cluster import HOST, RealCluster, free_port
from trimtab.cluster.errors import ApiError
from trimtab.cluster.resource import LEASES, Json
from trimtab.model.times import format_time, parse_time

MANY = 200
REACTIONS = 5
SERVICE, NAMESPACE = "stand-in", "kube-system"
GROUPS = ("metrics.k8s.io", "external.metrics.k8s.io")
BROKEN = {"hangs": 600.0, "503 after 5 s": 5.0}
"""The seconds that a broken source takes before it answers 503."""


@dataclass
class StandIn:
    """Serves both metrics groups. External metrics answer 503 after `seconds`."""

    stage: Stage
    seconds: float = 0.0
    usage: str = "50m"
    asked: int = 0
    runner: web.AppRunner | None = field(default=None, init=False)

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a discovery request or a query."""
        parts = request.path.strip("/").split("/")
        group = parts[1] if len(parts) > 1 else ""
        if len(parts) < 4:
            return web.json_response(_discovery(group))
        if group == GROUPS[0]:
            return web.json_response(await self._pods())
        self.asked += 1
        await asyncio.sleep(self.seconds)
        failure = {"kind": "Status", "status": "Failure", "message": "the source is down", "code": 503}
        return web.json_response(failure, status=503)

    async def _pods(self) -> Json:
        moment = format_time(self.stage.clock.now())
        container = {"name": "app", "usage": {"cpu": self.usage, "memory": "1Mi"}}
        pods = [(self.stage.namespace, name) for name in await self.stage.pods_of("web")]
        items = [
            {
                "metadata": {"namespace": namespace, "name": name},
                "timestamp": moment,
                "window": "15s",
                "containers": [container],
            }
            for namespace, name in pods
        ]
        return {"kind": "PodMetricsList", "apiVersion": f"{GROUPS[0]}/v1beta1", "items": items}

    async def start(self, port: int) -> None:
        """Serve TLS on loopback."""
        app = web.Application()
        app.router.add_get("/{tail:.*}", self.answer)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("localhost").configure_cert(tls)
        await web.TCPSite(self.runner, HOST, port, ssl_context=tls).start()


def _discovery(group: str) -> Json:
    resources = [
        {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["list"]}
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/v1beta1",
        "resources": resources,
    }


def register(cluster: RealCluster, port: int) -> None:
    """Let the aggregator forward both groups to the stand-in."""
    service: Json = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    spec: Json = {
        "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port},
        "version": "v1beta1",
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    api_services: list[Json] = [
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1beta1.{group}"},
            "spec": {**spec, "group": group},
        }
        for group in GROUPS
    ]
    apply(cluster, service, *api_services)
    names = [f"apiservices/v1beta1.{group}" for group in GROUPS]
    cluster.kubectl("wait", *names, "--for=condition=Available", "--timeout=90s")


@contextlib.asynccontextmanager
async def program(cluster: RealCluster, log: Path) -> AsyncIterator[None]:
    """Run `trimtab run` with leader election, and end it."""
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("trimtab")), "run", "--components=horizontal",
            f"--kubeconfig={cluster.kubeconfig}", "--bind-address=127.0.0.1", "--port=0",
            "--horizontal-pod-autoscaler-sync-period=1s", f"--leader-elect-resource-namespace={NAMESPACE}",
            stdout=errors, stderr=errors, start_new_session=True,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            await process.wait()


async def collect_renewals(stage: Stage, times: list[float]) -> None:
    """Collect the times at which the leader renewed its Lease."""
    while True:
        with contextlib.suppress(ApiError):
            for lease in (await stage.client.list(LEASES.untyped())).items:
                renewed = lease["spec"].get("renewTime")
                is_ours = lease["metadata"]["name"].startswith("trimtab") and lease["spec"]["holderIdentity"]
                moment = parse_time(renewed).timestamp() if renewed and is_ours else 0.0
                if moment and moment not in times:
                    times.append(moment)
        await asyncio.sleep(0.2)


async def react(stage: Stage, source: StandIn) -> float:
    """Raise the usage of the healthy workload, and return the seconds until it is scaled."""
    before = await stage.replicas("web")
    began = time.monotonic()
    source.usage = "75m"
    while await stage.replicas("web") == before:
        if time.monotonic() - began > 120:
            return float("inf")
        await asyncio.sleep(0.02)
    seconds = time.monotonic() - began
    source.usage = "50m"
    await asyncio.sleep(3)  # until no decision on the old usage is under way
    await stage.scale("web", 2)
    await stage.follow("web")
    await asyncio.sleep(3)
    return seconds


async def measure(
    cluster: RealCluster, stage: Stage, source: StandIn, name: str, log: Path
) -> dict[str, Any]:
    """Measure reactions and renewals for about a minute, and return a row."""
    renewals: list[float] = []
    collecting = asyncio.ensure_future(collect_renewals(stage, renewals))
    async with program(cluster, log):
        await stage.wait_for(lambda: _has_led(renewals), 60)
        await asyncio.sleep(5)
        asked, began = source.asked, time.monotonic()
        reactions = [await react(stage, source) for _ in range(REACTIONS)]
        seconds = time.monotonic() - began
    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)
    gaps = [later - sooner for sooner, later in pairwise(sorted(renewals))]
    return {
        "HPAs on the broken source": name,
        "healthy HPA scaled after, s": f"{min(reactions):.1f} to {max(reactions):.1f}",
        "longest gap between renewals, s": f"{max(gaps):.1f}",
        "renewals": len(renewals),
        "queries to the source per s": f"{(source.asked - asked) / seconds:.1f}",
    }


async def _has_led(renewals: list[float]) -> bool:
    return len(renewals) > 1


def run() -> Rows:
    """Measure a healthy HPA alone, beside a source that hangs, and beside one that fails slowly."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory, RealCluster(Path(directory) / "cluster") as cluster:
        log = Path(directory) / "trimtab.log"

        async def scenario(stage: Stage) -> None:
            source, port = StandIn(stage), free_port()
            await source.start(port)
            await asyncio.to_thread(register, cluster, port)
            await stage.deployment("web", 2)
            policy = {"type": "Pods", "value": 50, "periodSeconds": 1}
            behavior = {**NO_WINDOW, "scaleUp": {"policies": [policy]}}
            await stage.hpa("web", metrics=[cpu_metric(50)], behavior=behavior)
            rows.append(await measure(cluster, stage, source, "0", log))
            for index in range(MANY):
                await stage.bare_deployment(f"broken{index}", 2)
                await stage.hpa(f"broken{index}", metrics=[external_metric(f"queue-{index}", average="100")])
            for name, seconds in BROKEN.items():
                source.seconds = seconds
                rows.append(await measure(cluster, stage, source, f"{MANY}, {name}", log))
            assert source.runner is not None
            await source.runner.cleanup()

        try:
            play_on_real(cluster, scenario)
        except BaseException:
            sys.stderr.write(log.read_text(errors="replace")[-4000:] if log.exists() else "")
            raise
    return rows


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
