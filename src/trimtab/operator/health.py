"""Serves /healthz, /livez, /readyz, /metrics and the records as an ASGI application.

`/livez` fails when the event loop is blocked, because then nothing answers. `/readyz` fails while a component has a
problem, and names it; `/readyz?verbose` also has the warnings. `callers` decides who may read names of objects.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from trimtab.operator.callers import CallerTrust, trust_of
from trimtab.operator.process import Component, Warns
from trimtab.operator.prometheus import WithoutNames

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Answer = tuple[int, str, bytes]
Page = Callable[[str], bytes | None]
Pages = Mapping[str, Page]

_NEEDS_TOKEN = "a token is needed: Authorization: Bearer TOKEN"  # noqa: S105 - a message
_NEEDS_LOOPBACK = (
    "without a token (TRIMTAB_TOKEN) this is served on loopback only: use kubectl port-forward, or set one"
)
_MISDIRECTED = "this server does not answer for that Host; use 127.0.0.1 or localhost"
_WITHHELD = "withheld: ask through loopback or with the token"


class HeldByAnotherReplica(Exception):  # noqa: N818 - HTTP's own word for it
    """Another replica decides about the object. The message names it."""


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
        self._nameless = WithoutNames(registry)
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
        trust = trust_of(scope, self._token)
        query = parse_qs(scope.get("query_string", b"").decode("ascii", "replace"), keep_blank_values=True)
        if path == "/readyz":
            return self._readiness(names=trust is CallerTrust.FULL, verbose="verbose" in query)
        if trust is CallerTrust.MISDIRECTED:
            return _text(421, _MISDIRECTED)
        if path == "/metrics":
            return self._metrics(trust)
        if trust is not CallerTrust.FULL:
            return _text(401, _NEEDS_TOKEN if self._token else _NEEDS_LOOPBACK)
        return self._page(path, query.get("name", [""])[0])

    def _metrics(self, trust: CallerTrust) -> Answer:
        if trust is CallerTrust.FULL:
            return 200, CONTENT_TYPE_LATEST, generate_latest(self._registry)
        if self._token:
            return _text(401, _NEEDS_TOKEN)
        return 200, CONTENT_TYPE_LATEST, generate_latest(self._nameless)

    def _page(self, path: str, name: str) -> Answer:
        page = self._pages.get(path)
        if page is None:
            return _text(404, f"nothing is served at {path}")
        try:
            body = page(name)
        except HeldByAnotherReplica as error:
            return _text(421, str(error))
        if body is None:
            return _text(404, f"nothing is known about {name!r}")
        return 200, "application/json", body

    def _readiness(self, *, names: bool, verbose: bool) -> Answer:
        """Return the problems of all components. Their names and texts name objects."""
        problems = {component.name: component.health() for component in self._components}
        warnings = {
            component.name: component.warnings()
            for component in self._components
            if isinstance(component, Warns)
        }
        shown = _listed if names else _counted
        answer: dict[str, Any] = {"ready": not any(problems.values()), "problems": shown(problems)}
        if verbose:
            answer["warnings"] = shown(warnings)
        body = json.dumps(answer, indent=1).encode()
        return 200 if answer["ready"] else 503, "application/json", body


def _listed(problems: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {
        f"{component}/{name}": problem
        for component, found in problems.items()
        for name, problem in found.items()
    }


def _counted(problems: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {component: f"{len(found)} {_WITHHELD}" for component, found in problems.items() if found}


def _text(status: int, text: str) -> Answer:
    return status, "text/plain; charset=utf-8", text.encode() + b"\n"
