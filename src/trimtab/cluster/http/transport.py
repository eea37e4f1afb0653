"""The HTTP transport: connections by lane, deadlines, credentials and error messages.

Credentials and TLS files are read again while the program runs, so that rotated tokens and authorities need no restart.
Responses are requested uncompressed, because in a cluster's network inflating costs more than reading.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from trimtab.clock import Clock
from trimtab.cluster.config.connection import Connection, Credential
from trimtab.cluster.errors import ClusterError, ConfigError, Fenced, TransportError, Unreachable
from trimtab.cluster.http.connection import HttpConnection, Message
from trimtab.cluster.http.dialer import Address, Dialer
from trimtab.cluster.http.messages import (
    CannotConnectError,
    DeadlineError,
    EndedError,
    FenceClosedError,
    HeadWriter,
    HttpProblem,
    TooBigError,
)
from trimtab.cluster.http.pool import ExchangeDeadline, Pool
from trimtab.cluster.http.tls import TlsContexts
from trimtab.cluster.transport import Request, Response


class HttpTransport:
    """Connections to an API server.

    Each lane has its own, so that none waits for those of another lane.
    """

    def __init__(self, clock: Clock, connection: Connection) -> None:
        self._connection = connection
        self._dialer = Dialer(
            Address.of(connection.server),
            proxy=Address.of(connection.proxy) if connection.proxy else None,
            server_name=connection.tls.server_name,
        )
        self._tls = TlsContexts(clock, connection)
        self._writer: tuple[str | None, HeadWriter] | None = None
        self._pools: dict[str, Pool] = {}

    async def request(self, request: Request) -> Response:
        """Send a request and return the whole response. After a 401, retry once with new credentials."""
        now, deadlines = asyncio.get_running_loop().time, request.deadlines
        started = now()
        response, used = await self._fetch(request, started + min(deadlines.total, deadlines.overall))
        if response.status == 401 and await self._has_other_credential(used):
            last_moment = started + deadlines.overall
            response, _ = await self._fetch(request, min(now() + deadlines.total, last_moment))
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator["_HttpStream"]:
        """Send a request and yield the response once its headers have arrived."""
        pool = self._connections(request)
        answer, used = await self._open(pool, request)
        if answer.status == 401 and await self._has_other_credential(used):
            pool.put_back(answer)
            answer, _ = await self._open(pool, request)
        try:
            yield _HttpStream(request, answer)
        finally:
            # An unread rest cannot be skipped cheaply, so its connection goes; that of a finished one is kept.
            pool.put_back(answer)

    async def close(self) -> None:
        """Close all connections."""
        pools, self._pools = list(self._pools.values()), {}
        await asyncio.gather(*(pool.close() for pool in pools))

    async def _has_other_credential(self, used: Credential) -> bool:
        """Reject a credential. Return whether there is another one to try."""
        credentials = self._connection.credentials
        credentials.reject(used)
        try:
            return await credentials.current() != used
        except ConfigError:
            return False  # the 401 says what is wrong

    async def _fetch(self, request: Request, end: float) -> tuple[Response, Credential]:
        try:
            credential = await self._connection.credentials.current()
            message, context = self._prepare(request, credential, request.max_body, request.into)
            limits = ExchangeDeadline(request.deadlines, end)
            return await self._connections(request).fetch(message, context, limits), credential
        except (HttpProblem, OSError, ValueError) as error:
            raise self._explain(request, error) from error

    async def _open(self, pool: Pool, request: Request) -> tuple[HttpConnection, Credential]:
        try:
            credential = await self._connection.credentials.current()
            message, context = self._prepare(request, credential, None)
            return await pool.open(message, context, ExchangeDeadline(request.deadlines)), credential
        except (HttpProblem, OSError, ValueError) as error:
            raise self._explain(request, error) from error

    def _prepare(
        self,
        request: Request,
        credential: Credential,
        max_body: int | None,
        into: Callable[[bytes], None] | None = None,
    ) -> tuple[Message, ssl.SSLContext | None]:
        payload = self._heads(credential.authorization).write(request)
        message = Message(payload, request.method, max_body, into=into, may_send=request.may_send)
        return message, self._tls.current(credential.certificate)

    def _heads(self, authorization: str | None) -> HeadWriter:
        if self._writer is None or self._writer[0] != authorization:
            fixed = {"Accept": "application/json", "Accept-Encoding": "identity", **self._connection.headers}
            if authorization is not None:
                fixed["Authorization"] = authorization
            headers = [*fixed.items(), *self._dialer.proxy_headers]
            prefix = self._dialer.target_prefix
            self._writer = (authorization, HeadWriter(self._dialer.server.host_header, prefix, headers))
        return self._writer[1]

    def _connections(self, request: Request) -> Pool:
        # Made on first use because it belongs to the running event loop.
        pool = self._pools.get(request.lane)
        if pool is None:
            pool = self._pools[request.lane] = Pool(self._dialer)
        return pool

    def _explain(self, request: Request, error: Exception) -> ClusterError:
        if isinstance(error, FenceClosedError):
            return Fenced(f"{request}: not sent, the lease may be lost")
        base = self._connection.server.rstrip("/")
        cause = error.__cause__ if isinstance(error, EndedError) else error
        if isinstance(cause, ssl.SSLError):
            # The authority's file may have been replaced: read it again next time.
            self._tls.forget()
            return TransportError(f"{request}: TLS with {base} failed: {cause}")
        if isinstance(error, DeadlineError):
            if error.had_begun:
                return TransportError(f"{request}: not answered within {request.deadlines.total:g} s")
            return TransportError(f"{request}: {base} sent no answer in time; is it reachable?")
        if isinstance(error, TooBigError):
            return TransportError(f"{request}: the answer has more than {request.max_body} bytes; not read")
        problem = _cut(request, error)
        is_unanswered = isinstance(error, EndedError) and error.untouched
        is_unreachable = is_unanswered or isinstance(error, CannotConnectError)
        return Unreachable(str(problem)) if is_unreachable else problem


class _HttpStream:
    """A running watch."""

    def __init__(self, request: Request, answer: HttpConnection) -> None:
        self._request = request
        self._answer = answer
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes as they arrive."""
        try:
            async for chunk in self._answer.chunks():
                yield chunk
        except HttpProblem as error:
            raise _cut(self._request, error) from error


def _cut(request: Request, error: Exception) -> TransportError:
    cut = "cut: " if isinstance(error, EndedError) else ""
    return TransportError(f"{request}: {cut}{str(error) or type(error).__name__}")
