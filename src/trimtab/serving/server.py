"""Serves an ASGI application on a port of the running event loop.

The lab, the adapter, the webhooks, the dashboard and the health port all use it: uvicorn's HTTP/1.1 protocol on our own
server, with TLS if a context is given and limits for slow and greedy clients. The caller decides when to stop. uvicorn's
own server takes over signals and the loop, so it is not used. asyncio's server starts a TLS handshake, which takes 0.28 MiB,
for each client, so connections are accepted and counted here before.
"""

import asyncio
import errno
import logging
import socket
import ssl
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from trimtab.serving.connections import ClientConnection, ClientLimits, Connections, OncePerMinute
from trimtab.serving.protocol import CERTIFICATES, BoundedProtocol

__all__ = ["CERTIFICATES", "ClientLimits", "HttpServer", "served"]

log = logging.getLogger(__name__)

GRACE_SECONDS = 2.0
"""Seconds that open requests get to finish."""

EVERYWHERE = "::"
"""Every address of this host, of IPv6 and, where the kernel has both, of IPv4."""
_HANDSHAKE_SECONDS = 10.0
_BACKLOG = 512
_ACCEPTED_AT_ONCE = 64
"""Connections that are accepted before other tasks run again."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_EXHAUSTED_SECONDS = 1.0
_TURNS = 5


class ListenError(OSError):
    """The address cannot be listened on."""


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
        )
        self.connections = Connections(limits)
        self._state = _State()
        self._tls = tls
        self._listeners: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._handshakes: set[asyncio.Task[None]] = set()
        self._full_log = OncePerMinute()

    @property
    def port(self) -> int:
        """Return the port that is listened on."""
        assert self._listeners, "only known after start"
        return int(self._listeners[0].getsockname()[1])

    async def start(self, host: str, port: int) -> None:
        """Listen. Port 0 picks a free port. Raise ListenError if the port is taken."""
        self._config.load()
        try:
            await self._bind(host, port)
        except OSError as error:
            raise ListenError(error.errno, error.strerror or str(error)) from error
        self._accepting = [asyncio.ensure_future(self._accept(listener)) for listener in self._listeners]

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Stop accepting, let running requests end within `grace` seconds, and close all connections."""
        if not self._listeners:
            return
        unfinished = [*self._accepting, *self._handshakes]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
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

    async def _bind(self, host: str, port: int) -> None:
        if host == EVERYWHERE:
            self._listeners = [_listen_everywhere(port)]
            return
        try:
            for family, address in await _resolve(host, port):
                self._listeners.append(_listen(family, address[:2]))
        except OSError:
            for listener in self._listeners:
                listener.close()
            self._listeners = []
            raise

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        accepted = 0
        while True:
            try:
                client, address = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    log.warning("cannot accept connections: %s; raise the limit of open files", error)
                    await asyncio.sleep(_EXHAUSTED_SECONDS)
                continue
            self._admit(client, str(address[0]))
            accepted += 1
            if accepted % _ACCEPTED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _admit(self, client: socket.socket, address: str) -> None:
        loop = asyncio.get_running_loop()
        ended = self.connections.ended
        connection = self.connections.open(address, loop.time())
        if self.connections.ended > ended:
            self._log_full(loop.time())
        if connection is None:
            client.close()
            return
        handshake = loop.create_task(self._connect(client, connection))
        connection.end = handshake.cancel
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _connect(self, client: socket.socket, connection: ClientConnection) -> None:
        protocol = BoundedProtocol(self._config, self._state, self.connections, connection)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol,
                client,
                ssl=self._tls,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if self._tls else None,
            )
        except (OSError, asyncio.CancelledError) as error:
            _free_frames(error)
            log.debug("%s: no connection: %s", connection.address, error)
        finally:
            if protocol.is_unused:
                self.connections.close(connection)
                client.close()

    def _log_full(self, now: float) -> None:
        if self._full_log.is_due(now):
            log.warning(
                "too many connections: stalled connections end, or new connections are refused",
                extra={"facts": {"connections": len(self.connections), "ended": self.connections.ended}},
            )


def _free_frames(error: BaseException | None) -> None:
    """Break the cycle of a failed handshake's error, which holds 0.28 MiB until the garbage collector runs."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _listen(family: int, address: tuple[Any, ...], *, has_both_families: bool = False) -> socket.socket:
    listener = socket.create_server(
        address, family=family, backlog=_BACKLOG, dualstack_ipv6=has_both_families
    )
    listener.setblocking(False)
    return listener


async def _resolve(host: str, port: int) -> list[tuple[int, Any]]:
    """Return the families and addresses of a host."""
    kind, passive = socket.SOCK_STREAM, socket.AI_PASSIVE
    try:
        # A number needs no thread, for which a virtual clock would not wait.
        found = socket.getaddrinfo(host, port, type=kind, flags=passive | socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=kind, flags=passive)
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _listen_everywhere(port: int) -> socket.socket:
    try:
        return _listen(socket.AF_INET6, (EVERYWHERE, port), has_both_families=True)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise
        return _listen(socket.AF_INET, ("0.0.0.0", port))  # noqa: S104 - a kernel without IPv6; asked for all


@asynccontextmanager
async def served(
    app: Any,
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    limits: ClientLimits = ClientLimits(),  # noqa: B008
) -> AsyncIterator[int]:
    """Serve `app` while the context lasts, and yield the port. Raise ListenError if the port is taken.

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
