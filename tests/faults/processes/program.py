"""`trimtab run` as a process of its own, behind a proxy that sees what it sends, in front of the lab or the real server."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.proxy import FaultProxy
from tests.scenarios.horizontal.stage import Stage
from trimtab.cluster.resource import LEASES, Json

ENDS_WITHIN_SECONDS = 20
QUICK_LEASE = (
    "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms",
)  # fmt: skip


@dataclass(frozen=True)
class Scarcity:
    """What a process does not have."""

    limits: Mapping[int, int] = field(default_factory=dict)
    """Limits of the kind of `setrlimit`."""
    stderr: str = ""
    """Where log lines go; a file of the test's own if empty."""
    home: str = ""
    """Working, home and temporary directory."""

    def impose(self) -> None:
        """Called in the child, before the program starts."""
        for what, most in self.limits.items():
            resource.setrlimit(what, (most, most))


_OF_LEASES = "/selfsubjectreviews"
PLENTY = Scarcity()


class Program:
    """One running `trimtab run`."""

    def __init__(self, process: subprocess.Popen[bytes], proxy: FaultProxy, log: Path) -> None:
        self._process = process
        self._log = log
        self.proxy = proxy
        self.is_stopped = False

    @property
    def said(self) -> str:
        """Return its log so far."""
        return self._log.read_text(errors="replace")

    @property
    def port(self) -> int:
        """Return the port of its health and records; 0 while it has not said so."""
        lines = [json.loads(line) for line in self.said.splitlines() if line.startswith("{")]
        return next((int(line["port"]) for line in lines if "port" in line), 0)

    def stop(self) -> None:
        """Freeze it: not a thread of it runs."""
        self._process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    def accepted(self) -> list[str]:
        """Return what it wrote and the server took, without its Leases and the review of its own account for them."""
        return [
            f"{seen.method} {seen.path}"
            for seen, status in self.proxy.answers
            if seen.method != "GET"
            and status < 300
            and not seen.path.endswith(_OF_LEASES)
            and "/leases" not in seen.path
        ]

    def asked(self, part: str) -> int:
        """Return how many of its requests had this in their path."""
        return sum(part in seen.path for seen in self.proxy.seen)

    async def get(self, path: str) -> tuple[int, str]:
        """Ask its health port."""
        return await asyncio.to_thread(_get, f"http://127.0.0.1:{self.port}{path}")

    async def is_live(self) -> bool:
        """Tell whether it answers that it lives."""
        try:
            return (await self.get("/livez"))[0] == 200
        except OSError:
            return False

    async def end(self) -> int:
        """Ask it to end, and return its exit code."""
        if self.is_stopped:
            self.go_on()
        self._process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self._process.wait, ENDS_WITHIN_SECONDS)

    async def ended(self) -> int:
        """Return its exit code once it has ended by itself."""
        return await asyncio.to_thread(self._process.wait, ENDS_WITHIN_SECONDS)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def _spawn(settings: tuple[str, ...], scarce: Scarcity, log: Path) -> subprocess.Popen[bytes]:
    home = {"HOME": scarce.home, "TMPDIR": scarce.home} if scarce.home else {}
    with Path(scarce.stderr or log).open("wb") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "trimtab", "run", *settings],
            stdout=subprocess.DEVNULL, stderr=stderr, cwd=scarce.home or None, env=os.environ | home,
            preexec_fn=scarce.impose,  # noqa: PLW1509 - no thread of this process holds a lock that setrlimit needs
        )  # fmt: skip


@asynccontextmanager
async def started(
    stage: Stage, directory: Path, *flags: str, scarce: Scarcity = PLENTY
) -> AsyncIterator[Program]:
    """A process that works in the stage's namespace, at a period of a second."""
    async with FaultProxy(stage.transport) as proxy:
        kubeconfig, log = directory / "kubeconfig", directory / "log"
        _write_kubeconfig(kubeconfig, proxy.url)
        settings = (
            f"--kubeconfig={kubeconfig}", f"--watch-namespaces={stage.namespace}", "--components=horizontal",
            f"--leader-elect-resource-namespace={stage.namespace}", "--port=0", "--log-format=json",
            "--horizontal-pod-autoscaler-sync-period=1s", *flags,
        )  # fmt: skip
        process = _spawn(settings, scarce, log)
        program = Program(process, proxy, log)
        try:
            yield program
        finally:
            program.kill()


def _write_kubeconfig(path: Path, url: str) -> None:
    config: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": url}}],
        "users": [{"name": "proxy", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config))


async def leader(stage: Stage) -> str:
    """Return who holds the lease."""
    found = await stage.client.list(LEASES.untyped())
    held = [one for one in found.items if one["metadata"]["namespace"] == stage.namespace]
    return str(held[0]["spec"].get("holderIdentity", "")) if held else ""
