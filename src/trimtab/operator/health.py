"""Serves /healthz, /livez, /readyz, /metrics and the records as an ASGI application.

`/livez` fails when the event loop is blocked, because then nothing answers. `/readyz` fails while a component has a
problem, and names it. Metrics and records need the token, if one is set.
"""

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from trimtab.operator.process import Component

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Answer = tuple[int, str, bytes]
Page = Callable[[str], bytes | None]
Pages = Mapping[str, Page]


class HeldByAnotherReplica(Exception):  # noqa: N818 - HTTP's own word for it
    """Another replica decides about the object; the message names it."""


class HealthApp:
    """Answers monitoring and `trimtab explain`. It accepts GET and HEAD only."""

    def __init__(
        self,
        components: Sequence[Component],
        registry: CollectorRegistry,
        *,
        token: str = "",
        pages: Pages | None = None,
    ) -> None:
        self._components = components
        self._registry = registry
        self._token = token
        self._pages = pages or {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        status, kind, body = self._answer(scope)
        headers = [
            (b"content-type", kind.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _answer(self, scope: Message) -> Answer:
        path: str = scope["path"]
        if scope["method"] not in {"GET", "HEAD"}:
            return _text(405, "only GET is answered here")
        if path in {"/livez", "/healthz", "/health-check"}:  # the last is upstream's VPA's
            return _text(200, "ok")
        if path == "/readyz":
            return self._readiness()
        if not self._is_allowed(scope):
            return _text(401, "a token is needed: Authorization: Bearer TOKEN")
        if path == "/metrics":
            return 200, CONTENT_TYPE_LATEST, generate_latest(self._registry)
        return self._page(path, scope.get("query_string", b""))

    def _page(self, path: str, query: bytes) -> Answer:
        page = self._pages.get(path)
        if page is None:
            return _text(404, f"nothing is served at {path}")
        name = parse_qs(query.decode("ascii", "replace")).get("name", [""])[0]
        try:
            body = page(name)
        except HeldByAnotherReplica as error:
            return _text(421, str(error))
        if body is None:
            return _text(404, f"nothing is known about {name!r}")
        return 200, "application/json", body

    def _readiness(self) -> Answer:
        problems = {
            f"{component.name}/{name}": problem
            for component in self._components
            for name, problem in component.health().items()
        }
        body = json.dumps({"ready": not problems, "problems": problems}, indent=1).encode()
        return 503 if problems else 200, "application/json", body

    def _is_allowed(self, scope: Message) -> bool:
        if not self._token:
            return True
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        return hmac.compare_digest(given, f"Bearer {self._token}".encode())


def _text(status: int, text: str) -> Answer:
    return status, "text/plain; charset=utf-8", text.encode() + b"\n"
