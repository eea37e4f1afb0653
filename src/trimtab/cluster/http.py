"""The transport over HTTP/1.1, by aiohttp: keep-alive, deadlines, bounded concurrency, no redirects.

Credentials and TLS files are looked at again while we run, so that rotated tokens and authorities need no restart
(faults F16 and F20). Answers are asked for uncompressed: on a cluster's network inflating costs more than reading.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from trimtab.clock import Clock
from trimtab.cluster.config.connection import Connection, Credential
from trimtab.cluster.config.tls import ClientCertificate
from trimtab.cluster.errors import TransportError
from trimtab.cluster.transport import Request, Response

_KEEP_ALIVE_SECONDS = 30.0
_TLS_CHECK_SECONDS = 60.0
_READ_BUFFER = 256 * 1024


class HttpTransport:
    """Connections to one API server; at most `concurrency` requests are in flight, watches not counted."""

    def __init__(self, clock: Clock, connection: Connection, *, concurrency: int = 32) -> None:
        self._connection = connection
        self._base = connection.server.rstrip("/")
        self._turns = asyncio.Semaphore(concurrency)
        self._session: aiohttp.ClientSession | None = None
        self._tls = _TlsContexts(clock, connection)

    async def request(self, request: Request) -> Response:
        """Send and return the whole answer; a 401 is tried once more with fresh credentials."""
        async with self._turns:
            response = await self._exchange(request)
            if response.status == 401:
                self._connection.credentials.reject()
                response = await self._exchange(request)
            return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["_HttpStream"]:
        """Send and yield once the headers are there."""
        answer = await self._open(request)
        if answer.status == 401:
            answer.close()
            self._connection.credentials.reject()
            answer = await self._open(request)
        try:
            yield _HttpStream(request, answer)
        finally:
            # An unread rest cannot be skipped cheaply, so its connection goes; a finished one is already back.
            answer.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(request.deadlines.total):
                answer = await self._open(request)
                async with answer:
                    body = await _read_body(request, answer)
                    return Response(answer.status, _lower(answer), body)
        except TimeoutError as error:
            raise TransportError(f"{request}: not answered within {request.deadlines.total:g} s") from error

    async def _open(self, request: Request) -> aiohttp.ClientResponse:
        credential = await self._connection.credentials.current()
        try:
            async with asyncio.timeout(request.deadlines.connect + request.deadlines.first_byte):
                answer = await self._send(request, credential)
        except TimeoutError as error:
            raise TransportError(
                f"{request}: {self._base} sent no answer in time; is it reachable?"
            ) from error
        except ssl.SSLError as error:
            self._tls.forget()
            raise TransportError(f"{request}: TLS with {self._base} failed: {error}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
                # The authority's file may have been replaced: read it again next time.
                self._tls.forget()
            raise TransportError(f"{request}: {_explain(error)}") from error
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            answer.close()
            raise TransportError(f"{request}: answered compressed although we asked for plain bytes")
        return answer

    async def _send(self, request: Request, credential: Credential) -> aiohttp.ClientResponse:
        url = URL(f"{self._base}{request.path}{_query(request)}", encoded=True)
        return await self._open_session().request(
            request.method,
            url,
            data=request.body,
            headers=self._headers(request, credential),
            ssl=self._tls.context(credential.certificate),
            server_hostname=self._connection.tls.server_name,
            proxy=self._connection.proxy,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=request.deadlines.connect),
        )

    def _headers(self, request: Request, credential: Credential) -> Mapping[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", **self._connection.headers}
        if credential.authorization is not None:
            headers["Authorization"] = credential.authorization
        return {**headers, **request.headers}

    def _open_session(self) -> aiohttp.ClientSession:
        # Made on first use because it belongs to the running event loop.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                read_bufsize=_READ_BUFFER,
            )
        return self._session


class _TlsContexts:
    """Builds the TLS context once, and again when a file or the client certificate changed."""

    def __init__(self, clock: Clock, connection: Connection) -> None:
        self._clock = clock
        self._settings = connection.tls
        self._secure = connection.server.startswith("https:")
        self._built: tuple[ClientCertificate | None, ssl.SSLContext] | None = None
        self._version: tuple[tuple[int, int], ...] = ()
        self._checked = 0.0

    def context(self, certificate: ClientCertificate | None) -> ssl.SSLContext | bool:
        """Return the context to use now."""
        if not self._secure:
            return True
        now = self._clock.monotonic()
        if (
            self._built is not None
            and self._built[0] is certificate
            and now - self._checked < _TLS_CHECK_SECONDS
        ):
            return self._built[1]
        return self._refresh(certificate, now)

    def forget(self) -> None:
        """Read the files again at the next request."""
        self._built = None

    def _refresh(self, certificate: ClientCertificate | None, now: float) -> ssl.SSLContext:
        version = self._settings.version()
        if self._built is None or self._built[0] is not certificate or version != self._version:
            self._built = (certificate, self._settings.context(certificate))
        self._version = version
        self._checked = now
        return self._built[1]


class _HttpStream:
    """A watch in progress."""

    def __init__(self, request: Request, answer: aiohttp.ClientResponse) -> None:
        self._request = request
        self._answer = answer
        self.status = answer.status
        self.headers = _lower(answer)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes as they come."""
        try:
            async for chunk in self._answer.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError(f"{self._request}: cut: {_explain(error)}") from error


async def _read_body(request: Request, answer: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in answer.content.iter_any():
            size += len(chunk)
            if size > request.max_body:
                raise TransportError(
                    f"{request}: the answer has more than {request.max_body} bytes; not read"
                )
            parts.append(chunk)
    except (aiohttp.ClientError, OSError) as error:
        raise TransportError(f"{request}: cut: {_explain(error)}") from error
    return b"".join(parts)


def _query(request: Request) -> str:
    return f"?{urlencode(request.query)}" if request.query else ""


def _lower(answer: aiohttp.ClientResponse) -> Mapping[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


def _explain(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        # aiohttp's own text shows the TLS context as a Python object, which tells nobody anything.
        return f"cannot connect to {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    return str(error) or type(error).__name__
