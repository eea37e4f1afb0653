"""A lab without a socket, and the calls that tests make on it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from trimtab.clock import Clock, VirtualClock
from trimtab_lab.apiserver.server import Server

MERGE = "application/merge-patch+json"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


class RefusedError(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {body.get('message')}")
        self.status = status
        self.body = body
        self.reason = body.get("reason", "")
        self.message = body.get("message", "")


class Api:
    """Calls on a server, as its admin or as somebody else."""

    def __init__(self, server: Server, token: str = "") -> None:
        self.server = server
        self._token = token or server.tokens.admin
        self.warnings: tuple[str, ...] = ()

    async def call(
        self, method: str, path: str, body: Any = None, query: str = "", media: str = "application/json"
    ) -> Any:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": media,
            "Accept": "application/json",
        }
        response = await self.server.request(method, path, query, headers, raw)
        self.warnings = response.warnings
        answer = json.loads(response.body)
        if response.status >= 400:
            raise RefusedError(response.status, answer)
        return answer

    async def get(self, path: str, query: str = "") -> Any:
        return await self.call("GET", path, query=query)

    async def create(self, path: str, body: Any, query: str = "") -> Any:
        return await self.call("POST", path, body, query)

    async def update(self, path: str, body: Any) -> Any:
        return await self.call("PUT", path, body)

    async def merge(self, path: str, body: Any, query: str = "") -> Any:
        return await self.call("PATCH", path, body, query, MERGE)

    async def delete(self, path: str, body: Any = None, query: str = "") -> Any:
        return await self.call("DELETE", path, body, query)

    async def exists(self, path: str) -> bool:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        status = (await self.server.request("GET", path, "", headers)).status
        assert status in (200, 404)
        return status == 200

    async def watch(self, path: str, query: str = "") -> "Watching":
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        response = await self.server.request("GET", path, f"watch=true&{query}", headers)
        assert response.stream is not None
        return Watching(response.stream)

    async def settle(self) -> None:
        """Let the server's own tasks finish what they have to do."""
        for _ in range(20):
            await asyncio.sleep(0)


class Watching:
    """One open watch."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self._lines: list[bytes] = []

    async def next(self) -> dict[str, Any]:
        while not self._lines:
            self._lines = (await anext(self._stream)).splitlines()
        event: dict[str, Any] = json.loads(self._lines.pop(0))
        return event

    async def names(self, count: int) -> list[tuple[str, str]]:
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]

    async def rest(self) -> list[dict[str, Any]]:
        lines = self._lines + [line async for chunk in self._stream for line in chunk.splitlines()]
        return [json.loads(line) for line in lines]

    async def close(self) -> None:
        await self._stream.aclose()  # type: ignore[attr-defined]  # every stream of the lab is a generator


@asynccontextmanager
async def running(clock: Clock | None = None, **options: Any) -> AsyncIterator[Api]:
    async with Server(clock or VirtualClock(), seed=1, **options) as server:
        yield Api(server)


def config_map(name: str, labels: dict[str, str] | None = None, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **({"labels": labels} if labels else {}), **meta}}


def pod(name: str, node: str = "", labels: dict[str, str] | None = None, **meta: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "nginx"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, "labels": labels or {"app": name}, **meta}, "spec": spec}


def owned_by(owner: dict[str, Any], *, blocks: bool = False) -> dict[str, Any]:
    meta = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
    }
    return {"ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": blocks}]}
