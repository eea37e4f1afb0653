"""As much of a Prometheus as rules ask, with answers that tests choose; also any other server that misbehaves."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl

from trimtab.serving.server import HttpServer


class FakePrometheus:
    """Answers queries from a table of vectors; `fault` answers instead of it."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.names_in: dict[str, list[str]] = {}
        """Names by namespace, for questions about one namespace."""
        self.vectors: dict[str, list[tuple[dict[str, str], Any]]] = {}
        self.default: list[tuple[dict[str, str], Any]] = []
        self.queries: list[str] = []
        self.requests: list[dict[str, str]] = []
        self.fault: Any = None
        self.at = 0.0
        self.now = lambda: self.at

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests.append({name.decode(): value.decode() for name, value in scope["headers"]})
        body = (await receive()).get("body", b"")
        form = dict(parse_qsl(body.decode()))
        self.queries += [form["query"]] if "query" in form else []
        if self.fault is not None:
            status, data, headers = await self.fault(form.get("query", "")) or (0, None, ())
            if status:
                await answer(send, status, data, headers)
                return
        if scope["path"].endswith("/values"):
            selector = dict(parse_qsl(scope["query_string"].decode()))["match[]"]
            asked = (names for place, names in self.names_in.items() if f'namespace="{place}"' in selector)
            await answer(send, 200, {"status": "success", "data": next(asked, self.names)})
            return
        result = [
            {"metric": labels, "value": [self.now(), value]}
            for labels, value in self.vectors.get(form["query"], self.default)
        ]
        await answer(send, 200, {"status": "success", "data": {"resultType": "vector", "result": result}})


def failing(status: int, data: Any = b"", headers: Any = ()) -> Any:
    """Return a fault that answers every query like this."""

    async def fault(_query: str) -> tuple[int, Any, Any]:
        return status, data, headers

    return fault


def refusing(part: str, error: str = "bad_data") -> Any:
    """Return a fault that refuses queries with `part` in them: what Prometheus cannot parse, or cannot evaluate."""

    async def fault(query: str) -> tuple[int, Any, Any] | None:
        body = {"status": "error", "errorType": error, "error": "parse error: unexpected character"}
        return (400 if error == "bad_data" else 422, body, ()) if part in query else None

    return fault


def answering(status: int, kind: str, text: str) -> Any:
    """Return a fault that answers every query with an error of Prometheus, or with a text if it has no kind."""
    return failing(status, {"status": "error", "errorType": kind, "error": text} if kind else text.encode())


async def hanging(_query: str) -> None:
    """Never answer."""
    await asyncio.Event().wait()


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI application on loopback and give its address."""
    server = HttpServer(app)
    await server.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        await server.stop(grace=0)


async def answer(send: Any, status: int, body: Any, headers: Any = ()) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": names})
    await send({"type": "http.response.body", "body": data})
