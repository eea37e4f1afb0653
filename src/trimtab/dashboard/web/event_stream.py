"""Live updates as server-sent events: at most one per second, with the changes that the viewer may see."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from trimtab.dashboard.auth.rights import Viewer, visible_to
from trimtab.dashboard.pages.views import Changes
from trimtab.dashboard.web.http import Header, RefusedError, encode_headers, encode_json
from trimtab.dashboard.web.overview import OverviewCache
from trimtab.serving.asgi import Receive, Send

MAX_STREAMS: Final = 64
"""Open streams of all viewers."""
QUIET_REFRESHES: Final = 15
"""Refreshes without a change after which a comment is sent, so that no proxy closes the stream."""

HEADERS: Final[tuple[Header, ...]] = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
)


class Streams:
    """All open streams."""

    def __init__(self, overview: OverviewCache) -> None:
        self._overview = overview
        self._open = 0
        self._closing = asyncio.Event()

    @property
    def are_open(self) -> bool:
        """Return whether a stream is open."""
        return self._open > 0

    def close(self) -> None:
        """End every stream, so that the server can stop."""
        self._closing.set()

    async def _wait_closing(self) -> None:
        await self._closing.wait()

    async def serve(
        self,
        viewer: Viewer,
        is_open: Callable[[], bool],
        channel: tuple[Receive, Send],
        security: tuple[Header, ...],
    ) -> None:
        """Send changes until the viewer disconnects, the session ends or the program stops."""
        if self._open >= MAX_STREAMS:
            raise RefusedError(503, "too many pages are open; close some")
        if not self.are_open:
            self._overview.refresh()  # it is not refreshed while no stream is open
        receive, send = channel
        self._open += 1
        disconnected = asyncio.ensure_future(_wait_disconnected(receive))
        closing = asyncio.ensure_future(self._wait_closing())
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": encode_headers((*security, *HEADERS)),
                }
            )
            async for message in self._messages(viewer, is_open, (disconnected, closing)):
                await send({"type": "http.response.body", "body": message, "more_body": True})
            with suppress(OSError):
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._open -= 1
            disconnected.cancel()
            closing.cancel()

    async def _messages(
        self, viewer: Viewer, is_open: Callable[[], bool], ends: tuple["asyncio.Future[None]", ...]
    ) -> AsyncIterator[bytes]:
        overview, quiet = self._overview, 0
        version, visible = overview.version, await visible_to(viewer, overview.listings())
        yield b"retry: 2000\n\n"
        while is_open():
            waiting = asyncio.ensure_future(overview.wait())
            await asyncio.wait((waiting, *ends), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if any(end.done() for end in ends):
                return
            before, visible = visible, await visible_to(viewer, overview.listings())
            changes = overview.changes_since(version, before, visible)
            version = overview.version
            quiet += 1
            if changes != Changes():
                quiet = 0
                yield _event(changes)
            elif quiet >= QUIET_REFRESHES:
                quiet = 0
                yield b": still here\n\n"


def _event(value: object) -> bytes:
    """Return one message. JSON contains no raw line ends, so it fits into one data line."""
    return b"event: rows\ndata: " + encode_json(value) + b"\n\n"


async def _wait_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
