"""Processes of `trimtab run --shards` on the real API server, and what their ports tell."""

import asyncio
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.peers.cluster import free_port

SHARDS, LEASE = 6, 6.0


class Copy:
    """One process; it watches one namespace and keeps its Leases in another, or in the same."""

    def __init__(self, name: str, kubeconfig: Path, log: Path, namespace: str, *flags: str) -> None:
        self.name = name
        self.port = free_port()
        self.log = log
        usual = [
            f"--kubeconfig={kubeconfig}", f"--port={self.port}", f"--watch-namespaces={namespace}", f"--shards={SHARDS}",
            f"--leader-elect-resource-namespace={namespace}", f"--leader-elect-lease-duration={LEASE:.0f}s",
            "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s",
        ]  # fmt: skip
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from trimtab.cli import main; main()", "run", *usual, *flags],
                stdout=output,
                stderr=output,
            )

    def ask(self, page: str) -> bytes:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{page}", timeout=5) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            return bytes(error.read())
        except OSError:
            return b""

    def is_ready(self) -> bool:
        return b'"ready": true' in self.ask("/readyz")

    def total(self, metric: str) -> float:
        """Return the sum of a metric over its labels."""
        lines = self.ask("/metrics").decode().splitlines()
        return sum(
            float(line.split()[-1]) for line in lines if line.startswith((f"{metric} ", f"{metric}{{"))
        )

    def shards(self) -> int:
        """Return how many shards the copy says to hold."""
        return int(self.total("trimtab_shards_held"))

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


async def until(condition: Callable[[], Any], seconds: float = 60) -> float:
    """Wait until something is so, and return when it was."""
    began = time.monotonic()
    while True:
        found = condition()
        if await found if asyncio.iscoroutine(found) else found:
            return time.monotonic()
        assert time.monotonic() - began < seconds, f"{condition} did not come true"
        await asyncio.sleep(0.1)
