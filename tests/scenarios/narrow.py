"""The rights of an installation with `watchNamespaces`: lists and watches of the whole cluster are forbidden.

A setting that narrows the watched namespaces narrows the rights with it. A test that narrows only the setting cannot
see a list that forgot its namespace.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tests.support.transport import failure
from trimtab.cluster.transport.transport import (
    Request,
    Response,
    ResponseStream,
    Transport,
)

CLUSTER_SCOPED = frozenset(
    {
        "nodes",
        "namespaces",
        "customresourcedefinitions",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "tokenreviews",
        "subjectaccessreviews",
    }
)
"""Kinds without a namespace: the chart binds the rights over them in the whole cluster."""


def namespace_of(path: str) -> str | None:
    """Return the namespace that a request is about; None for a whole cluster's namespaced objects."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        return rest[1]
    return "" if not rest or rest[0] in CLUSTER_SCOPED or parts[0] not in {"api", "apis"} else None


class Narrow:
    """A transport that answers 403 to whatever lies outside of the given namespaces."""

    def __init__(self, inner: Transport, namespaces: Sequence[str]) -> None:
        self._inner = inner
        self._namespaces = frozenset(namespaces)
        self.refused: list[str] = []

    async def request(self, request: Request) -> Response:
        if self._is_refused(request):
            return Response(403, {"content-type": "application/json"}, failure(403, "Forbidden"))
        return await self._inner.request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        if self._is_refused(request):
            yield _Forbidden()
            return
        async with self._inner.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self._inner.close()

    def _is_refused(self, request: Request) -> bool:
        namespace = namespace_of(request.path)
        refused = namespace != "" and namespace not in self._namespaces
        if refused:
            self.refused.append(f"{request.method} {request.path}")
        return refused


class _Forbidden:
    status = 403
    headers: dict[str, str] = {"content-type": "application/json"}

    async def chunks(self) -> AsyncIterator[bytes]:
        yield failure(403, "Forbidden")


def narrowed(transport: Transport, namespaces: Sequence[str]) -> Transport:
    """Return the transport with the rights that fit the setting."""
    return Narrow(transport, namespaces) if namespaces else transport
