"""A soak on the real API server: the same churn in real time, with two processes of Trimtab.

Real are etcd, kube-apiserver, kube-controller-manager and the aggregator; nodes and usage are the lab's. A leader is moved by stopping
its process until the other holds the Lease, a certificate is renewed by deleting its Secret, and watches end with a restart of the
API server.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.nodes import passing_nodes
from tests.soak.churn import Churn
from tests.soak.gauges import Gauges
from tests.soak.objects import namespace
from tests.support.objects import CRDS, NAMESPACES
from tools.peers.cluster import WORKLOAD_CONTROLLERS, RealCluster, free_port
from trimtab.clock import SystemClock
from trimtab.cluster import errors
from trimtab.cluster.client import Client
from trimtab.cluster.config import load_kubeconfig
from trimtab.cluster.http import HttpTransport
from trimtab.cluster.resource import Json, Resource
from trimtab.cluster.transport import Request
from trimtab.model.crds import all_crds
from trimtab.model.json import wire
from trimtab_lab.data_plane import DataPlane, DataPlaneConfig
from trimtab_lab.load.load import Load
from trimtab_lab.metrics.server import MetricsServer

OWN = "trimtab-system"
COMPONENTS = "horizontal,recommender,updater,roles,dashboard"
ROUND_SECONDS = 90.0
SECRETS: Resource[Json] = Resource("", "v1", "secrets", "Secret", Json)


@dataclass
class Program:
    """One process of `trimtab run` that answers for its figures."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int

    async def measure(self, name: str) -> Gauges:
        """Ask for its figures."""
        (self.folder / "ask").write_text(name, encoding="utf-8")
        answer = self.folder / f"{name}.json"
        async with asyncio.timeout(120):
            while not answer.exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.2)
        return wire.decode(answer.read_bytes(), Gauges)


class RealWorld:
    """The real API server with two processes."""

    def __init__(self, cluster: RealCluster, side: DataPlane, metrics: MetricsServer) -> None:
        self.clock = SystemClock()
        self.cluster = cluster
        self.client = side.client
        self.load: Load = side.load
        self.programs: list[Program] = []
        self._metrics = metrics

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[None]:
        """Run both processes while the context lasts."""
        await _ensure(self.client, namespace(OWN))
        self.programs = [self._start(folder / name, has_webhook=name == "a") for name in ("a", "b")]
        try:
            yield
        finally:
            for program in self.programs:
                program.process.send_signal(signal.SIGCONT)
                program.process.terminate()
            for program in self.programs:
                await asyncio.to_thread(program.process.wait, 30)

    def _start(self, folder: Path, *, has_webhook: bool) -> Program:
        folder.mkdir()
        port, webhook = free_port(), free_port()
        components = f"{COMPONENTS},admission" if has_webhook else COMPONENTS
        flags = [
            f"--components={components}", f"--kubeconfig={self.cluster.kubeconfig}", f"--port={port}", "--native-hpas",
            "--feature-gates=AllAlpha=true", f"--namespace={OWN}", f"--leader-elect-resource-namespace={OWN}",
            "--horizontal-pod-autoscaler-sync-period=5s", "--recommender-interval=10s", "--updater-interval=10s",
            f"--webhook-port={webhook}", "--webhook-address=127.0.0.1", f"--webhook-url=https://127.0.0.1:{webhook}",
            "--dashboard-port=0", "--dashboard-login=token", f"--dashboard-address-file={folder / 'address'}",
        ]  # fmt: skip
        log = (folder / "log").open("wb")
        command = [sys.executable, "-m", "tests.soak.measured", str(folder), "run", *flags]
        environment = {**os.environ, "TRIMTAB_TOKEN": ""}
        return Program(subprocess.Popen(command, stdout=log, stderr=log, env=environment), folder, port)

    def check_alive(self) -> None:
        """Raise if a process ended."""
        for program in self.programs:
            if program.process.poll() is not None:
                last = (program.folder / "log").read_text(errors="replace").splitlines()[-5:]
                raise RuntimeError("a process of Trimtab ended: " + "\n".join(last))

    @property
    def disturbances(self) -> Mapping[str, Callable[[float], Awaitable[None]]]:
        """Return what can be broken, by name."""
        return {
            "certificate": self._renew_certificate,
            "leader": self._move_leader,
            "metrics": self._break_metrics,
            "watches": self._restart_apiserver,
        }

    async def _renew_certificate(self, seconds: float) -> None:
        with suppress(errors.NotFound):
            await self.client.delete(SECRETS, "trimtab-webhook-tls", OWN)
        await self.clock.sleep(seconds)

    async def _move_leader(self, seconds: float) -> None:
        for program in self.programs:
            program.process.send_signal(signal.SIGSTOP)
            await self.clock.sleep(max(seconds, 18.0))
            program.process.send_signal(signal.SIGCONT)

    async def _break_metrics(self, seconds: float) -> None:
        await self._metrics.unregister()
        await self.clock.sleep(seconds)
        await self._metrics.register()

    async def _restart_apiserver(self, seconds: float) -> None:
        await asyncio.to_thread(self.cluster.restart_apiserver)
        await self.clock.sleep(seconds)

    async def visit(self, number: int) -> None:
        """Read the metrics, the records and the health of each process, with a connection each."""
        self.check_alive()
        for program in self.programs:
            for path in ("metrics", "readyz", f"records/soak-{number}/web-{number}"):
                with suppress(OSError):
                    await asyncio.to_thread(_fetch, f"http://127.0.0.1:{program.port}/{path}")

    async def measure(self, name: str) -> list[Gauges]:
        """Count in both processes now, and the watches at the API server."""
        watches = await self._watches()
        found = [await program.measure(name) for program in self.programs]
        return [msgspec.structs.replace(gauges, watches=watches) for gauges in found]

    async def _watches(self) -> int:
        request = Request("GET", "/metrics", max_body=64 * 1024 * 1024)
        answer = await self.client.sender.transport.request(request)
        lines = answer.body.decode().splitlines()
        rows = [line for line in lines if line.startswith("apiserver_longrunning_requests{")]
        return sum(int(float(line.rpartition(" ")[2])) for line in rows if 'verb="WATCH"' in line)


def _fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        body: bytes = answer.read()
        return body


async def _ensure(client: Client, manifest: Json) -> None:
    with suppress(errors.AlreadyExists):
        await client.create(NAMESPACES, manifest)


async def soak(
    minutes: float, *, seed: int = 1, each_round: Callable[[int, list[Gauges]], None] = lambda *_: None
) -> list[list[Gauges]]:
    """Run for so many real minutes and return what was counted in both processes at the end of each round."""
    counted: list[list[Gauges]] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trimtab-soak-")))
        cluster = stack.enter_context(RealCluster(folder / "cluster"))
        cluster.start_controllers(WORKLOAD_CONTROLLERS, "--kube-api-qps=1000", "--kube-api-burst=2000")
        clock = SystemClock()
        connection = load_kubeconfig(clock, str(cluster.kubeconfig), environ={})
        client = Client(clock, HttpTransport(clock, connection))
        stack.push_async_callback(client.close)
        for crd in all_crds():
            await client.create(CRDS, crd)
        await clock.sleep(5)
        setting = DataPlaneConfig(sample_seconds=5.0)
        side = await stack.enter_async_context(passing_nodes(client, setting))
        metrics = await stack.enter_async_context(MetricsServer(side))
        await metrics.register()
        world = RealWorld(cluster, side, metrics)
        await stack.enter_async_context(world.running(folder))
        churn = Churn(world, ROUND_SECONDS, seed, expires_events=False)
        await churn.open()
        end = clock.monotonic() + minutes * 60
        while clock.monotonic() < end:
            await churn.round()
            world.check_alive()
            counted.append(await world.measure(f"round-{churn.rounds}"))
            each_round(churn.rounds, counted[-1])
    return counted
