"""How the API server reaches our webhooks, and how they break: dead, hanging, or signed by somebody unknown."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

import trustme

from tests.support.asgi import AsgiTransport
from trimtab.cluster.transport import Request
from trimtab.operator.vertical.admission.app import AdmissionApp
from trimtab.serving.server import HttpServer
from trimtab_lab.apiserver.outbound import Backend
from trimtab_lab.apiserver.request import ApiResponse

LOOPBACK = "127.0.0.1"


class Broken(Enum):
    """What is wrong with a webhook."""

    DEAD = "nobody answers"
    HANGING = "somebody takes the connection and says nothing"
    DISTRUSTED = "its certificate is of an authority that the API server does not know"


def backend(app: AdmissionApp) -> Backend:
    """Let the lab call our application without a socket."""
    transport = AsgiTransport(app)

    async def answer(method: str, path: str, headers: Any, body: bytes) -> ApiResponse:
        found = await transport.request(Request(method, path.partition("?")[0], headers=headers, body=body))
        return ApiResponse(found.status, found.body)

    return answer


async def _dead(_method: str, _path: str, _headers: Any, _body: bytes) -> ApiResponse:
    return ApiResponse(503, b"nobody is here")


async def _hanging(_method: str, _path: str, _headers: Any, _body: bytes) -> ApiResponse:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


BROKEN_BACKENDS: dict[Broken, Backend] = {Broken.DEAD: _dead, Broken.HANGING: _hanging}
"""Without a socket there is no certificate to distrust."""


@asynccontextmanager
async def _silent(port: int) -> AsyncIterator[None]:
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _reader, writer: writers.append(writer), LOOPBACK, port)
    try:
        yield
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def standing_in(how: Broken, port: int, app: AdmissionApp) -> AsyncIterator[None]:
    """Take the place of a webhook on its port, in the way that it is broken."""
    if how is Broken.HANGING:
        async with _silent(port):
            yield
    elif how is Broken.DISTRUSTED:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert(LOOPBACK, "localhost").configure_cert(context)
        http = HttpServer(app, context)
        await http.start(LOOPBACK, port)
        try:
            yield
        finally:
            await http.stop()
    else:
        yield
