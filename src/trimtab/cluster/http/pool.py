"""Connections that are kept between requests, and when a request may be sent a second time.

A server closes connections that were idle for long, and the news may cross a request on its way. A read that got not
a byte of an answer on a used connection is sent again on a new one. A write is not: it may have been carried out
(decision 0034). So that this stays rare, a connection that was idle for a second is looked at before it is used.
"""

import asyncio
import ssl

import msgspec

from trimtab.cluster.http.connection import HttpConnection, Message
from trimtab.cluster.http.deadlines import NEVER, DeadlineTimer
from trimtab.cluster.http.dialer import Dialer
from trimtab.cluster.http.errors import DeadlineError, EndedError
from trimtab.cluster.transport.transport import Deadlines, Response

_KEEP_ALIVE_SECONDS = 30.0
_LOOK_AFTER_SECONDS = 1.0
_CLOSE_SECONDS = 1.0
_READS = frozenset({"GET", "HEAD"})


class ExchangeDeadline(msgspec.Struct, frozen=True):
    """The time that an exchange has; `end` is the last moment, in the loop's time."""

    deadlines: Deadlines
    end: float = NEVER


class Pool:
    """The connections to one server; it belongs to the event loop that runs when it is made."""

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
        """Send and return the whole answer."""
        connection = await self._exchange(message, context, limits, whole=True)
        response = Response(connection.status, connection.headers, connection.finish())
        self.put_back(connection)
        return response

    async def open(
        self, message: Message, context: ssl.SSLContext | None, limits: ExchangeDeadline
    ) -> HttpConnection:
        """Send and return once the head of the answer is there; the connection is to be put back."""
        connection = await self._exchange(message, context, limits, whole=False)
        connection.deadline = NEVER
        return connection

    async def close(self) -> None:
        """Close all connections; what is under way ends with an error."""
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
        # The time to connect may be spent on the answer if there is a connection: evictions take ten seconds.
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
        connection.total = end
        connection.deadline = begin_by
        self._dog.guard(connection)
        try:
            await connection.start(message, whole=whole)
        except BaseException:
            # Also when the caller no longer waits: whatever comes later belongs to nobody.
            connection.abort()
            raise
        finally:
            self._dog.release(connection)
        return connection

    def _take(self, context: ssl.SSLContext | None) -> HttpConnection | None:
        """Return the connection that was used last, if that was so lately that nothing needs to be checked."""
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
        """Return a kept connection that can be used; close those that cannot."""
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
        """Keep a connection whose answer was read whole; drop any other."""
        if connection.is_reusable:
            connection.idle_since = self._loop.time()
            self._idle.append(connection)
            if self._sweeper is None:
                self._sweeper = self._loop.call_later(_KEEP_ALIVE_SECONDS, self._sweep)
        else:
            connection.abort()

    def _sweep(self) -> None:
        """Close what was idle for too long."""
        oldest = self._loop.time() - _KEEP_ALIVE_SECONDS
        kept = [one for one in self._idle if one.is_reusable and one.idle_since > oldest]
        for connection in self._idle:
            if connection not in kept:
                connection.close()
        self._idle = kept
        self._sweeper = self._loop.call_later(_KEEP_ALIVE_SECONDS, self._sweep) if kept else None
