"""The embedded cluster: a virtual day of 100 pods, and requests per second."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench import Rows
from trimtab.clock import SystemClock, VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.resource import Json
from trimtab.model.quantity import Quantity
from trimtab_lab.controllers.kinds import PODS
from trimtab_lab.data_plane import DataPlaneConfig
from trimtab_lab.embedded import EmbeddedCluster
from trimtab_lab.load.curves import Daily
from trimtab_lab.load.plan import LoadPlan, WorkloadLoad
from trimtab_lab.serve import ListenAddress, write_kubeconfig

WORKLOADS, PODS_EACH, HOURS = 10, 10, 24
REQUESTS = 2_000
AT_ONCE = 16


def run() -> Rows:
    return [*_day(), *_requests_in_process(), *_requests_over_tls()]


def _row(what: str, seconds: float, count: int, unit: str) -> dict[str, str]:
    return {
        "what": what,
        "wall s": f"{seconds:.1f}",
        "count": f"{count:,} {unit}",
        "per second": f"{count / seconds:,.0f}",
    }


def _deployment(name: str, replicas: int) -> Json:
    labels = {"app": name}
    container = {"name": "app", "image": "none", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _day() -> Rows:
    """Run 24 hours of 100 pods under a daily curve, each workload scaled once an hour."""
    curve = Daily(low=Quantity.parse("200m"), high=Quantity.parse("2"))
    names = [f"web-{number}" for number in range(WORKLOADS)]
    plan = LoadPlan(workloads=tuple(WorkloadLoad(name=name, cpu=curve, noise=0.1) for name in names))
    clock = VirtualClock()
    spent = [0.0]

    async def main() -> int:
        async with EmbeddedCluster(
            clock, seed=1, setting=DataPlaneConfig(plan=plan), tracks_fields=False
        ) as cluster:
            await cluster.apply(*(_deployment(name, PODS_EACH) for name in names))
            await cluster.settle()
            started = time.perf_counter()
            for hour in range(HOURS):
                await clock.sleep(3600)
                await cluster.apply(*(_deployment(name, PODS_EACH + hour % 2) for name in names))
            spent[0] = time.perf_counter() - started
            return cluster.client.sender.counts.total()

    requests = clock.run(main())
    samples = HOURS * 3600 // 15 * WORKLOADS * PODS_EACH
    return [
        _row(f"{HOURS} virtual hours of {WORKLOADS * PODS_EACH} pods", spent[0], samples, "samples"),
        _row("the same, in requests", spent[0], requests, "requests"),
    ]


async def _measure(client: Client) -> Rows:
    """Time reads and writes of one pod, several at once."""
    rows = []
    pod = (await client.list(PODS)).items[0].metadata

    async def read() -> None:
        await client.get(PODS, pod.name, pod.namespace)

    async def write(number: int) -> None:
        await client.patch(PODS, pod.name, pod.namespace, {"metadata": {"annotations": {"n": str(number)}}})

    async def work(step: int, writes: bool) -> None:
        for number in range(step, REQUESTS, AT_ONCE):
            await (write(number) if writes else read())

    for what, writes in (("read a pod", False), ("patch a pod", True)):
        started = time.perf_counter()
        await asyncio.gather(*(work(step, writes) for step in range(AT_ONCE)))
        rows.append(_row(what, time.perf_counter() - started, REQUESTS, "requests"))
    return rows


def _requests_in_process() -> Rows:
    clock = VirtualClock()

    async def main() -> Rows:
        async with EmbeddedCluster(clock, seed=1) as cluster:
            await cluster.apply(_deployment("web", PODS_EACH))
            await cluster.settle()
            return await _measure(cluster.client)

    return [{**row, "what": f"{row['what']}, in process"} for row in clock.run(main())]


def _requests_over_tls() -> Rows:
    clock = SystemClock()

    async def main() -> Rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kubeconfig"
            async with EmbeddedCluster(clock, address=ListenAddress()) as cluster:
                assert cluster.served is not None
                write_kubeconfig(path, cluster.served.kubeconfig())
                await cluster.apply(_deployment("web", PODS_EACH))
                await cluster.settle(60)
                client = Client(clock, HttpTransport(clock, load_kubeconfig(clock, str(path))))
                try:
                    return await _measure(client)
                finally:
                    await client.close()

    return [{**row, "what": f"{row['what']}, over TLS"} for row in asyncio.run(main())]
