"""Calls the server makes itself: to webhooks and to aggregated API servers.

Where a call goes is decided by stored objects (a URL, or a Service that is an ExternalName or has Endpoints). A
backend in this process can be registered for a service, so that nothing needs a socket under the virtual clock.
Redirects are never followed (CVE-2022-3172).
"""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import aiohttp

from trimtab.lab.certificates import Certificate
from trimtab.lab.request import Response
from trimtab.lab.store import Store

Backend = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Response]]
#: Bytes of an answer that is not a stream; bigger ones are refused.
MAX_ANSWER = 64 * 1024 * 1024
#: Endpoints whose TLS settings are remembered.
MAX_CONTEXTS = 100


class OutboundError(Exception):
    """A call could not be made; the message says why."""


@dataclass(frozen=True)
class Endpoint:
    """Where to call, and how to trust what answers."""

    url: str
    server_name: str = ""
    ca_pem: str = ""
    skips_verification: bool = False
    service: tuple[str, str] = ("", "")
    #: Whether the server shows its front-proxy certificate, which vouches for the user it names.
    shows_certificate: bool = False


@dataclass(frozen=True)
class Call:
    """What to send."""

    method: str
    path_and_query: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: The user's groups; each is a header of its own on the wire.
    groups: tuple[str, ...] = ()


class Outbound:
    """Makes calls, in this process where a backend is registered, over HTTP otherwise."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._backends: dict[tuple[str, str], Backend] = {}
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[Endpoint, ssl.SSLContext] = {}
        #: What the server shows to aggregated servers; set when it listens on a socket.
        self.client_certificate: Certificate | None = None

    def register(self, namespace: str, name: str, backend: Backend) -> None:
        """Answer calls to a service in this process: `backend(method, path, headers, body)`."""
        self._backends[(namespace, name)] = backend

    def endpoint_of_service(self, namespace: str, name: str, port: int, ca_pem: str) -> Endpoint:
        """Return where a service answers."""
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

    async def call(self, endpoint: Endpoint, call: Call, timeout_seconds: float | None) -> Response:
        """Make a call and return its answer; a stream is handed on as one."""
        backend = self._backends.get(endpoint.service)
        if backend is not None:
            return await backend(call.method, call.path_and_query, call.headers, call.body)
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=False)
        try:
            answer = await self._session.request(
                call.method,
                endpoint.url + call.path_and_query,
                headers=[*call.headers.items(), *(("X-Remote-Group", one) for one in call.groups)],
                data=call.body or None,
                ssl=self._context(endpoint) if endpoint.url.startswith("https") else True,
                server_hostname=endpoint.server_name or None if endpoint.url.startswith("https") else None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_seconds, connect=5),
            )
            return await _read(answer)
        except (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError) as problem:
            text = str(problem) or type(problem).__name__
            raise OutboundError(f"{call.method} {endpoint.url}{call.path_and_query}: {text}") from problem

    def _context(self, endpoint: Endpoint) -> ssl.SSLContext:
        """Return the TLS settings of an endpoint, made once."""
        known = self._contexts.get(endpoint)
        if known is not None:
            return known
        context = ssl.create_default_context(cadata=endpoint.ca_pem or None)
        if endpoint.skips_verification:
            # Only an APIService that says insecureSkipTLSVerify comes here, as on a real server.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if endpoint.shows_certificate and self.client_certificate is not None:
            self.client_certificate.load_into(context)
        if len(self._contexts) >= MAX_CONTEXTS:
            self._contexts.clear()
        self._contexts[endpoint] = context
        return context

    async def close(self) -> None:
        """Close what is open."""
        if self._session is not None:
            await self._session.close()


async def _read(answer: aiohttp.ClientResponse) -> Response:
    media = answer.headers.get("content-type", "application/json")
    if answer.headers.get("transfer-encoding", "") == "chunked" and "watch" in str(answer.url.query_string):
        return Response(answer.status, content_type=media, stream=_chunks(answer))
    async with answer:
        body = await answer.content.read(MAX_ANSWER)
        while len(body) < MAX_ANSWER and not answer.content.at_eof():
            body += await answer.content.read(MAX_ANSWER - len(body))
    response = Response(answer.status, body, media)
    if "content-encoding" in answer.headers:
        response.headers["Content-Encoding"] = answer.headers["content-encoding"]
    return response


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with answer:
        async for chunk in answer.content.iter_any():
            yield chunk
