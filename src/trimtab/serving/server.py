"""Serves an ASGI application on a port of the running event loop.

The lab, the adapter, the webhooks, the dashboard and the health port all use it: uvicorn's HTTP/1.1 protocol on our own
server, with TLS if a context is given and limits for slow and greedy clients. The caller decides when to stop. uvicorn's
own server takes over signals and the loop, so it is not used.
"""

import asyncio
import errno
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from trimtab.serving.protocol import CERTIFICATES, BoundedProtocol, ClientLimits

__all__ = ["CERTIFICATES", "ClientLimits", "HttpServer", "served"]

GRACE_SECONDS = 2.0
"""Seconds that open requests get to finish."""

EVERYWHERE = "::"
"""Every address of this host, of IPv6 and, where the kernel has both, of IPv4."""
_HANDSHAKE_SECONDS = 10.0
_BACKLOG = 512
_TURNS = 5


class HttpServer:
    """Listens from `start` to `stop`."""

    def __init__(
        self,
        app: Any,
        tls: ssl.SSLContext | None = None,
        *,
        limits: ClientLimits = ClientLimits(),  # noqa: B008 - a frozen value
    ) -> None:
        self._config = Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=limits.idle_seconds,
            limit_concurrency=limits.connections,
        )
        self._limits = limits
        self._state = _State()
        self._addresses: Counter[str] = Counter()
        self._tls = tls
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """Return the port that is listened on."""
        assert self._server is not None, "only known after start"
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, host: str, port: int) -> None:
        """Listen. Port 0 picks a free port. Raise OSError if the port is taken."""
        self._config.load()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: BoundedProtocol(self._config, self._state, self._addresses, self._limits),
            **_where(host, port),
            ssl=self._tls,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if self._tls else None,
            backlog=_BACKLOG,
            start_serving=False,
        )
        # A separate step: if it is cancelled, `stop` still has the socket and closes it.
        await self._server.start_serving()

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Stop accepting, let running requests end within `grace` seconds, and close all connections."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=grace)
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        # Transports close on the loop's next iterations, TLS transports some iterations later.
        for _ in range(_TURNS):
            await asyncio.sleep(0)


def _where(host: str, port: int) -> dict[str, Any]:
    if host != EVERYWHERE:
        return {"host": host, "port": port}
    try:
        return {"sock": socket.create_server((host, port), family=socket.AF_INET6, dualstack_ipv6=True)}
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise
        return {"host": "0.0.0.0", "port": port}  # noqa: S104 - a kernel without IPv6; asked for every address


@asynccontextmanager
async def served(
    app: Any,
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    limits: ClientLimits = ClientLimits(),  # noqa: B008
) -> AsyncIterator[int]:
    """Serve `app` while the context lasts, and yield the port. Raise OSError if the port is taken.

    Port 0 picks a free port.
    """
    server = HttpServer(app, tls, limits=limits)
    try:
        await server.start(host, port)
        yield server.port
    finally:
        await server.stop()


class _State(ServerState):
    """State of all connections. It formats the date header, which uvicorn's server would update once a second."""

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers of every response."""
        return [(b"date", formatdate(usegmt=True).encode())]

    @default_headers.setter
    def default_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Ignore the headers that uvicorn sets."""
