"""Live updates as server-sent events: at most one per second, with the changes that the viewer may see.

A stream that is not read fast enough skips refreshes and later sends their changes at once, so at most one message per
stream waits in memory. A stream that is not read at all ends.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final

from trimtab.dashboard.auth.rights import visible_to
from trimtab.dashboard.auth.sessions import Session
from trimtab.dashboard.pages.views import Changes
from trimtab.dashboard.web.http import Header, RefusedError, encode_headers, encode_json
from trimtab.dashboard.web.overview import OverviewCache
from trimtab.serving.asgi import Message, Receive, Send

MAX_STREAMS: Final = 64
"""Open streams of all viewers."""
MAX_VIEWER_STREAMS: Final = 16
"""Open streams of one viewer, so that one viewer does not take all of them."""
SEND_SECONDS: Final = 30.0
"""How long a client may take to read a message."""
QUIET_REFRESHES: Final = 15
"""Refreshes without a change after which an empty event is sent, so that no proxy closes the stream.

The page also notices by its absence that the connection is lost, which a comment would not show it.
"""

HEADERS: Final[tuple[Header, ...]] = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
)

IsOpen = Callable[[Session], Awaitable[bool]]
Ends = tuple["asyncio.Future[None]", ...]


class Streams:
    """All open streams."""

    def __init__(self, overview: OverviewCache, clock_speed: float = 1.0) -> None:
        self._overview = overview
        self._send_seconds = SEND_SECONDS * clock_speed
        self._open: Counter[str] = Counter()
        """The open streams of each viewer."""
        self._closing = asyncio.Event()

    @property
    def are_open(self) -> bool:
        """Return whether a stream is open."""
        return self._open.total() > 0

    def close(self) -> None:
        """End every stream, so that the server can stop."""
        self._closing.set()

    async def _wait_closing(self) -> None:
        await self._closing.wait()

    async def serve(
        self,
        session: Session,
        is_open: IsOpen,
        channel: tuple[Receive, Send],
        security: tuple[Header, ...],
    ) -> None:
        """Send changes until the viewer disconnects, the session ends or the program stops."""
        name = session.viewer.name
        if self._open.total() >= MAX_STREAMS or self._open[name] >= MAX_VIEWER_STREAMS:
            raise RefusedError(503, "too many pages are open; close some")
        if not self.are_open:
            self._overview.refresh()  # it is not refreshed while no stream is open
        receive, send = channel
        self._open[name] += 1
        disconnected = asyncio.ensure_future(_wait_disconnected(receive))
        closing = asyncio.ensure_future(self._wait_closing())
        start = {
            "type": "http.response.start",
            "status": 200,
            "headers": encode_headers((*security, *HEADERS)),
        }
        try:
            await self._send(send, start)
            # A review that fails ends the stream. The page opens it again, and is then told why.
            with suppress(RefusedError):
                async for message in self._messages(session, is_open, (disconnected, closing)):
                    await self._send(send, {"type": "http.response.body", "body": message, "more_body": True})
            with suppress(OSError):
                await self._send(send, {"type": "http.response.body", "body": b""})
        except TimeoutError:
            pass  # the client does not read; the server closes the connection of an incomplete response
        finally:
            self._open[name] -= 1
            self._open += Counter()  # drops viewers without streams
            disconnected.cancel()
            closing.cancel()

    async def _send(self, send: Send, message: Message) -> None:
        async with asyncio.timeout(self._send_seconds):
            await send(message)

    async def _messages(self, session: Session, is_open: IsOpen, ends: Ends) -> AsyncIterator[bytes]:
        overview, quiet = self._overview, 0
        version, visible = overview.version, await visible_to(session.viewer, overview.listings())
        yield b"retry: 2000\n\n"
        while await is_open(session):
            waiting = asyncio.ensure_future(overview.wait())
            await asyncio.wait((waiting, *ends), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if any(end.done() for end in ends):
                return
            before, visible = visible, await visible_to(session.viewer, overview.listings())
            changes = overview.changes_since(version, before, visible)
            version = overview.version
            quiet += 1
            if changes != Changes():
                quiet = 0
                yield _event(changes)
            elif quiet >= QUIET_REFRESHES:
                quiet = 0
                yield b"event: still\ndata: {}\n\n"


def _event(value: object) -> bytes:
    """Return one message. JSON contains no raw line ends, so it fits into one data line."""
    return b"event: rows\ndata: " + encode_json(value) + b"\n\n"


async def _wait_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
