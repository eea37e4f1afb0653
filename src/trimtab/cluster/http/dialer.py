"""Opens connections: tries addresses in turn, through a proxy and with TLS if necessary."""

import asyncio
import base64
import os
import socket
import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from trimtab.cluster.http.connection import HttpConnection, Message
from trimtab.cluster.http.messages import CannotConnectError, DeadlineError, HttpProblem, header_line
from trimtab.cluster.http.tls import TlsWire


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server."""

    scheme: str
    host: str
    port: int
    path: str = ""
    authorization: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str) -> "Address":
        """Parse an address. A user and a password in it become a Basic authorization."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        authorization = None
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
        return cls(parts.scheme, parts.hostname or "", port, parts.path.rstrip("/"), authorization)

    @property
    def is_secure(self) -> bool:
        """Return whether the server uses TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Return host and port as in a CONNECT."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def host_header(self) -> str:
        """Return the value of the Host header, without the default port."""
        usual = 443 if self.is_secure else 80
        return self.authority.rpartition(":")[0] if self.port == usual else self.authority


class Dialer:
    """Opens connections to a server."""

    def __init__(
        self, server: Address, *, proxy: Address | None = None, server_name: str | None = None
    ) -> None:
        self.server = server
        self._proxy = proxy
        self._server_name = server_name or server.host

    @property
    def target_prefix(self) -> str:
        """Return the prefix of the path in a request. A proxy for plain HTTP needs the whole address."""
        if self._proxy is not None and not self.server.is_secure:
            return f"http://{self.server.host_header}{self.server.path}"
        return self.server.path

    @property
    def proxy_headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers of each request for a plain HTTP proxy."""
        if self._proxy is None or self.server.is_secure or self._proxy.authorization is None:
            return ()
        return (("Proxy-Authorization", self._proxy.authorization),)

    async def dial(self, context: ssl.SSLContext | None, seconds: float) -> HttpConnection:
        """Return a new connection. Raise CannotConnectError, DeadlineError or ssl.SSLError."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        connection = HttpConnection(loop)
        transport = await _connect(connection, self._proxy or self.server, seconds)
        try:
            async with asyncio.timeout_at(end):
                return await self._prepare(transport, connection, context)
        except TimeoutError as error:
            transport.abort()
            raise DeadlineError(f"no connection to {self.server.authority} in time") from error
        except BaseException:
            transport.abort()
            raise

    async def _prepare(
        self, transport: asyncio.Transport, connection: HttpConnection, context: ssl.SSLContext | None
    ) -> HttpConnection:
        """Add the proxy and TLS. Return the connection to use."""
        wire: Any = transport
        if self._proxy is not None and self._proxy.is_secure:
            wire = await _secure(wire, connection, context or _own_trust(), self._proxy.host)
        if self._proxy is not None and self.server.is_secure:
            connection.attach(wire)
            await self._tunnel(connection, self._proxy)
            connection = HttpConnection(asyncio.get_running_loop())
            wire.set_protocol(connection)
        if self.server.is_secure:
            assert context is not None
            wire = await _secure(wire, connection, context, self._server_name)
        connection.attach(wire)
        return connection

    async def _tunnel(self, connection: HttpConnection, proxy: Address) -> None:
        lines = header_line("Host", self.server.authority)
        if proxy.authorization is not None:
            lines += header_line("Proxy-Authorization", proxy.authorization)
        head = f"CONNECT {self.server.authority} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")
        try:
            # An accepted CONNECT has no body, as the answer to a HEAD has none.
            await connection.start(Message(head, "HEAD"), whole=False)
        except HttpProblem as problem:
            raise CannotConnectError(f"the proxy {proxy.authority} failed: {problem}") from problem
        if not 200 <= connection.status < 300:
            raise CannotConnectError(
                f"the proxy {proxy.authority} refused to connect to {self.server.authority}: {connection.status}"
            )


async def _connect(connection: HttpConnection, address: Address, seconds: float) -> asyncio.Transport:
    """Try the host's addresses in turn, each for a share of the remaining time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    try:
        async with asyncio.timeout_at(end):
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise _no_connection(address, error) from error
    problem = OSError("the name has no address")
    for index, place in enumerate(found):
        try:
            async with asyncio.timeout((end - loop.time()) / (len(found) - index)):
                return await _connect_to(connection, place)
        except OSError as error:
            problem = error.with_traceback(None)  # its frames would refer to this one
    raise _no_connection(address, problem) from problem


async def _connect_to(connection: HttpConnection, place: tuple[Any, ...]) -> asyncio.Transport:
    loop = asyncio.get_running_loop()
    family, kind, protocol, _, where = place
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await loop.sock_connect(sock, where)
        transport, _ = await loop.create_connection(lambda: connection, sock=sock)
    except BaseException:
        sock.close()
        raise
    return transport


async def _secure(wire: Any, above: asyncio.Protocol, context: ssl.SSLContext, name: str) -> TlsWire:
    layer = TlsWire(wire, above, context, name)
    wire.set_protocol(layer)
    await layer.handshake()
    return layer


def _own_trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _no_connection(address: Address, error: OSError) -> HttpProblem:
    if isinstance(error, TimeoutError) and error.errno is None:
        return DeadlineError(f"no connection to {address.host}:{address.port} in time")
    reason = error.strerror or str(error) or type(error).__name__
    if error.errno and not isinstance(error, socket.gaierror):
        reason = os.strerror(error.errno)  # asyncio's own text repeats the address instead of the reason
    return CannotConnectError(f"cannot connect to {address.host}:{address.port}: {reason}")
