"""A connection to a server, with one exchange at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from trimtab.cluster.http.messages import (
    BadAnswerError,
    DeadlineError,
    EndedError,
    FenceClosedError,
    Headers,
    HttpProblem,
    ResponseParser,
)

if TYPE_CHECKING:
    from trimtab.cluster.http.tls import ByteSink


NEVER = float("inf")


class Guarded(Protocol):
    """An exchange that must end by `deadline`, in the loop's time. The deadline may only move later."""

    deadline: float

    def expire(self) -> None:
        """End, because the deadline passed."""
        ...


class DeadlineTimer:
    """Calls `expire` on guarded exchanges when their deadline passes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._guarded: set[Guarded] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = NEVER

    def guard(self, exchange: Guarded) -> None:
        """Guard an exchange until it is released."""
        self._guarded.add(exchange)
        if exchange.deadline < self._rings_at:
            self._set(exchange.deadline)

    def release(self, exchange: Guarded) -> None:
        """Stop guarding an exchange."""
        self._guarded.discard(exchange)

    def stop(self) -> None:
        """Stop guarding all exchanges."""
        self._guarded.clear()
        self._set(NEVER)

    def _set(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if moment == NEVER else self._loop.call_at(moment, self._ring)
        self._rings_at = moment

    def _ring(self) -> None:
        now = self._loop.time()
        # Timers may ring a little early: a loop's clock has a resolution.
        for exchange in [exchange for exchange in self._guarded if exchange.deadline <= now]:
            self._guarded.discard(exchange)
            exchange.expire()
        self._set(min((exchange.deadline for exchange in self._guarded), default=NEVER))


_BUFFER = 1024 * 1024
"""Buffered bytes of a stream at which reading from the server pauses."""


class Message(msgspec.Struct, frozen=True):
    """A request as bytes, with what is needed to read its response."""

    payload: bytes
    method: str
    max_body: int | None = None
    """Maximum bytes of the response. None for a stream, whose reader has its own limits."""
    takes_encoded: bool = False
    """Whether the response may be compressed. Only proxies that forward it unread can accept that."""
    into: Callable[[bytes], None] | None = None
    """Receives the body of a successful response while it arrives."""
    may_send: Callable[[], bool] | None = None
    """The fence of a write. None if nothing forbids it."""


class HttpConnection(asyncio.Protocol):
    """A connection. Its owner sends a message, reads the whole response, and may then send the next."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.deadline = NEVER
        self.total = NEVER
        """The deadline after the response has begun."""
        self.idle_since = 0.0
        self.is_used = False
        """Whether an exchange used it before. Only then may an end mean that the server closed an idle connection."""
        self.closed: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._wire: ByteSink | None = None
        self._parser = ResponseParser()
        self._waiter: asyncio.Future[None] | None = None
        self._waits_for_all = False
        self._is_busy = False
        self._is_paused = False
        self._takes_encoded = False
        self._ended: HttpProblem | None = None

    @property
    def is_reusable(self) -> bool:
        """Return whether another message may be sent."""
        if self._ended is not None or self._is_busy or self._wire is None:
            return False
        return not self._wire.is_closing()

    @property
    def status(self) -> int:
        """Return the status of the response."""
        return self._parser.status

    @property
    def headers(self) -> Headers:
        """Return the headers of the response."""
        return self._parser.headers

    def attach(self, wire: "ByteSink") -> None:
        """Send through `wire` from now on: the socket, or TLS above it."""
        self._wire = wire

    def start(self, message: Message, *, whole: bool) -> "asyncio.Future[None]":
        """Send a message. The future is done when the response or its head has arrived."""
        if self._ended is not None:
            raise self._ended.again()
        assert self._wire is not None
        if message.may_send is not None and not message.may_send():
            raise FenceClosedError("the lease may be lost")
        self._is_busy = True
        self._waits_for_all = whole
        self._takes_encoded = message.takes_encoded
        self._parser.expect(with_body=message.method != "HEAD", max_body=message.max_body, into=message.into)
        self._waiter = self._loop.create_future()
        self._wire.write(message.payload)
        return self._waiter

    def finish(self) -> bytes:
        """Return the body of a whole response. `is_reusable` is valid after that."""
        self._finish()
        return self._parser.take_body()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in the chunks that the server sends. A watch sends an event per chunk."""
        parser = self._parser
        while True:
            if parser.parts:
                for part in self._take_parts():
                    yield part
            elif parser.is_complete:
                self._finish()
                return
            elif self._ended is not None:
                raise self._ended.again()
            else:
                await self._wait()

    def expire(self) -> None:
        """End the exchange because its deadline passed."""
        self._fail(DeadlineError("no whole answer in time", had_begun=self._parser.status != 0))

    def close(self) -> None:
        """Close an idle connection."""
        self._end(EndedError("closed", untouched=False))
        if self._wire is not None:
            self._wire.close()

    def abort(self) -> None:
        """Close at once. A running exchange ends with an error."""
        self._fail(EndedError("closed by us", untouched=False))

    # What the event loop calls.

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        if not self._is_busy:
            self._fail(BadAnswerError("the server spoke unasked"))
            return
        parser = self._parser
        try:
            parser.feed(data)
        except HttpProblem as problem:
            self._fail(problem)
            return
        if parser.status:
            self._progress()

    def eof_received(self) -> None:
        """Handle the server's end of stream, which ends a response without a length."""
        if self._is_busy and self._parser.end():
            self._wake()
        else:
            self._fail(self._end_of_connection(None))

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the loss of the socket."""
        self._end(self._end_of_connection(exc))
        # Both refer back to what holds them, and a body would wait for the garbage collector.
        self._wire = None
        self._parser.detach()
        if not self.closed.done():
            self.closed.set_result(None)

    def _end_of_connection(self, exc: Exception | None) -> EndedError:
        problem = EndedError(_words(exc), untouched=not self._parser.has_begun)
        problem.__cause__ = exc
        return problem

    async def _wait(self) -> None:
        if self._ended is not None:
            raise self._ended.again()
        self._waiter = self._loop.create_future()
        await self._waiter

    def _progress(self) -> None:
        parser = self._parser
        if parser.encoding and not self._takes_encoded:
            self._fail(BadAnswerError("answered compressed although we asked for plain bytes"))
            return
        self.deadline = self.total
        if parser.is_complete or not self._waits_for_all:
            self._wake()
            if parser.size > _BUFFER and not self._waits_for_all and not parser.is_complete:
                self._pause()

    def _finish(self) -> None:
        """Mark the response as read."""
        self._is_busy = False
        self.is_used = True
        self.deadline = NEVER
        if not self._parser.keeps_alive:
            self.close()

    def _take_parts(self) -> list[bytes]:
        parts, self._parser.parts = self._parser.parts, []
        self._parser.size = 0
        if self._is_paused:
            self._is_paused = False
            if self._wire is not None and self._ended is None:
                self._wire.resume_reading()
        return parts

    def _pause(self) -> None:
        if not self._is_paused and self._wire is not None:
            self._is_paused = True
            self._wire.pause_reading()

    def _fail(self, problem: HttpProblem) -> None:
        self._end(problem)
        if self._wire is not None:
            self._wire.abort()

    def _end(self, problem: HttpProblem) -> None:
        if self._ended is None:
            self._ended = problem.again()
            if self._waits_for_all:
                self._parser.drop_incomplete()
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(self._ended.again())

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _words(exc: Exception | None) -> str:
    if exc is None:
        return "the server ended the connection"
    return getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
