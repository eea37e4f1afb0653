"""Plays VPA worlds: each twice at once, upstream's recommender, updater and admission in some namespaces and ours in others."""

import asyncio
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from tests.worlds.real.hpas import Json
from tests.worlds.real.metrics import Server
from tests.worlds.real.nodes import NODE, NODE_STATUS, PlayedPods
from tests.worlds.real.server import SIDES, UPSTREAM_VPA, VPA_PROGRAMS, Api, count_writes, end
from tests.worlds.real.vpas import DAY, Profile, make_world
from tests.worlds.world import Happening
from tools.peers import build, processes
from tools.peers.beside import Beside, answers
from tools.peers.cluster import HOST, PeerError, free_port
from tools.peers.vpa_definitions import native_definitions

VALUES = ("horizontal.enabled=false",)
_UPSTREAM = {
    "recommender": "vpa-recommender", "updater": "vpa-updater", "admission": "vpa-admission-controller"
}  # fmt: skip
_SHARED = {
    "recommender": [
        "--recommender-interval=2s",
        *(
            f"--{name}={DAY}s"
            for name in (
                "memory-aggregation-interval", "memory-histogram-decay-half-life", "cpu-histogram-decay-half-life",
                "confidence-interval-cpu", "confidence-interval-memory",
            )
        ),
    ],
    "updater": [
        "--updater-interval=1s", f"--in-recommendation-bounds-eviction-lifetime-threshold={DAY // 2}s",
        "--evict-after-oom-threshold=5s",
    ],
    "admission": [],
}  # fmt: skip
"""What is a day by default is one of these short ones for both."""
_OURS = {
    # As upstream: a checkpoint in each loop, and no bound per minute, which would be one per half a day here.
    "recommender": ["--checkpoints-interval=0s", "--no-leader-elect"],
    "updater": ["--no-leader-elect", "--max-evictions-per-minute=0", "--max-evicted-share-per-minute=0"],
    "admission": [f"--webhook-address={HOST}"],
}
_CLIENT = ["--kube-api-qps=500", "--kube-api-burst=1000"]


class VpaPrograms:
    """Upstream's three programs and ours, which share the work by namespaces."""

    def __init__(self, beside: Beside, namespaces: dict[str, list[str]], logs: Path) -> None:
        self._beside, self._logs, self._namespaces = beside, logs, namespaces
        self._webhook_port, self._health_ports = free_port(), {name: free_port() for name in VPA_PROGRAMS}
        installed = beside.install(VALUES, self._webhook_port)
        self._accounts = {name: beside.kubeconfig_of(f"trimtab-{name}") for name in VPA_PROGRAMS}
        containers = [
            item["spec"]["template"]["spec"]["containers"][0]
            for item in installed
            if item["kind"] == "Deployment"
        ]
        self._arguments: dict[str, list[str]] = {each["name"]: each["args"] for each in containers}
        self._running: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
        logs.mkdir(parents=True, exist_ok=True)

    async def start_all(self) -> None:
        """Start all six and wait until ours are ready."""
        for side in SIDES:
            for name in VPA_PROGRAMS:
                self.start(side, name)
        for port in self._health_ports.values():
            for _ in range(100):
                if await asyncio.to_thread(answers, f"http://{HOST}:{port}/readyz"):
                    break
                await asyncio.sleep(0.3)
            else:
                raise PeerError(f"a program of ours is not ready; logs are in {self._logs}")

    def start(self, side: str, name: str) -> None:
        """Start a program."""
        command = self._upstream(name) if side == "upstream" else self._trimtab(name)
        log = self._logs / f"{side}-{name}.log"
        self._running[side, name] = processes.start(
            [*command, *_SHARED[name], *_CLIENT], self._beside.cluster.directory, log
        )

    def _upstream(self, name: str) -> list[str]:
        directory, port = self._beside.cluster.directory, free_port()
        lease = (
            "admission-controller-status-lease-namespace" if name == "updater" else "status-lease-namespace"
        )
        webhook = [
            f"--tls-cert-file={directory / 'apiserver.crt'}", f"--tls-private-key={directory / 'apiserver.key'}",
            f"--client-ca-file={directory / 'ca.crt'}", "--register-by-url=true", f"--webhook-address=https://{HOST}",
            f"--port={port}", f"--webhook-port={port}",
        ]  # fmt: skip
        return [
            str(build.place_of(_UPSTREAM[name])), f"--kubeconfig={directory / f'{UPSTREAM_VPA.name}.kubeconfig'}",
            f"--address={HOST}:{free_port()}", f"--ignored-vpa-object-namespaces={','.join(self._namespaces['ours'])}",
            *([] if name == "recommender" else [f"--{lease}=kube-system"]), *(webhook if name == "admission" else []),
            "--v=4",
        ]  # fmt: skip

    def _trimtab(self, name: str) -> list[str]:
        # Of a flag that is given twice, the last one counts.
        return [
            sys.executable, "-m", "trimtab", *self._arguments[name], f"--kubeconfig={self._accounts[name]}",
            f"--bind-address={HOST}", f"--port={self._health_ports[name]}", "--log-format=text",
            f"--watch-namespaces={','.join(self._namespaces['ours'])}", *_OURS[name],
            *([f"--webhook-port={self._webhook_port}"] if name == "admission" else []),
        ]  # fmt: skip

    async def befall(self, event: Happening) -> None:
        """Kill a program of both sides, and start it again later."""
        for side in SIDES:
            self._running.pop((side, event.facts["program"])).kill()
        await asyncio.sleep(event.facts["for"])
        for side in SIDES:
            self.start(side, event.facts["program"])

    def stop(self) -> None:
        """Stop all."""
        while self._running:
            processes.stop(self._running.popitem()[1])


async def play(
    beside: Beside, api: Api, metrics: Server, profile: Profile, names: Sequence[str], replays: int, out: Path
) -> Path:
    """Play worlds, each so often at once, and return the file of what came of them."""
    run = str(int(time.time()))
    worlds = [make_world(name) for name in names]
    played = [
        PlayedPods(world, side, replay, run, api)
        for world in worlds
        for replay in range(replays)
        for side in SIDES
    ]
    namespaces = {side: [pods.namespace for pods in played if pods.side == side] for side in SIDES}
    await api.call("POST", "/api/v1/nodes", NODE, ok=(409,))
    await api.call("PATCH", "/api/v1/nodes/node-1/status", {"status": NODE_STATUS})
    # The API server taints every new node until a node controller finds it Ready, and none runs here.
    await api.call("PATCH", "/api/v1/nodes/node-1", {"spec": {"taints": None}})
    for definition in native_definitions():
        await api.call(
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, ok=(409,)
        )
    programs = VpaPrograms(beside, namespaces, out / f"logs-{run}")
    audit_log = beside.cluster.directory / "audit.log"
    tasks: list[asyncio.Task[None]] = []
    try:
        await _each(played, PlayedPods.set_up)
        metrics.played_pods.update({pods.namespace: pods.pod_metrics for pods in played})
        await programs.start_all()
        start, began = audit_log.stat().st_size, time.monotonic()
        await _each(played, lambda pods: pods.begin(profile.acts_after))
        for pods in played:
            tasks.append(asyncio.create_task(pods.run()))
            tasks += [
                asyncio.create_task(_later(each.at, partial(pods.happen, each)))
                for each in pods.world.happenings
                if each.at > 0
            ]
        tasks += [
            asyncio.create_task(_later(event.at, partial(programs.befall, event))) for event in profile.events
        ]
        lag = 0.0
        while time.monotonic() - began < profile.seconds:
            before = time.monotonic()
            await asyncio.sleep(0.2)
            lag = max(lag, time.monotonic() - before - 0.2)
    finally:
        programs.stop()
        metrics.played_pods.clear()
    await end(tasks)
    writes = count_writes(audit_log, start)
    for pods in played:
        pods.record["writes"] = writes.get(pods.namespace, {})
    result: Json = {
        "profile": "vpas", "tell": profile.tell(), "events": [], "lag": round(lag, 2),
        "lives": [pods.record for pods in played],
    }  # fmt: skip
    path = out / f"{names[0]}-{run}.json.gz"
    with gzip.open(path, "wt") as file:
        json.dump(result, file)
    await _each(played, PlayedPods.clean)
    return path


async def _each(played: Sequence[PlayedPods], do: Callable[[PlayedPods], Awaitable[None]]) -> None:
    await asyncio.gather(*[do(pods) for pods in played])


async def _later(seconds: float, do: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(seconds)
    await do()
