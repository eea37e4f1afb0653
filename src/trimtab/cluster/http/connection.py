"""One connection to a server, and one exchange at a time on it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import msgspec

from trimtab.cluster.http.deadlines import NEVER
from trimtab.cluster.http.errors import (
    BadAnswerError,
    DeadlineError,
    EndedError,
    HttpProblem,
)
from trimtab.cluster.http.responses import Headers, ResponseParser

if TYPE_CHECKING:
    from trimtab.cluster.http.tls import ByteSink

_BUFFER = 1024 * 1024
"""Bytes of a stream that may wait for its reader before the server has to."""


class Message(msgspec.Struct, frozen=True):
    """A request as bytes, and what must be known about it to read its answer."""

    payload: bytes
    method: str
    max_body: int | None = None
    """Bytes of the answer at most; None for a stream, whose reader has limits of its own."""
    takes_encoded: bool = False
    """Whether the answer may be compressed; only who hands it on unread can say yes."""
    into: Callable[[bytes], None] | None = None
    """Takes the body of a good answer while it arrives."""


class HttpConnection(asyncio.Protocol):
    """A connection; its owner sends one message, reads the whole answer, then may send the next."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.deadline = NEVER
        self.total = NEVER
        """The deadline once an answer has begun."""
        self.idle_since = 0.0
        self.is_used = False
        """Whether an exchange went over it before: only then may an end mean that the server was tired of it."""
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
        """Return whether another message may be sent: the last answer is whole and nothing says otherwise."""
        if self._ended is not None or self._is_busy or self._wire is None:
            return False
        return not self._wire.is_closing()

    @property
    def status(self) -> int:
        """Return the status of the answer."""
        return self._parser.status

    @property
    def headers(self) -> Headers:
        """Return the headers of the answer."""
        return self._parser.headers

    def attach(self, wire: "ByteSink") -> None:
        """Use `wire` from now on: the socket, or TLS above it."""
        self._wire = wire

    def start(self, message: Message, *, whole: bool) -> "asyncio.Future[None]":
        """Send; the future is done when the answer is there, all of it or its head."""
        if self._ended is not None:
            raise self._ended
        assert self._wire is not None
        self._is_busy = True
        self._waits_for_all = whole
        self._takes_encoded = message.takes_encoded
        self._parser.expect(with_body=message.method != "HEAD", max_body=message.max_body, into=message.into)
        self._waiter = self._loop.create_future()
        self._wire.write(message.payload)
        return self._waiter

    def finish(self) -> bytes:
        """Return the body of a whole answer; after that, `is_reusable` tells whether the server wants more."""
        self._finish()
        return self._parser.take_body()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes, in the pieces that the server sent: a watch sends an event in each."""
        parser = self._parser
        while True:
            if parser.parts:
                for part in self._take_parts():
                    yield part
            elif parser.is_complete:
                self._finish()
                return
            elif self._ended is not None:
                raise self._ended
            else:
                await self._wait()

    def expire(self) -> None:
        """End the exchange: its time is up."""
        self._fail(DeadlineError("no whole answer in time", had_begun=self._parser.status != 0))

    def close(self) -> None:
        """Close in order; for a connection without an exchange."""
        self._end(EndedError("closed", untouched=False))
        if self._wire is not None:
            self._wire.close()

    def abort(self) -> None:
        """Close at once; an exchange under way ends with an error."""
        self._fail(EndedError("closed by us", untouched=False))

    # What the event loop calls.

    def data_received(self, data: bytes) -> None:
        """Read on in the answer."""
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
        """Take note of the server's own end, which is how an answer without a length ends."""
        if self._is_busy and self._parser.end():
            self._wake()
        else:
            self._fail(self._end_of_connection(None))

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note that the socket is gone."""
        self._end(self._end_of_connection(exc))
        if not self.closed.done():
            self.closed.set_result(None)

    def _end_of_connection(self, exc: Exception | None) -> EndedError:
        problem = EndedError(_words(exc), untouched=not self._parser.has_begun)
        problem.__cause__ = exc
        return problem

    async def _wait(self) -> None:
        if self._ended is not None:
            raise self._ended
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
        """Take note that the answer was read whole."""
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
            self._ended = problem
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_exception(self._ended)

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _words(exc: Exception | None) -> str:
    if exc is None:
        return "the server ended the connection"
    return getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
