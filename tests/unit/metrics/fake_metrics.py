"""Metrics APIs that answer what a test says, and a reader of them in virtual time."""

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from trimtab.clock import VirtualClock
from trimtab.cluster.client import Client
from trimtab.cluster.in_process import InProcessTransport
from trimtab.metrics.reader import MetricsReader

LOOK_UP = "/apis/custom.metrics.k8s.io"
USAGE_LOOK_UP = "/apis/metrics.k8s.io"


class Api:
    """Answers any path with what it was given, and remembers what was asked."""

    def __init__(self, **answers: Any) -> None:
        self.asked: list[str] = []
        self.versions = ["v1beta2", "v1beta1"]
        self.look_up: Any = None
        self.usage_versions: Any = ["v1", "v1beta1"]
        """The versions of usage that are listed, or the answer to their look-up."""
        self.answer: Callable[[str], Any] = lambda path: {"items": []}
        self.hang = asyncio.Event()

    async def request(self, method, path, query, headers, body):
        self.asked.append(path + (f"?{query}" if query else ""))
        status, answer = 200, self._body(path)
        await asyncio.sleep(0)  # as any server, it takes its time, and others ask meanwhile
        if answer == "hang":
            await self.hang.wait()
        if isinstance(answer, tuple):
            seconds, answer = answer
            await asyncio.sleep(seconds)
        if isinstance(answer, int):
            status = answer
            answer = {"kind": "Status", "status": "Failure", "message": "it is down", "code": status}
        return SimpleNamespace(status=status, headers={}, body=json.dumps(answer).encode(), stream=None)

    def _body(self, path):
        if path == LOOK_UP and self.look_up is not None:
            return self.look_up
        if path == LOOK_UP:
            listed = [{"version": version} for version in self.versions]
            return {"versions": listed, "preferredVersion": listed[0]}
        if path == USAGE_LOOK_UP and isinstance(self.usage_versions, list):
            return {"versions": [{"version": version} for version in self.usage_versions]}
        return self.usage_versions if path == USAGE_LOOK_UP else self.answer(path)


def run(api, act, **options):
    clock = VirtualClock()

    async def main():
        client = Client(clock, InProcessTransport(api), seed=1)
        reader = MetricsReader(clock, client, **options)
        try:
            return await act(reader, clock)
        finally:
            await reader.close()

    return clock.run(main())
