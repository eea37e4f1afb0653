"""Calls of the server to webhooks and to aggregated API servers.

The address comes from stored objects: a URL, or a Service that is an ExternalName or has Endpoints. A backend in this
process can be registered for a service, so that no socket is needed under the virtual clock. Redirects are never followed
(CVE-2022-3172).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from trimtab.cluster.http.connection import HttpConnection, Message
from trimtab.cluster.http.dialer import Address, Dialer
from trimtab.cluster.http.messages import HeadWriter, HttpProblem
from trimtab.cluster.http.pool import ExchangeDeadline, Pool
from trimtab.cluster.transport import Deadlines
from trimtab.serving.certificates import KeyPair
from trimtab.serving.tls import load_pair
from trimtab_lab.apiserver.request import ApiResponse
from trimtab_lab.storage.store import ObjectStore

Backend = Callable[[str, str, Mapping[str, str], bytes], Awaitable[ApiResponse]]
#: Bytes of a response that is not a stream.
MAX_RESPONSE = 64 * 1024 * 1024
#: Endpoints whose TLS settings and connections are kept.
MAX_ENDPOINTS = 100
#: Characters of a request target that are not percent-encoded.
_SAFE = "!#$%&'()*+,/:;=?@[]~"


class OutboundError(Exception):
    """A call that failed."""


@dataclass(frozen=True)
class Endpoint:
    """The URL of a server and how its certificate is verified."""

    url: str
    server_name: str = ""
    ca_pem: str = ""
    skips_verification: bool = False
    service: tuple[str, str] = ("", "")
    #: Whether the server sends its front-proxy certificate, which vouches for the user in the headers.
    shows_certificate: bool = False


@dataclass(frozen=True)
class Call:
    """A request to another server."""

    method: str
    path_and_query: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: The user's groups; each is a header of its own on the wire.
    groups: tuple[str, ...] = ()


class Outbound:
    """Calls other servers: backends in this process, or over HTTP."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._backends: dict[tuple[str, str], Backend] = {}
        self._connections: dict[Endpoint, _Connections] = {}
        #: The key pair for aggregated servers; set when the lab listens on a socket.
        self.client_pair: KeyPair | None = None

    def register(self, namespace: str, name: str, backend: Backend) -> None:
        """Serve calls to a service in this process, by `backend(method, path, headers, body)`."""
        self._backends[(namespace, name)] = backend

    def endpoint_of_service(self, namespace: str, name: str, port: int, ca_pem: str) -> Endpoint:
        server_name = f"{name}.{namespace}.svc"
        if (namespace, name) in self._backends:
            return Endpoint("", server_name, ca_pem, service=(namespace, name))
        entry = self._store.get("services", f"{namespace}/{name}")
        if entry is None:
            raise OutboundError(f'service "{name}" not found')
        spec = entry.decoded()["spec"]
        if spec.get("type") == "ExternalName":
            return Endpoint(f"https://{spec['externalName']}:{port}", server_name, ca_pem)
        endpoints = self._store.get("endpoints", f"{namespace}/{name}")
        for subset in (endpoints.decoded().get("subsets") or ()) if endpoints is not None else ():
            for address in subset.get("addresses") or ():
                ports = subset.get("ports") or ()
                chosen = ports[0]["port"] if ports else port
                return Endpoint(f"https://{address['ip']}:{chosen}", server_name, ca_pem)
        raise OutboundError(f'no endpoints available for service "{name}"')

    async def call(self, endpoint: Endpoint, call: Call, timeout_seconds: float | None) -> ApiResponse:
        """Return the response of a call. A watch is returned as a stream."""
        backend = self._backends.get(endpoint.service)
        if backend is not None:
            return await backend(call.method, call.path_and_query, call.headers, call.body)
        connections = await self._connect(endpoint)
        try:
            return await connections.call(call, timeout_seconds)
        except (HttpProblem, OSError, ValueError) as problem:
            text = str(problem) or type(problem).__name__
            raise OutboundError(f"{call.method} {endpoint.url}{call.path_and_query}: {text}") from problem

    async def close(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.pool.close()

    async def _connect(self, endpoint: Endpoint) -> "_Connections":
        connections = self._connections.get(endpoint)
        if connections is None:
            if len(self._connections) >= MAX_ENDPOINTS:
                await self.close()
            connections = self._connections[endpoint] = _Connections(endpoint, self.client_pair)
        return connections


class _Connections:
    """The connections to one endpoint."""

    def __init__(self, endpoint: Endpoint, pair: KeyPair | None) -> None:
        address = Address.of(endpoint.url)
        self.pool = Pool(Dialer(address, server_name=endpoint.server_name or None))
        self._context = _context(endpoint, pair) if address.is_secure else None
        self._heads = HeadWriter(address.host_header, address.path, ())

    async def call(self, call: Call, timeout_seconds: float | None) -> ApiResponse:
        headers = [*call.headers.items(), *(("X-Remote-Group", group) for group in call.groups)]
        target = quote(call.path_and_query, safe=_SAFE)
        payload = self._heads.write_parts(call.method, target, headers, call.body)
        if "watch" in call.path_and_query.partition("?")[2]:
            return await self._watch(Message(payload, call.method, takes_encoded=True))
        message = Message(payload, call.method, MAX_RESPONSE, takes_encoded=True)
        response = await self.pool.fetch(message, self._context, _limits(timeout_seconds))
        return _response(response.status, response.headers, response.body)

    async def _watch(self, message: Message) -> ApiResponse:
        response = await self.pool.open(message, self._context, _limits(None))
        headers = response.headers
        if headers.get("transfer-encoding", "") == "chunked":
            media = headers.get("content-type", "application/json")
            return ApiResponse(response.status, content_type=media, stream=self._chunks(response))
        body = b"".join([chunk async for chunk in self._chunks(response)])
        return _response(response.status, headers, body)

    async def _chunks(self, response: HttpConnection) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.chunks():
                yield chunk
        finally:
            self.pool.put_back(response)


def _context(endpoint: Endpoint, pair: KeyPair | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=endpoint.ca_pem or None)
    if endpoint.skips_verification:
        # Only for an APIService with insecureSkipTLSVerify, as on a real server.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if endpoint.shows_certificate and pair is not None:
        load_pair(context, pair.certificate_pem, pair.key_pem)
    return context


def _limits(seconds: float | None) -> ExchangeDeadline:
    if seconds is None:
        # The client decides how long a watch lasts; only the connection has a deadline.
        return ExchangeDeadline(Deadlines(first_byte=float("inf")))
    return ExchangeDeadline(
        Deadlines(first_byte=seconds, total=seconds), asyncio.get_running_loop().time() + seconds
    )


def _response(status: int, headers: Mapping[str, str], body: bytes) -> ApiResponse:
    response = ApiResponse(status, body, headers.get("content-type", "application/json"))
    if "content-encoding" in headers:
        response.headers["Content-Encoding"] = headers["content-encoding"]
    return response
