"""Keeps connections between requests, and decides when a request may be repeated.

A server closes connections that were idle for long, which may coincide with a request. A read that received no byte of
a response on a used connection is repeated on a new one. A write is not, because it may have been carried out. See
docs/decisions/retry-reads-and-verify-writes.md. A connection that was idle for a second is checked before its use.
"""

import asyncio
import ssl

import msgspec

from trimtab.cluster.http.connection import NEVER, DeadlineTimer, HttpConnection, Message
from trimtab.cluster.http.dialer import Dialer
from trimtab.cluster.http.messages import DeadlineError, EndedError
from trimtab.cluster.transport import Deadlines, Response

_KEEP_ALIVE_SECONDS = 30.0
_LOOK_AFTER_SECONDS = 1.0
_CLOSE_SECONDS = 1.0
_READS = frozenset({"GET", "HEAD"})


class ExchangeDeadline(msgspec.Struct, frozen=True):
    """The deadlines of an exchange. `end` is the latest, in the loop's time."""

    deadlines: Deadlines
    end: float = NEVER


class Pool:
    """The connections to a server. A pool belongs to the event loop in which it is created."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._loop = asyncio.get_running_loop()
        self._dog = DeadlineTimer(self._loop)
        self._idle: list[HttpConnection] = []
        self._open: dict[HttpConnection, ssl.SSLContext | None] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    async def fetch(
        self, message: Message, context: ssl.SSLContext | None, limits: ExchangeDeadline
    ) -> Response:
        """Send a message and return the whole response."""
        connection = await self._exchange(message, context, limits, whole=True)
        response = Response(connection.status, connection.headers, connection.finish())
        self.put_back(connection)
        return response

    async def open(
        self, message: Message, context: ssl.SSLContext | None, limits: ExchangeDeadline
    ) -> HttpConnection:
        """Send a message and return once the head of the response has arrived.

        The caller puts the connection back.
        """
        connection = await self._exchange(message, context, limits, whole=False)
        connection.deadline = NEVER
        return connection

    async def close(self) -> None:
        """Close all connections. Running exchanges end with an error."""
        self._dog.stop()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._idle.clear()
        waiting = [connection.closed for connection in self._open]
        for connection in list(self._open):
            connection.close()
        if waiting:
            await asyncio.wait(waiting, timeout=_CLOSE_SECONDS)
        for connection in list(self._open):
            connection.abort()
        # Transports report their end on the loop's next turn; leave nothing open behind.
        await asyncio.sleep(0)

    async def _exchange(
        self, message: Message, context: ssl.SSLContext | None, limits: ExchangeDeadline, *, whole: bool
    ) -> HttpConnection:
        # With an idle connection, the time to connect is available for the response. Evictions take 10 s.
        deadlines = limits.deadlines
        begin_by = min(self._loop.time() + deadlines.connect + deadlines.first_byte, limits.end)
        connection = self._take(context) or await self._find(context) or await self._dial(context, limits)
        was_used = connection.is_used
        try:
            return await self._send(connection, message, begin_by, limits.end, whole=whole)
        except EndedError as error:
            if not (was_used and error.untouched and message.method in _READS):
                raise
        connection = await self._dial(context, limits)
        return await self._send(connection, message, begin_by, limits.end, whole=whole)

    async def _send(
        self, connection: HttpConnection, message: Message, begin_by: float, end: float, *, whole: bool
    ) -> HttpConnection:
        if self._loop.time() >= end:
            # Also if the event loop stood still while it looked for a connection.
            self.put_back(connection)
            raise DeadlineError("no time left to send")
        connection.total = end
        connection.deadline = begin_by
        self._dog.guard(connection)
        try:
            await connection.start(message, whole=whole)
        except BaseException:
            # Also when the caller was cancelled, since later bytes have no reader.
            connection.abort()
            raise
        finally:
            self._dog.release(connection)
        return connection

    def _take(self, context: ssl.SSLContext | None) -> HttpConnection | None:
        """Return the most recent connection if it was used too lately to need a check."""
        if not self._idle:
            return None
        connection = self._idle[-1]
        if (
            self._loop.time() - connection.idle_since > _LOOK_AFTER_SECONDS
            or not connection.is_reusable
            or self._open.get(connection) is not context
        ):
            return None
        return self._idle.pop()

    async def _find(self, context: ssl.SSLContext | None) -> HttpConnection | None:
        """Return an idle connection that works, and close those that do not."""
        while self._idle:
            connection = self._idle.pop()
            if self._loop.time() - connection.idle_since > _LOOK_AFTER_SECONDS:
                # Two turns of the loop: an end that has already arrived is noticed before we write.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            if not connection.is_reusable:
                continue
            if self._open.get(connection) is context:
                return connection
            connection.close()  # made with certificates that have since been replaced
        return None

    async def _dial(self, context: ssl.SSLContext | None, limits: ExchangeDeadline) -> HttpConnection:
        seconds = min(limits.deadlines.connect, limits.end - self._loop.time())
        if seconds <= 0:
            raise DeadlineError("no time left to connect")
        connection = await self._dialer.dial(context, seconds)
        self._open[connection] = context
        connection.closed.add_done_callback(lambda _: self._open.pop(connection, None))
        return connection

    def put_back(self, connection: HttpConnection) -> None:
        """Keep a connection whose response was read whole, else close it."""
        if connection.is_reusable:
            connection.idle_since = self._loop.time()
            self._idle.append(connection)
            if self._sweeper is None:
                self._sweeper = self._loop.call_later(_KEEP_ALIVE_SECONDS, self._sweep)
        else:
            connection.abort()

    def _sweep(self) -> None:
        """Close connections that were idle for too long."""
        oldest = self._loop.time() - _KEEP_ALIVE_SECONDS
        kept = [
            connection
            for connection in self._idle
            if connection.is_reusable and connection.idle_since > oldest
        ]
        for connection in self._idle:
            if connection not in kept:
                connection.close()
        self._idle = kept
        self._sweeper = self._loop.call_later(_KEEP_ALIVE_SECONDS, self._sweep) if kept else None
