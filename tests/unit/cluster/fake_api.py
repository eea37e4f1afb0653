"""A very small API server for the client's tests: an ASGI application with lists, pages, watches and a fault hook."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

Json = dict[str, Any]


class Incoming:
    """A request as the fault hook sees it."""

    def __init__(self, scope: Json, body: bytes) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: dict[str, str] = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
        self.headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.body = body

    @property
    def verb(self) -> str:
        if self.method != "GET":
            return self.method
        return "WATCH" if self.query.get("watch") else "LIST"


class Answer:
    """How the hook answers instead of the server; `chunks` may be cut short with `complete=False`."""

    def __init__(
        self, status: int, body: Any = b"", *, headers: Any = (), complete: bool = True, then: Any = None
    ):
        self.status = status
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = headers
        self.complete = complete
        self.then = then


def status(code: int, reason: str = "", message: str = "", **extra: Any) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or reason,
        **extra,
    }


class FakeApi:
    """One flat collection of objects, served under whatever resource path is asked for."""

    def __init__(self) -> None:
        self.version = 100
        self.oldest = 0
        self.objects: dict[tuple[str, str], Json] = {}
        self.log: list[tuple[int, str, Json]] = []
        self.requests: list[Incoming] = []
        self.fault: Callable[[Incoming], Answer | Awaitable[Answer | None] | None] | None = None
        self.alter: Callable[[bytes], list[bytes]] | None = None
        self.changed = asyncio.Condition()
        self.writes: list[Incoming] = []

    def count(self) -> Counter[str]:
        return Counter(request.verb for request in self.requests)

    async def put(self, name: str, namespace: str = "default", **fields: Any) -> Json:
        self.version += 1
        old = self.objects.get((namespace, name))
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": old["metadata"]["uid"] if old else f"uid-{self.version}",
            "resourceVersion": str(self.version),
            **fields.pop("metadata", {}),
        }
        thing = {"kind": "Pod", "apiVersion": "v1", "metadata": meta, **fields}
        self.objects[namespace, name] = thing
        await self._publish("MODIFIED" if old else "ADDED", thing)
        return thing

    async def remove(self, name: str, namespace: str = "default") -> None:
        self.version += 1
        thing = self.objects.pop((namespace, name))
        thing = {**thing, "metadata": {**thing["metadata"], "resourceVersion": str(self.version)}}
        await self._publish("DELETED", thing)

    def compact(self) -> None:
        self.oldest = self.version
        self.log.clear()

    async def _publish(self, kind: str, thing: Json) -> None:
        self.log.append((self.version, kind, thing))
        async with self.changed:
            self.changed.notify_all()

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        request = Incoming(scope, body)
        self.requests.append(request)
        answer = self.fault(request) if self.fault else None
        if answer is not None and not isinstance(answer, Answer):
            answer = await answer
        if answer is not None:
            await self._send(send, answer)
        elif request.verb == "WATCH":
            await self._watch(request, send)
        else:
            await self._send(send, self._serve(request))

    def _serve(self, request: Incoming) -> Answer:
        if request.method == "GET":
            return self._list(request)
        self.writes.append(request)
        return Answer(200, {"kind": "Pod", "metadata": {"name": "written", "resourceVersion": "1"}})

    def _list(self, request: Incoming) -> Answer:
        keys = sorted(self.objects)
        start = int(request.query.get("continue", "0").partition("@")[0])
        as_of = request.query.get("continue", f"0@{self.version}").partition("@")[2]
        if int(as_of) < self.oldest:
            return Answer(410, status(410, "Expired", "the continue token is too old"))
        limit = int(request.query.get("limit", "0")) or len(keys) + 1
        page = [self.objects[key] for key in keys[start : start + limit]]
        more = f"{start + limit}@{as_of}" if start + limit < len(keys) else ""
        return Answer(
            200, {"kind": "PodList", "metadata": {"resourceVersion": as_of, "continue": more}, "items": page}
        )

    async def _watch(self, request: Incoming, send) -> None:
        position = int(request.query["resourceVersion"])
        if position < self.oldest:
            await self._send(send, Answer(410, status(410, "Expired", "too old resource version")))
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        loop = asyncio.get_running_loop()
        end = loop.time() + float(request.query["timeoutSeconds"])
        while True:
            if position < self.oldest:
                await self._line(send, {"type": "ERROR", "object": status(410, "Expired", "too old")})
                break
            position = await self._tell(send, position)
            if loop.time() >= end:
                # What happened at the very end came before the bookmark, which says that nothing is missing.
                meta = {"resourceVersion": str(self.version)}
                await self._line(send, {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": meta}})
                break
            await self._wait_for_news(end - loop.time(), position)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send, position: int) -> int:
        for version, kind, thing in [entry for entry in self.log if entry[0] > position]:
            await self._line(send, {"type": kind, "object": thing})
            position = version
        return position

    async def _wait_for_news(self, seconds: float, position: int) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0)), self.changed:
                await self.changed.wait_for(lambda: self._has_news(position))
        except TimeoutError:
            pass

    def _has_news(self, position: int) -> bool:
        return position < self.oldest or (bool(self.log) and self.log[-1][0] > position)

    async def _line(self, send, event: Json) -> None:
        line = json.dumps(event).encode() + b"\n"
        for part in self.alter(line) if self.alter else [line]:
            await send({"type": "http.response.body", "body": part, "more_body": True})

    async def _send(self, send, answer: Answer) -> None:
        headers = [(name.encode(), value.encode()) for name, value in answer.headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        if not answer.complete:
            await send({"type": "http.response.body", "body": answer.body, "more_body": True})
            if answer.then is not None:
                await answer.then
            return
        await send({"type": "http.response.body", "body": answer.body, "more_body": False})
